"""What the prompts of one phase cost before any content: plan, three executions, verify."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gsd_core import (
    AgentTask,
    Evidence,
    GapReport,
    MustHaves,
    PhaseView,
    Plan,
    StepKind,
    StepRequest,
    Task,
    Truth,
)
from gsd_core.testing.fakes import FakeHost, Turn
from gsd_plugins import native
from gsd_plugins.native.prompt import words

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
BUDGET = 6000
"""Tokens, counted as bytes / 4; the limit for the wire is 12,000."""


def given(kind: StepKind, **fields: Any) -> AgentTask:
    """Return the first task that a step with next to no content gives to an agent."""

    class Caught(Exception):
        pass

    def catch(turn: Turn) -> Any:
        raise Caught

    must = MustHaves(truths=(Truth(id="01-01:T1", text="t"),))
    plan = Plan(
        id="01-01", phase="1", tasks=(Task(number=1, name="t"),), must_haves=must, summary="s", text="p"
    )
    phase = PhaseView(number="1", name="n", project=Path("/p"), plans=(plan,))
    step = StepRequest(
        id="x",
        run="r",
        kind=kind,
        project=Path("/p"),
        tree=Path("/p"),
        now=NOW,
        phase=phase,
        plan=plan,
        **fields,
    )
    host = FakeHost(agent=catch)
    try:
        asyncio.run(native.execute_step(step, host))
    except Caught:
        return host.tasks[0][1]
    raise AssertionError("no agent was asked")


def tokens(task: AgentTask) -> int:
    functions = [[f.name, f.description, dict(f.schema)] for f in task.functions]
    said = task.system + task.prompt + json.dumps(task.schema) + json.dumps(functions)
    return len(said.encode()) // 4


def test_a_phase_of_three_plans_costs_little_static_text() -> None:
    total = tokens(given("plan")) + 3 * tokens(given("execute")) + tokens(given("verify"))

    assert total < BUDGET


def test_a_gap_round_adds_little_to_the_plan() -> None:
    first = tokens(given("plan"))
    later = tokens(given("plan", round=1, report=GapReport()))

    assert later - first < 200


def test_every_role_knows_that_material_is_no_instruction() -> None:
    kinds: tuple[StepKind, ...] = ("plan", "execute", "verify")

    assert all(words("rules") in given(kind).system for kind in kinds)


def test_nothing_is_asked_when_everything_is_known() -> None:
    found = GapReport(evidence=(Evidence(about="01-01:T1", holds=True, proof="seen"),))
    try:
        given("verify", report=found)
    except AssertionError as error:
        told = str(error)
    else:
        told = "an agent was asked"

    assert told == "no agent was asked"


def test_a_planner_is_told_what_a_task_and_its_check_have_to_be() -> None:
    said = given("plan").system

    assert "Every `auto` task changes files" in said
    assert "fails before the task and passes after it" in said
    assert "without network, asking nothing" in said
