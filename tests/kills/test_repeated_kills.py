"""SIGKILL at the same step again and again: a human is asked, and resuming the run counts as an answer."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, defects, no_problems

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE, "--yes")
WAITS = """import asyncio, pathlib
from gsd_core import implements
from gsd_core.hookspecs import gsd_permit_tool

@implements(gsd_permit_tool)
async def wait(use):
    pathlib.Path({reached!r}).touch()
    if pathlib.Path({closed!r}).exists():
        await asyncio.sleep(600)
"""


def killed_three_times(project: Project) -> None:
    """Have the run killed three times while the first file of the plan is half written."""
    project.create()
    project.environment = no_problems()
    reached, closed, plugin = (project.base / name for name in ("reached", "closed", "wait.py"))
    (project.base / "plugins").mkdir()
    plugin = project.base / "plugins" / "wait.py"
    plugin.write_text(WAITS.format(reached=str(reached), closed=str(closed)))
    closed.touch()
    for _ in range(3):
        started = project.start(*RUN, "--plugins-dir", plugin.parent)
        assert started.until(reached.exists), started.output
        (project.root / "greeter").mkdir(exist_ok=True)
        (project.root / "greeter" / "__init__.py").write_text("half of")
        started.kill()
        reached.unlink()
    closed.unlink()


def test_a_step_lost_three_times_ends_the_run_with_a_question(project: Project) -> None:
    killed_three_times(project)
    done = project.gsd(*RUN)
    (asked,) = project.json("questions")["questions"]

    assert done.exit == 1
    assert "three attempts in a row were lost" in done.out + done.err
    assert asked["kind"] == "escalation"
    assert [option["label"] for option in asked["options"]] == ["Retry", "Skip", "Abort"]


def test_resuming_after_three_lost_attempts_starts_the_step_again(project: Project) -> None:
    killed_three_times(project)
    project.gsd(*RUN)
    done = project.gsd(*RUN)

    assert done.exit == 0, done.err
    assert list(defects(project)) == []


def test_retry_after_three_lost_attempts_starts_the_step_again(project: Project) -> None:
    killed_three_times(project)
    project.gsd(*RUN)
    (asked,) = project.json("questions")["questions"]
    project.gsd("answer", asked["id"], "Retry")
    done = project.gsd("resume", *FAKE[:2], "--yes")

    assert done.exit == 0, done.err
    assert list(defects(project)) == []
