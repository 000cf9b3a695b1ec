"""The depth decides how many phases and plans there may be, and whether plans are reviewed by an agent."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from gsd_core import Permanent, PhaseView
from gsd_core.testing.fakes import FakeHost
from gsd_plugins.native.depth import phases_hint

from . import test_init_step as roadmap
from . import test_plan_step as planner

MOST = {"quick": (5, 3), "standard": (8, 5), "comprehensive": (12, 10)}
NO_ISSUES: dict[str, Any] = {"issues": []}


def requirement_ids(count: int) -> list[str]:
    return [f"NOTE-{number:02d}" for number in range(1, count + 1)]


def a_roadmap(phases: int) -> dict[str, Any]:
    """A valid roadmap with that many phases."""
    names = requirement_ids(phases)
    base = roadmap.an_answer()
    first = base["requirements"][0]
    return {
        **base,
        "requirements": [first, *({**first, "id": name} for name in names[1:])],
        "phases": [roadmap.a_phase(name=f"P{n}", requirements=[name]) for n, name in enumerate(names)],
    }


def plans(count: int) -> dict[str, Any]:
    """That many valid plans, which change different files."""
    return {
        "plans": [
            planner.an_answer(
                files_modified=[f"n{n}.py"],
                artifacts=[{"path": f"n{n}.py", "provides": "a part"}],
                tasks=[planner.a_task(files=[f"n{n}.py"])],
            )
            for n in range(count)
        ]
    }


@pytest.mark.parametrize("depth", MOST)
def test_a_roadmap_may_have_as_many_phases_as_its_depth_allows(depth: Any) -> None:
    most, _ = MOST[depth]
    host = FakeHost(agent={"roadmap": [a_roadmap(most + 1), a_roadmap(most)]})
    roadmap.run(roadmap.a_step(depth=depth), host)

    assert host.complaints == [(f"too many phases: {most + 1}, the maximum is {most}",)]
    assert f"At most {most} phases." in host.task("roadmap").prompt


@pytest.mark.parametrize("depth", MOST)
def test_a_phase_may_have_as_many_plans_as_its_depth_allows(depth: Any) -> None:
    _, most = MOST[depth]
    agent = {"plan": plans(most + 1), "revise-1": plans(most), "review-1": NO_ISSUES}
    host = FakeHost(agent=agent)
    result = planner.run(planner.a_step(depth=depth), host)

    assert f"too many plans: {most + 1}, the maximum at depth {depth} is {most}" in host.tasks[1][1].prompt
    assert f"At most {most} plans." in host.task("plan").prompt
    assert len(result.files) == most


def test_plans_that_the_roadmap_lists_are_all_accepted() -> None:
    listed = tuple(f"01-0{number}" for number in range(1, 5))
    phase: PhaseView = evolve(planner.PHASE, listed=listed)
    result = planner.run(planner.a_step(phase, depth="quick"), FakeHost(agent={"plan": plans(4)}))

    assert len(result.files) == 4


def test_the_usual_number_of_phases_grows_with_the_idea_and_the_depth() -> None:
    assert "about 1 phase is usual" in phases_hint("standard", 4)
    assert "about 4 phases are usual" in phases_hint("standard", 40)
    assert "about 7 phases are usual" in phases_hint("comprehensive", 40)
    assert "about 5 phases are usual" in phases_hint("quick", 900)


# The review of plans


def objections(*severities: str) -> dict[str, Any]:
    return {
        "issues": [
            {
                "plan": "01-01",
                "severity": severity,
                "problem": f"Nobody calls add ({severity})",
                "fix": "Call it",
            }
            for severity in severities
        ]
    }


@pytest.mark.parametrize(
    ("depth", "config", "reviewed"),
    [
        ("quick", {}, False),
        ("standard", {"workflow": {"plan_check": True}}, False),
        ("comprehensive", {}, True),
        ("comprehensive", {"workflow": {"plan_check": False}}, False),
    ],
)
def test_an_agent_reviews_the_plans_of_a_comprehensive_project(
    depth: Any, config: dict[str, Any], reviewed: bool
) -> None:
    host = FakeHost(agent={"plan": plans(1), "review-1": NO_ISSUES})
    step = planner.a_step(depth=depth)
    planner.run(evolve(step, planning=evolve(step.planning, config=config)), host)

    assert ("review-1" in host.keys) is reviewed


def test_the_reviewer_sees_the_plans_and_cannot_write() -> None:
    host = FakeHost(agent={"plan": plans(1), "review-1": NO_ISSUES})
    planner.run(planner.a_step(depth="comprehensive"), host)
    task = host.task("review-1")

    assert (task.role, task.writable, task.model) == ("checker", False, "sonnet")
    assert "01-01-PLAN.md" in task.prompt
    assert "Write a function add(text)" in task.prompt


def test_a_blocker_of_the_review_is_revised_and_reviewed_again_and_a_warning_is_not() -> None:
    agent = {
        "plan": plans(1),
        "review-1": objections("blocker", "warning"),
        "revise-1": plans(1),
        "review-2": objections("warning"),
    }
    host = FakeHost(agent=agent)
    planner.run(planner.a_step(depth="comprehensive"), host)
    revision = host.task("revise-1").prompt

    assert host.keys == ("plan", "review-1", "revise-1", "review-2")
    assert "Nobody calls add (blocker) (Call it)" in revision
    assert "(warning)" not in revision


def test_an_objection_to_an_unknown_plan_is_sent_back() -> None:
    wrong = {"issues": [{"plan": "09-09", "severity": "blocker", "problem": "x"}]}
    host = FakeHost(agent={"plan": plans(1), "review-1": [wrong, NO_ISSUES]})
    planner.run(planner.a_step(depth="comprehensive"), host)

    assert host.complaints == [("there is no plan '09-09'; the plans are 01-01",)]


@pytest.mark.parametrize("decision", ["Execute them anyway", "Stop"])
def test_a_person_decides_about_objections_that_stay(decision: str) -> None:
    agent = {"plan": plans(1)}
    agent |= {f"review-{n}": objections("blocker") for n in (1, 2, 3)}
    agent |= {f"revise-{n}": plans(1) for n in (1, 2, 3)}
    host = FakeHost(agent=agent, answers=[decision])
    step = planner.a_step(depth="comprehensive")
    if decision == "Stop":
        with pytest.raises(Permanent, match="Nobody calls add"):
            planner.run(step, host)
    else:
        assert len(planner.run(step, host).files) == 1

    assert host.keys.count("review-3") == 1
    assert "revise-3" not in host.keys
    assert "Nobody calls add" in host.inquiries[0].questions[0].text


def test_what_code_finds_is_revised_before_an_agent_is_asked() -> None:
    agent = {"plan": plans(11), "revise-1": plans(1), "review-1": NO_ISSUES}
    host = FakeHost(agent=agent)
    planner.run(planner.a_step(depth="comprehensive"), host)

    assert host.keys == ("plan", "revise-1", "review-1")
