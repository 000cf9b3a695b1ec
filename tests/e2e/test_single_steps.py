"""One step alone: ``gsd plan`` and ``gsd execute`` beside a lifecycle that waits for an answer."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, defects, gate, no_problems
from tests.run.harness import trailed


@pytest.mark.slow
def test_single_steps_leave_a_parked_run_where_it_is_and_survive_a_kill(project: Project) -> None:
    project.create()
    project.environment = no_problems(PHASES="2", QUESTION="1")
    parked = project.gsd("run", EXAMPLE, *FAKE, "--no-input")
    planned = project.gsd("plan", "2", *FAKE[:2], "--yes")
    waiting = project.json("questions")["questions"]

    waits = gate(project)
    waits.close()
    started = project.start("execute", "1", *FAKE[:2], "--yes")
    assert started.until(waits.reached.exists)
    started.kill(group=True)
    waits.open()
    executed = project.gsd("execute", "1", *FAKE[:2], "--yes")
    status = project.json("status")
    done = [fact.step for fact in project.facts("step.completed")]
    resumed = project.gsd("resume", *FAKE[:2], "--yes")

    assert (parked.exit, planned.exit, executed.exit, resumed.exit) == (3, 0, 0, 0), executed.err
    assert [question["step"] for question in waiting] == ["1/execute/01-01"]
    assert done == ["init", "1/discuss", "1/plan", "2/plan", "1/execute/01-01", "1/execute/01-02"]
    assert status["status"] != "done"
    assert trailed(project.root).count(("1/execute/01-01", "01-01/1")) == 1
    assert list(defects(project)) == []
