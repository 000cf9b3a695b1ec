"""SIGKILL while git works: git outlives ``gsd``, and the next start ends it first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_core.processes import start_time
from tests.e2e.place import EXAMPLE, FAKE, Place, calm, defects

RUN = ("run", EXAMPLE, *FAKE, "--yes", "-q")
SLOW = pytest.mark.slow
NAMES = ["pre-commit", pytest.param("commit-msg", marks=SLOW), pytest.param("post-commit", marks=SLOW)]
HOOK = """#!/bin/sh
test -e {seen} && exit 0
echo $$ > {seen}.new && mv {seen}.new {seen}
exec sleep 600
"""


def slow_once(place: Place, name: str) -> Path:
    """Install a git hook that takes long the first time; return the file that then has its process id."""
    place.make()
    place.environment = calm()
    seen = place.base / "seen"
    hook = place.project / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(seen=seen))
    hook.chmod(0o755)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_that_outlived_gsd_is_ended_and_made_once(place: Place, name: str) -> None:
    seen = slow_once(place, name)
    started = place.start(*RUN)
    assert started.until(seen.exists)
    started.kill(group=True)
    pid = int(seen.read_text())
    before = start_time(pid)
    done = place.gsd(*RUN)

    assert before is not None
    assert done.exit == 0, done.err
    assert start_time(pid) != before
    assert list(defects(place)) == []


@SLOW
def test_a_half_written_file_leaves_no_trace(place: Place) -> None:
    place.make()
    place.environment = calm()
    started = place.start(*RUN)
    assert started.until(lambda: list(place.project.glob(".planning/**/*-PLAN.md")))
    started.kill()
    for folder in (place.project / ".planning", place.project):
        (folder / f".gsd-{os.getpid()}.tmp").write_text("half of")
    done = place.gsd(*RUN)

    assert done.exit == 0, done.err
    assert list(defects(place)) == []
