"""A phase is discussed, planned by its decisions, and verified against them."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.hookspecs import gsd_answer
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.question import Answer, Inquiry
from gsd_core.planning.context import read_decisions
from tests.peer.reader import TOOL, ask_gsd

from . import harness as h


def context_of(root: Path) -> Path:
    [path] = root.glob(".planning/phases/*/01-CONTEXT.md")
    return path


@pytest.mark.slow
def test_plans_name_the_decisions_and_the_record_says_that_nobody_was_asked(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    forgetful = True

    async def forget(task: AgentTask, host: AgentHost) -> AgentResult | None:
        nonlocal forgetful
        if task.role != "planner" or not forgetful:
            return None
        forgetful = False
        result = await agent.agent.run_agent(task, host)
        assert result is not None
        for planned in result.value["plans"][0]["tasks"]:
            planned["action"] = planned["action"].partition(" Decided:")[0]
        return result

    agent = h.Watched(h.one_phase(discuss=True), forget)
    end = h.do(h.request(root, agent, given=h.idea()))

    assert end.outcome == "done"
    decisions = read_decisions(context_of(root).read_text())
    assert [(one.id, one.is_tracked) for one in decisions] == [
        ("D-01", False),
        ("D-02", True),
        ("D-03", True),
    ]
    assert decisions[1].notes[-1] == "Recommended option taken, nobody was asked (--yes)"
    assert len(agent.of("discusser")) == 1
    [_, revision] = agent.of("planner")
    assert "no plan names decision D-02" in revision.prompt
    if TOOL.is_file():
        path = context_of(root).relative_to(root)
        report = ask_gsd(root, "check", "decision-coverage-plan", str(path.parent), str(path))
        assert (report["passed"], report["total"], report["covered"]) == (True, 2, 2)


@pytest.mark.slow
def test_a_decision_that_a_person_adds_after_the_plans_is_planned_as_a_gap(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def stop(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            h.put(h.journal(root), "stop", {}, by="ada")
        return None

    agent = h.Watched(h.one_phase(gap=True), stop)
    assert h.do(h.request(root, agent, given=h.idea())).outcome == "stopped"
    path = context_of(root)
    mine = "### Mine\n- **D-09:** Entries have a date\n\n### Claude's"
    path.write_text(path.read_text().replace("### Claude's", mine))
    h.git(root, "commit", "-qam", "Decide")

    agent.before = None
    end = h.do(h.request(root, agent))

    assert end.outcome == "done"
    assert "gap D-09" in agent.of("planner")[-1].prompt
    [plan] = root.glob(".planning/phases/*/01-02-PLAN.md")
    assert "D-09" in plan.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("skip", [True, False])
def test_only_a_person_is_asked_and_their_words_count(tmp_path: Path, skip: bool) -> None:
    root = h.repository(tmp_path / "project")
    asked: list[Inquiry] = []

    async def answer(inquiry: Inquiry) -> list[Answer]:
        asked.append(inquiry)
        return [Answer(question=one.id, text="By name", by="ada") for one in inquiry.questions]

    agent = h.Watched(h.one_phase(discuss=True))
    request = h.request(
        root,
        agent,
        given=h.idea(),
        yes=False,
        person=h.plugin(gsd_answer, answer),
        options=Options(skip_discuss=skip),
    )
    end = h.do(evolve(request, info=evolve(request.info, yes=False)))

    assert end.outcome == "done"
    tracked = [one for one in read_decisions(context_of(root).read_text()) if one.is_tracked]
    assert len(tracked) == 2
    if skip:
        assert asked == []
        assert {one.notes[-1] for one in tracked} == {"Assumed: nobody was asked"}
        return
    [batch] = asked
    assert len(batch.questions) == 2
    assert [(one.text, one.notes[-1]) for one in tracked] == [("By name", "Answered by ada")] * 2
    # The second conversation had nothing more to ask.
    assert len(agent.of("discusser")) == 2
