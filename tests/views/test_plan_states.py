"""How far each of several plans is: the graph, the page and ``gsd status`` say the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gsd_core import Inquiry, Option, Question
from gsd_core.codec import unstructure
from gsd_core.journal.lock import Owner
from gsd_core.machine.history import History
from gsd_core.machine.state import State
from gsd_core.planning.survey import read_planning
from gsd_core.views.project_details import Details, phases_json
from gsd_core.views.status import status_json, status_of
from tests.planning.trees import make_project
from tests.views.test_views import START, Facts

NUMBERS = range(1, 8)
ASKED = Inquiry(
    questions=(Question(id="q-1", text="Which?", options=(Option(label="A"),)),), step="1/execute/01-02"
)
ROADMAP = """# Roadmap

- [ ] **Phase 1: Store** - a

## Phase Details

### Phase 1: Store
**Goal**: It stores
"""


def plan(number: int) -> str:
    after = "01-01" if number == 7 else ""
    return (
        f"---\nphase: 01-store\nplan: {number:02}\ntype: execute\nwave: 1\ndepends_on: [{after}]\n"
        f"files_modified: [{number}.py]\nautonomous: true\nrequirements: []\n---\n"
        f"<objective>\nPlan {number}\n</objective>\n<tasks>\n"
        '<task type="auto"><name>Do it</name></task>\n</tasks>\n'
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plans = {f"phases/01-store/01-0{number}-PLAN.md": plan(number) for number in NUMBERS}
    return make_project(tmp_path, {"ROADMAP.md": ROADMAP, **plans})


def several_in_progress() -> State:
    """Return a run with one plan at work, one that asks, one that merges, one that failed, one that waits."""
    facts = Facts().add("run.started", idea={"name": "i", "text": "", "sha256": ""}).add("run.opened", pid=1)
    for number in range(1, 6):
        step = f"1/execute/01-0{number}"
        facts.add("attempt.started", step, kind="execute", phase="1", plan=f"01-0{number}")
    error = {"kind": "permanent", "message": "broken", "hint": ""}
    return (
        facts.add("question.asked", ASKED.step, key="k", inquiry=unstructure(ASKED), occasion="k")
        .add("step.result", "1/execute/01-03", result={"outcome": {"type": "Done"}}, phase="1", tip="abc")
        .add("step.failed", "1/execute/01-04", error=error)
        .add("attempt.failed", "1/execute/01-05", error=error)
        .add("timer.set", "1/execute/01-05", until=START.isoformat(), why="the limit")
        .state
    )


def states(root: Path, state: State, *, interrupted: bool) -> Mapping[str, str]:
    found: dict[str, Any] = phases_json(
        Details(planning=read_planning(root), state=state, interrupted=interrupted)
    )
    shown = {one["id"]: one["status"] for one in found["phases"][0]["plans"]}
    assert shown == {node["id"]: node["state"] for node in found["graph"]["nodes"]}
    return shown


def test_each_plan_has_its_own_state(root: Path) -> None:
    assert states(root, several_in_progress(), interrupted=False) == {
        "01-01": "running",
        "01-02": "parked",
        "01-03": "merging",
        "01-04": "failed",
        "01-05": "delayed",
        "01-06": "ready",
        "01-07": "waiting",
    }


def test_nothing_of_a_dead_run_is_in_progress_and_its_question_can_still_be_answered(root: Path) -> None:
    found = states(root, several_in_progress(), interrupted=True)

    assert [found[f"01-0{number}"] for number in (1, 3, 5)] == ["interrupted"] * 3
    assert (found["01-02"], found["01-04"]) == ("parked", "failed")


def test_the_status_has_every_step_in_progress_and_all_that_is_waited_for() -> None:
    owner = Owner(pid=1, host="here", since="now", command="")
    status = status_json(status_of(several_in_progress(), History(), owner))

    assert {one["id"][-5:]: one["status"] for one in status["steps_in_progress"]} == {
        "01-01": "running",
        "01-02": "parked",
        "01-03": "result",
        "01-05": "waiting",
    }
    assert status["current_step"]["id"] == "1/execute/01-01"
    assert status["waits_for"] == "an answer to q-1, 1/execute/01-01, 1/execute/01-03"
