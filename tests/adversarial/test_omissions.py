"""An agent that leaves something out, or proves nothing: it is told, or the run does not end with 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.planning.idea import split_statements
from gsd_core.planning.survey import read_planning
from gsd_core.run.runtime import RunEnd
from gsd_plugins.rehearsal import Scenario
from tests.run import harness as h

from .genuine import problems, write

pytestmark = pytest.mark.slow

IDEA = (
    "# Greeter\n\nA small program that greets people by name.\n\n- It greets.\n- It lists, newest first.\n"
    "- It saves.\n- It says how many lines it skipped.\n- It has a README.\n"
)
TESTS = "python3 -m unittest -q tests.test_guests"


def scenario() -> Scenario:
    found = h.one_phase().scenario
    assert found is not None
    return found


def run(root: Path, before: h.Before, **more: Any) -> tuple[RunEnd, h.Watched]:
    agent = h.Watched(h.one_phase(), before)
    return h.do(h.request(h.repository(root), agent, given=h.idea(IDEA), **more)), agent


# Something is left out of the answer


def drops_a_statement(value: dict[str, Any]) -> None:
    for one in value["requirements"]:
        one["statements"] = [name for name in one["statements"] if name != "S3"]


def invents_a_statement(value: dict[str, Any]) -> None:
    value["requirements"][0]["statements"] = ["S99"]


def drops_the_requirement_of_a_phase(value: dict[str, Any]) -> None:
    value["phases"][0]["requirements"].remove("CORE-02")


def drops_a_requirement(value: dict[str, Any]) -> None:
    for plan in value["plans"]:
        plan["requirements"] = [name for name in plan["requirements"] if name != "CORE-02"]
        for truth in plan["truths"]:
            truth["serves"] = [name for name in truth["serves"] if name != "CORE-02"] or ["CORE-01"]


def drops_a_criterion(value: dict[str, Any]) -> None:
    for plan in value["plans"]:
        for truth in plan["truths"]:
            truth["serves"] = [name for name in truth["serves"] if name != "01:C2"] or ["CORE-01"]


def drops_the_truths(value: dict[str, Any]) -> None:
    for plan in value["plans"]:
        plan["truths"] = []


Change = Callable[[dict[str, Any]], None]
OMISSIONS: list[tuple[str, Change, str]] = [
    ("roadmapper", drops_a_statement, "S3"),
    ("roadmapper", invents_a_statement, "S99"),
    ("roadmapper", drops_the_requirement_of_a_phase, "CORE-02"),
    ("planner", drops_a_requirement, "CORE-02"),
    ("planner", drops_a_criterion, "01:C2"),
    ("planner", drops_the_truths, "CORE-01"),
]


@define
class Omits:
    """An agent whose answer for *role* lacks something, *times* times; it remembers the prompts."""

    role: str
    change: Change
    times: int
    prompts: list[str] = field(factory=list[str])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != self.role or "/execute" in task.step:
            return None
        self.prompts.append(task.prompt)
        first = self.prompts[0]
        value = scenario().roadmap(first) if self.role == "roadmapper" else scenario().plans("1", 0, first)
        if len(self.prompts) <= self.times:
            self.change(value)
        return AgentResult(value=value, conversation=task.conversation.id if task.conversation else "")


@pytest.mark.parametrize(
    ("role", "change", "name"), OMISSIONS, ids=lambda one: getattr(one, "__name__", None)
)
def test_an_omission_is_named_in_a_complaint_and_repaired(
    tmp_path: Path, role: str, change: Change, name: str
) -> None:
    root = tmp_path / "project"
    omits = Omits(role, change, 1)

    end, _ = run(root, omits)

    assert end.exit == 0, end
    assert len(omits.prompts) == 2
    assert name in omits.prompts[1]
    planning = read_planning(root)
    assert [one.id for one in planning.statements if not one.used_by] == []
    assert len(planning.statements) == len(split_statements(IDEA))
    [phase] = planning.phases
    assert phase.requirements == ("CORE-01", "CORE-02", "DOC-01")
    assert list(problems(root, tmp_path / "copy")) == []


@pytest.mark.parametrize(
    ("role", "change", "name"), OMISSIONS, ids=lambda one: getattr(one, "__name__", None)
)
def test_an_agent_that_insists_on_an_omission_does_not_end_with_0(
    tmp_path: Path, role: str, change: Change, name: str
) -> None:
    end, agent = run(tmp_path / "project", Omits(role, change, 99))

    assert end.exit == 1, end
    assert name in end.reason
    assert agent.of("executor") == []


# Tests and checks that prove nothing


@define
class Weak:
    """An agent whose plan has the check *check* in each task, and whose executor writes *files* last."""

    check: str = TESTS
    files: dict[str, str] = field(factory=dict[str, str])
    without: str = ""
    decisions: list[str] = field(factory=list[str])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "planner":
            if "/execute" in task.step:
                self.decisions.append(task.prompt)
                return None
            value = scenario().plans("1", 0, task.prompt)
            for planned in value["plans"][0]["tasks"]:
                planned["check"] = self.check
            return AgentResult(value=value)
        if task.role != "executor":
            return None
        for number, scripted in enumerate(scenario().tasks("01-01"), 1):
            for edit in scripted.edits:
                if not (self.without and edit.path.startswith(self.without)):
                    file = task.tree / edit.path
                    text = edit.applied(file.read_text("utf-8") if file.exists() else None)
                    await h.write(task, host, edit.path, text)
            for path, text in self.files.items():
                write(task.tree / path, text)
            note = "Added tests/test_guests.py with 12 tests; all of them pass."
            await host.call("task_done", {"task": number, "files": [*self.files], "note": note})
        return AgentResult(
            value={"summary": "12 tests pass.", "deviations": [], "decisions": [], "issues": []}
        )


SKIPPED = """import unittest


@unittest.skip("later")
class A(unittest.TestCase):
    def test_a(self) -> None:
        pass
"""
WEAK: dict[str, Weak] = {
    "a wrapper that always succeeds": Weak("sh check.sh", {"check.sh": "#!/bin/sh\nexit 0\n"}),
    "tests that were deleted": Weak(TESTS, {"tests/test_guests.py": "", "tests/test_greetings.py": ""}),
    "tests that are all skipped": Weak(
        TESTS,
        {f"tests/test_{name}.py": SKIPPED for name in ("guests", "greetings")},
    ),
    "tests that are claimed and not written": Weak(
        "python3 -c 'import greeter.guests'", without="tests/test_"
    ),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_check_that_proves_nothing_does_not_end_with_0(tmp_path: Path, name: str) -> None:
    root = tmp_path / "project"

    end, _ = run(root, WEAK[name], options=Options(gap_rounds=0))

    assert end.exit in (1, 6), end
    assert not any(phase.ticked for phase in read_planning(root).phases)


@pytest.mark.parametrize("cites_lines", [False, True])
def test_a_check_that_passes_before_the_work_is_no_evidence_alone(tmp_path: Path, cites_lines: bool) -> None:
    root = tmp_path / "project"
    always = "python3 -c 'import sys'"
    weak = Weak(always)

    async def vouches(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return await weak(task, host)
        await host.call("run_command", {"command": always})
        asked = scenario().asked_in(task.prompt, "1")
        if cites_lines:
            return None
        cited = [{"command": always, "exit": 0}]
        fields = {"status": "holds", "evidence": "it holds", "reason": "", "missing": [], "citations": cited}
        return AgentResult(value={"verdicts": [{"id": name, **fields} for name in asked], "findings": []})

    end, _ = run(root, vouches, options=Options(gap_rounds=0))

    assert weak.decisions, "the planner was asked for a better check"
    assert end.exit == (0 if cites_lines else 6), end
