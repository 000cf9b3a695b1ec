"""SIGKILL while git works: git outlives ``gsd``, and the next start ends it first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_core.processes import start_time
from tests.e2e.project import EXAMPLE, FAKE, Project, defects, no_problems

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE, "--yes", "-q")
SLOW = pytest.mark.slow
NAMES = ["pre-commit", pytest.param("commit-msg", marks=SLOW), pytest.param("post-commit", marks=SLOW)]
HOOK = """#!/bin/sh
test -e {seen} && exit 0
echo $$ > {seen}.new && mv {seen}.new {seen}
exec sleep 600
"""


def slow_once(project: Project, name: str) -> Path:
    """Install a git hook that takes long the first time; return the file that then has its process id."""
    project.create()
    # In a sandbox, the hook could not leave its mark outside of the project.
    project.environment = no_problems() | {"GSD_SANDBOX": "off"}
    seen = project.base / "seen"
    hook = project.root / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(seen=seen))
    hook.chmod(0o755)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_that_outlived_gsd_is_ended_and_made_once(project: Project, name: str) -> None:
    seen = slow_once(project, name)
    started = project.start(*RUN)
    assert started.until(seen.exists)
    started.kill(group=True)
    pid = int(seen.read_text())
    before = start_time(pid)
    done = project.gsd(*RUN)

    assert before is not None
    assert done.exit == 0, done.err
    assert start_time(pid) != before
    assert list(defects(project)) == []


@SLOW
@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_half_written_file_leaves_no_trace(project: Project, sandbox: str) -> None:
    """Without a sandbox, the commands of plans that the run itself has written need no trust either."""
    project.create()
    project.environment = no_problems() | {"GSD_SANDBOX": sandbox}
    started = project.start(*RUN)
    assert started.until(lambda: list(project.root.glob(".planning/**/*-PLAN.md")))
    started.kill()
    for folder in (project.root / ".planning", project.root):
        (folder / f".gsd-{os.getpid()}.tmp").write_text("half of")
    done = project.gsd(*RUN)

    assert done.exit == 0, done.err
    assert list(defects(project)) == []
