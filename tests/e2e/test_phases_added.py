"""A phase that is added while a run is under way is planned, executed and verified by this run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, door, no_problems
from tests.run.harness import git

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("paused", [False, True])
def test_a_running_run_works_on_a_phase_that_was_added_meanwhile(project: Project, paused: bool) -> None:
    project.create()
    project.environment = no_problems(PHASES="1")
    gate = door(project)
    gate.close()
    started = project.start("run", EXAMPLE, *FAKE, "--yes")
    assert started.until(gate.reached.exists)
    asked = project.gsd("phase", "add", "Report", "bad", "lines")
    handoff: dict[str, Any] = {}
    if paused:
        handoff = project.json("pause", "--now", "mind the typo")
        assert started.wait().exit == 130
        gate.open()
        done = project.gsd("resume", *FAKE[:2], "--yes")
        assert "noted: mind the typo" in done.err
    else:
        gate.open()
        done = started.wait()
    (added,) = project.facts("phase.added")
    log = git(project.root, "log", "--format=%s").splitlines()

    assert asked.exit == 0, asked.err
    assert f"pid {started.pid}" in asked.out
    assert done.exit == 0, done.out + done.err
    assert (added.data["phase"], added.data["error"]) == ("2", "")
    assert log.count("docs: add phase 2 Report bad lines") == 1
    steps = [fact.step for fact in project.facts("step.completed")]
    assert [step for step in steps if step.startswith("2/")][-2:] == ["2/verify", "2/complete"]
    assert project.json("phases")["phases"][1]["complete"]
    assert not git(project.root, "status", "--porcelain")
    # The handoff was for the plan that was interrupted, and for nothing after it.
    assert log.count("docs: resume from handoff") == paused
    assert [path for path in handoff.get("files", ()) if (project.root / path).exists()] == []
    assert handoff.get("plan", "01-01") == "01-01"
