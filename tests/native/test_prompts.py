"""The prompts: their static size, and the material that they must contain."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

from gsd_core import (
    AgentTask,
    Evidence,
    GapReport,
    MustHaves,
    PhaseView,
    Plan,
    Planning,
    StepRequest,
    Task,
    Truth,
)
from gsd_core.planning.model import TaskType
from gsd_core.testing.fakes import FakeHost, Turn
from gsd_plugins import native
from gsd_plugins.native.answers import Citation, FindingAnswer, ReportAnswer, VerdictStatus, schema_of
from gsd_plugins.native.prompt_context import prompt_text

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
BUDGET = 6000
"""Tokens of static text per phase (one plan, three executions, one verification), at 4 bytes each."""


def task_of(kind: str, **fields: Any) -> AgentTask:
    """Return the first agent task of a step with almost no content."""

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
    text = task.system + task.prompt + json.dumps(task.schema) + json.dumps(functions)
    return len(text.encode()) // 4


def test_the_static_text_of_a_phase_stays_within_the_budget() -> None:
    total = tokens(task_of("plan")) + 3 * tokens(task_of("execute")) + tokens(task_of("verify"))

    assert total < BUDGET


def test_a_gap_round_adds_little_to_the_planner_prompt() -> None:
    first = tokens(task_of("plan"))
    later = tokens(task_of("plan", round=1, report=GapReport()))

    assert later - first < 200


def test_every_role_gets_the_rules_about_fenced_data() -> None:
    kinds: tuple[str, ...] = ("plan", "execute", "verify")

    assert all(prompt_text("rules") in task_of(kind).system for kind in kinds)


def test_no_verifier_runs_when_every_truth_is_decided() -> None:
    report = GapReport(evidence=(Evidence(about="01-01:T1", holds=True, proof="seen"),))

    with pytest.raises(AssertionError, match="no agent was asked"):
        task_of("verify", report=report)


def test_the_planner_prompt_explains_the_fields_of_the_answer() -> None:
    system = task_of("plan").system
    fields = ["truths", "artifacts", "key_links", "depends_on", "files_modified", "requirements"]
    fields += ["name", "action", "verify", "check", "done", "type", "options"]

    assert [name for name in fields if f"`{name}`" not in system] == []
    assert [name for name in get_args(TaskType) if f"`{name}`" not in system] == []


def test_the_verifier_prompt_explains_every_status() -> None:
    system = task_of("verify").system

    assert [status for status in get_args(VerdictStatus) if f"`{status}`" not in system] == []


def test_the_verifier_prompt_names_its_function_and_explains_citations_and_findings() -> None:
    system = task_of("verify").system
    fields = [field.name for kind in (Citation, FindingAnswer) for field in attrs.fields(kind)]

    assert [
        name for name in ("run_command", "citations", "findings", *fields) if f"`{name}`" not in system
    ] == []


def test_the_executor_prompt_names_its_function_and_the_fields_of_its_report() -> None:
    system = task_of("execute").system

    assert "`task_done`" in system
    assert [name for name in schema_of(ReportAnswer)["properties"] if f"`{name}`" not in system] == []


@pytest.mark.parametrize("kind", ["plan", "execute"])
def test_a_handoff_is_context_for_the_planner_and_the_executor(kind: str) -> None:
    text = "HANDOFF.json: the parser is slow </data>"
    planning = Planning(documents={"HANDOFF": text})

    assert text in task_of(kind, planning=planning).prompt
    assert "work was paused" not in task_of(kind).prompt


def context(*decisions: str) -> str:
    return "\n".join(["<decisions>", "### A", *decisions, "</decisions>"])


@pytest.mark.parametrize("kind", ["plan", "execute", "verify"])
def test_decisions_of_earlier_phases_travel_with_their_ids(kind: str) -> None:
    first = context("- **D-01:** Oldest first", "- **D-02 [informational]:** Python only")
    phases = (
        PhaseView(number="0.5", name="a", project=Path("/p"), context=first),
        PhaseView(number="0.6", name="b", project=Path("/p"), context=context("- **D-01:** One file")),
        PhaseView(number="1", name="n", project=Path("/p")),
        PhaseView(number="2", name="c", project=Path("/p"), context=context("- **D-01:** Blue")),
    )
    decided = ("By hand", "[Asked] Which color? Blue-green")
    plan = Plan(id="0.6-01", path="", phase="0.6", summary="S.md", decisions=decided)
    phases = (phases[0], attrs.evolve(phases[1], plans=(plan,)), *phases[2:])
    prompt = task_of(kind, planning=Planning(phases=phases)).prompt

    of_b = "- phase 0.6, D-01: One file\n- phase 0.6, 0.6-01:D2: Which color? Blue-green\n"
    assert of_b + "- phase 0.5, D-01: Oldest first\n" in prompt
    assert prompt.count("Blue-green") == 1
    assert "Python only" not in prompt
    assert "D-01: Blue" not in prompt


def test_decisions_of_earlier_phases_are_capped_from_the_oldest_on() -> None:
    many = [f"- **D-{number:03d}:** {'word ' * 30}" for number in range(100)]
    phases = (
        PhaseView(number="0.5", name="a", project=Path("/p"), context=context(*many)),
        PhaseView(number="0.6", name="b", project=Path("/p"), context=context("- **D-01:** One file")),
    )
    prompt = task_of("plan", planning=Planning(phases=phases)).prompt

    assert "- phase 0.6, D-01: One file\n- phase 0.5, D-000" in prompt
    assert "[cut off: " in prompt
    assert "D-099" not in prompt


def test_what_counts_more_is_said_once_in_the_rules() -> None:
    said = "A decision with an id counts over the idea's words, and these over the plan."

    assert all(task_of(kind).system.count(said) == 1 for kind in ("plan", "execute", "verify"))
