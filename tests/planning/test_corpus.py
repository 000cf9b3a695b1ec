"""Real planning trees: all can be read, and the peer's own tool sees the same phases in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from gsd_core import AddDecisions, Change, ListPlans, PhaseView, SetPosition, TickPhase, TickPlan
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.plan import parse_plan, render_plan
from gsd_core.planning.roadmap import scan
from gsd_core.planning.survey import read_planning

CORPUS = Path(__file__).parents[2] / "../shared/corpus"
PROJECTS = sorted(CORPUS.glob("projects/*")) if CORPUS.is_dir() else []

NAMES_THAT_DIFFER = {"Poom5741__mm-bot/1": "its heading ends in '✓ COMPLETE (DATE)': a state, not a name"}

pytestmark = pytest.mark.skipif(not PROJECTS, reason="no corpus beside the repository (../shared/corpus)")
each_project = pytest.mark.parametrize("project", PROJECTS, ids=[path.name for path in PROJECTS])


def expected(project: Path) -> list[dict[str, Any]]:
    """The phases that the peer's tool sees."""
    told = json.loads((CORPUS / "expected.json").read_text(encoding="utf-8"))[project.name]
    return cast("list[dict[str, Any]]", told["roadmap"]["phases"])


@each_project
def test_the_phases_are_those_that_the_peer_sees(project: Path) -> None:
    phases = read_planning(project).phases

    assert [phase.number for phase in phases] == [told["number"] for told in expected(project)]
    assert {
        phase.number: phase.name
        for phase in phases
        if f"{project.name}/{phase.number}" not in NAMES_THAT_DIFFER
    } == {
        told["number"]: told["name"]
        for told in expected(project)
        if f"{project.name}/{told['number']}" not in NAMES_THAT_DIFFER
    }


@each_project
def test_goals_plans_and_summaries_are_those_that_the_peer_sees(project: Path) -> None:
    phases = read_planning(project).phases

    assert [
        (phase.goal, len(phase.plans), sum(bool(plan.summary) for plan in phase.plans)) for phase in phases
    ] == [(told["goal"] or "", told["plan_count"], told["summary_count"]) for told in expected(project)]


@each_project
def test_changes_to_a_real_project_touch_few_lines_and_only_once(project: Path) -> None:
    planning = read_planning(project)
    for phase in planning.phases:
        texts = dict(planning.documents)
        for change in changes_of(phase, len(planning.phases)):
            texts |= apply_changes(texts, [change])
            assert apply_changes(texts, [change]) == {}

        assert scan(texts["ROADMAP.md"]).ticked(phase.number)
        assert all(distance(planning.documents[name], text) < 20 for name, text in texts.items())


def changes_of(phase: PhaseView, phases: int) -> list[Change]:
    """What the steps of a phase may change in ROADMAP and STATE."""
    number = phase.number
    return [
        TickPlan(phase=number, plan="1"),
        ListPlans(phase=number, plans=(("97", "more"),)),
        TickPlan(phase=number, plan="97"),
        TickPhase(phase=number, date="2026-01-31"),
        SetPosition(
            phase=number,
            phases=phases,
            name=phase.name,
            plan=1,
            plans=1,
            status="Done",
            percent=10,
            date="2026-01-31",
            activity="Did it",
        ),
        AddDecisions(phase=number, decisions=("a decision",)),
    ]


def distance(before: str, after: str) -> int:
    """How many lines are new, or gone."""
    old, new = before.split("\n"), after.split("\n")
    return len(set(new) - set(old)) + abs(len(new) - len(old))


@pytest.mark.parametrize(
    "path", sorted(CORPUS.glob("projects/**/phases/*/*-PLAN.md")), ids=lambda path: path.name
)
def test_a_real_plan_is_rendered_and_read_with_the_same_values(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    plan = parse_plan(text, path=f"x/{path.name}", phase="1")

    again = parse_plan(render_plan(plan), path=f"x/{path.name}", phase="1")

    assert (again.tasks, again.must_haves, again.objective) == (plan.tasks, plan.must_haves, plan.objective)
    assert (again.files_modified, again.depends_on) == (plan.files_modified, plan.depends_on)
