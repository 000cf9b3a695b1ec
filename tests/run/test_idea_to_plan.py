"""From the idea to the plans, in a real repository: nothing that the idea says is dropped unnoticed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.planning.survey import read_planning
from gsd_plugins.rehearsal import FakeAgent, Scenario

from . import harness as h

pytestmark = pytest.mark.slow

IDEA = "# Greeter\n\nIt greets people.\n\n- The newest guest is greeted first.\n- It works offline.\n"
Change = Callable[[Any], None]


@define
class Omits:
    """Changes the answers of a role until it has received *patience* complaints; 99 means always."""

    role: str
    change: Change
    patience: int = 99
    scenario: Scenario = Scenario(IDEA, phases=1, question=False, gap=False, overloaded=False)
    prompts: list[str] = field(factory=list[str])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != self.role:
            return None
        self.prompts.append(task.prompt)
        value = self.scenario.roadmap(self.prompts[0]) if self.role == "roadmapper" else self._plans()
        if len(self.prompts) <= self.patience:
            self.change(value)
        conversation = task.conversation.id if task.conversation else ""
        return AgentResult(value=value, conversation=conversation)

    def _plans(self) -> Any:
        return self.scenario.plans("1", about=self.prompts[0])


def agent_that(omits: Omits) -> h.Watched:
    return h.Watched(FakeAgent(omits.scenario), before=omits)


def drop_statement(roadmap: Any) -> None:
    for requirement in roadmap["requirements"]:
        requirement["statements"] = [name for name in requirement["statements"] if name != "S2"]
        requirement["reason"] = "x"
    roadmap["context"] = [name for name in roadmap["context"] if name != "S2"]


def drop_criterion(plans: Any) -> None:
    for plan in plans["plans"]:
        for truth in plan["truths"]:
            truth["serves"] = [name for name in truth["serves"] if name != "01:C2"]


def drop_requirement(plans: Any) -> None:
    for plan in plans["plans"]:
        for truth in plan["truths"]:
            truth["serves"] = [name for name in truth["serves"] if name != "CORE-02"] or ["01:C1"]


@pytest.mark.parametrize(
    ("role", "change", "name"),
    [
        ("roadmapper", drop_statement, "The newest guest is greeted first."),
        ("planner", drop_criterion, "01:C2"),
        ("planner", drop_requirement, "CORE-02"),
    ],
)
def test_what_a_model_drops_costs_one_turn(tmp_path: Path, role: str, change: Change, name: str) -> None:
    root = h.repository(tmp_path / "project")
    omits = Omits(role, change, patience=1)
    end = h.do(h.request(root, agent_that(omits), given=h.idea(IDEA)))

    assert end.outcome == "done"
    assert len(omits.prompts) == 2
    assert name in omits.prompts[1]


@pytest.mark.parametrize(
    ("role", "change", "name"),
    [
        ("roadmapper", drop_statement, "The newest guest is greeted first."),
        ("planner", drop_criterion, "01:C2"),
        ("planner", drop_requirement, "CORE-02"),
    ],
)
def test_a_model_that_insists_on_dropping_it_fails_the_run(
    tmp_path: Path, role: str, change: Change, name: str
) -> None:
    root = h.repository(tmp_path / "project")
    end = h.do(h.request(root, agent_that(Omits(role, change)), given=h.idea(IDEA)))
    [failed] = h.facts(root, "step.failed")

    assert end.exit != 0
    assert name in failed.data["error"]["message"]
    assert not list(root.glob(".planning/phases/*/*-PLAN.md"))


def test_the_idea_is_committed_first_and_its_words_reach_the_planner(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = h.Watched(FakeAgent(Scenario(IDEA, phases=1, question=False, gap=False, overloaded=False)))
    end = h.do(h.request(root, agent, given=h.idea(IDEA)))
    planning = read_planning(root)

    assert end.outcome == "done"
    first = h.git(root, "rev-list", "--max-parents=0", "HEAD").strip()
    assert IDEA in h.git(root, "show", f"{first}:.planning/IDEA.md")
    assert [one.text for one in planning.statements] == [
        "It greets people.",
        "The newest guest is greeted first.",
        "It works offline.",
    ]
    assert {name for one in planning.requirements for name in one.statements} == {"S1", "S2", "S3"}
    (task,) = agent.of("planner")
    assert re.search(
        r"^  S2 \(under 'Greeter'\): The newest guest is greeted first\.$", task.prompt, re.MULTILINE
    )
    served = {
        name for plan in planning.phases[0].plans for truth in plan.must_haves.truths for name in truth.serves
    }
    assert {"01:C1", "01:C2", *planning.phases[0].requirements} == served


def test_the_second_phase_is_planned_with_the_files_and_notes_of_the_first(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    scenario = Scenario(IDEA, phases=2, question=True, gap=False, overloaded=False)
    agent = h.Watched(FakeAgent(scenario))
    h.do(h.request(root, agent, given=h.idea(IDEA)))
    prompt = agent.of("planner")[-1].prompt

    assert f"\n{scenario.product.path('guests')}\n" in prompt
    assert "01-01 decided: Greetings end with" in prompt
    assert re.search(r"^Installed programs.*\bpython3\b", prompt, re.MULTILINE)
