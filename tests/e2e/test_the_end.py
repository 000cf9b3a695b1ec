"""The end of a run for people: what was built, what it waits for, and commands that can be pasted."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.pasted import check, commands_in
from tests.e2e.project import EXAMPLE, FAKE, Done, Project, no_problems

pytestmark = pytest.mark.slow


def paste(project: Project, command: str) -> Done:
    """Run a command line that gsd printed, from where it was printed."""
    return project.gsd(*shlex.split(command)[1:])


def test_a_run_that_waits_and_ends_says_what_to_do_in_commands_that_work(tmp_path: Path) -> None:
    project = Project(tmp_path, no_problems(QUESTION="1", GAP="1"))
    project.create()
    where = ("-C", str(project.root))

    blocked = project.gsd(*where, "run", EXAMPLE, *FAKE, "--no-input")
    commands = list(commands_in(blocked.out))
    answers = [one for one in commands if " answer q-" in one and one[-1].isdigit()]

    assert blocked.exit == 3, blocked.err
    assert all(check(one) for one in commands)
    assert "waits for: an answer" in blocked.out
    assert "built: " not in blocked.out
    assert answers
    assert answers[0].startswith(f"gsd -C {project.root} -p {FAKE[1]} answer q-")
    assert paste(project, answers[0]).exit == 0

    [resume] = {one for one in commands if " resume" in one}
    done = paste(project, f"{resume} --yes")
    lines = done.out.splitlines()

    assert done.exit == 0, done.err
    assert lines[-1].startswith("done: 1 phase complete")
    assert f"where: {project.root} (branch " in done.out
    assert "built: " in done.out
    assert ", in 2 processes" in done.out
    assert "  gsd " in done.out.split("next:\n")[1]
    for one in commands_in(done.out):
        assert check(one)

    log = project.gsd(*where, "log")
    assert "1 gap found" in log.out
    assert f"gsd -C {project.root} report --open" in done.out
    page = project.gsd(*where, "report", "-o", "-")
    assert "Gaps found and closed" in page.out
    assert "Questions and answers" in page.out
