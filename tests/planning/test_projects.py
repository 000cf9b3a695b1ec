"""Whole projects: ours in ``tests/data`` and, where they are at hand, real ones.

The real ones are also compared with what GSD's own tool reports.
"""

from __future__ import annotations

import re
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from gsd_core import (
    AddDecisions,
    Change,
    ListPlans,
    MapRequirement,
    Planning,
    SetPosition,
    TickPhase,
    TickPlan,
    padded,
)
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.plan import parse_plan, render_plan
from gsd_core.planning.roadmap import parse_roadmap
from gsd_core.planning.survey import read_planning
from tests.planning.trees import (
    CORPUS_PROJECTS,
    TREES,
    each_corpus_project,
    each_project,
    gsd_report,
)

DIFFERENT_NAMES = {"Poom5741__mm-bot/1": "its heading ends in '✓ COMPLETE (DATE)': a state, not a name"}
PLANS = [
    path
    for root in (*TREES, *CORPUS_PROJECTS)
    for pattern in ("**/phases/*/*-PLAN.md", "**/phases/*/plans/PLAN-*.md")
    for path in sorted(root.glob(pattern))
]
OTHER_MILESTONES = {"PloganNV__gsd-town": ("6", "7", "8", "9", "10")}
"""Phases that GSD gives to the milestone in progress, although the list of milestones says otherwise."""
ENCODINGS = {"unchanged": ("\n", ""), "CRLF": ("\r\n", ""), "BOM": ("\n", "\ufeff")}


def reported_phases(project: Path) -> list[dict[str, Any]]:
    """Return the phases of the milestone in progress, as GSD reports them."""
    others = OTHER_MILESTONES.get(project.name, ())
    return [one for one in gsd_report(project)["roadmap"]["phases"] if one["number"] not in others]


@each_corpus_project
def test_the_phases_agree_with_gsd(project: Path) -> None:
    phases, reported = read_planning(project).phases, reported_phases(project)

    assert [phase.number for phase in phases] == [phase["number"] for phase in reported]
    names = {phase["number"]: phase["name"] for phase in reported}
    differing = {f"{project.name}/{phase.number}" for phase in phases if phase.name != names[phase.number]}
    assert differing == {name for name in DIFFERENT_NAMES if name.startswith(f"{project.name}/")}


@each_corpus_project
def test_goals_and_the_numbers_of_plans_and_summaries_agree_with_gsd(project: Path) -> None:
    phases, reported = read_planning(project).phases, reported_phases(project)

    assert [
        (phase.goal, len(phase.plans), sum(bool(plan.summary) for plan in phase.plans)) for phase in phases
    ] == [(phase["goal"] or "", phase["plan_count"], phase["summary_count"]) for phase in reported]


@pytest.mark.slow
@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_a_rendered_plan_is_read_with_the_same_values(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    plan = parse_plan(text, path=f"x/{path.name}", phase="1")

    again = parse_plan(render_plan(plan), path=f"x/{path.name}", phase="1")

    assert (again.tasks, again.must_haves, again.objective) == (plan.tasks, plan.must_haves, plan.objective)
    assert (again.files_modified, again.depends_on) == (plan.files_modified, plan.depends_on)


def changes_of(planning: Planning) -> list[Change]:
    """Return the changes that the steps of all phases make."""
    changes: list[Change] = []
    for phase in planning.phases:
        changes += [
            TickPlan(phase=phase.number, plan="1"),
            ListPlans(phase=phase.number, plans=(("97", "more"),)),
            TickPlan(phase=phase.number, plan="97"),
            TickPhase(phase=phase.number, date="2026-01-31"),
            AddDecisions(phase=phase.number, decisions=("a decision",)),
            SetPosition(
                phase=phase.number,
                phases=len(planning.phases),
                name=phase.name,
                plan=1,
                plans=2,
                status="Done",
                percent=50,
                date="2026-01-31",
                activity="Did it",
            ),
        ]
    if "REQUIREMENTS.md" in planning.documents:
        changes += [
            MapRequirement(requirement=requirement.id, phase="1", status="Complete")
            for requirement in planning.requirements[:5]
        ]
    return changes


def documents(project: Path, encoding: str) -> dict[str, str]:
    """Return the files that changes apply to, with the line ends and byte order mark of an encoding."""
    line_end, mark = ENCODINGS[encoding]
    found: dict[str, str] = {}
    for name in ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md"):
        path = project / ".planning" / name
        if path.exists():
            text = path.read_bytes().decode()
            if line_end == "\r\n":
                text = text.replace("\r\n", "\n").replace("\n", line_end)
            found[name] = mark + text
    return found


@pytest.mark.slow
@each_project
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_change_leaves_all_other_lines_alone_and_applies_only_once(project: Path, encoding: str) -> None:
    before = documents(project, encoding)
    for change in changes_of(read_planning(project)):
        after = before | apply_changes(before, [change])

        for name, text in before.items():
            old, new = text.split("\n"), after[name].split("\n")
            diff = [
                line
                for line in unified_diff(old, new, n=0, lineterm="")
                if not line.startswith(("---", "+++"))
            ]
            removed = [line for line in diff if line.startswith("-")]
            added = [line for line in diff if line.startswith("+")]
            # The frontmatter of STATE repeats what the body says.
            assert len(removed) <= (16 if name == "STATE.md" else 8)
            new_section = any(re.match(r"\+#+ Phase ", line) for line in added)
            assert len(added) <= len(removed) + (8 if new_section else 4)
            assert {line[-1:] == "\r" for line in new[:-1]} <= {line[-1:] == "\r" for line in old[:-1]}
            assert after[name].startswith(ENCODINGS[encoding][1])
        assert apply_changes(after, [change]) == {}
        before = after


@each_project
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_without_changes_no_file_is_rewritten(project: Path, encoding: str) -> None:
    assert apply_changes(documents(project, encoding), []) == {}


@each_project
def test_listed_plans_are_read_back_and_no_phase_is_lost(project: Path) -> None:
    planning = read_planning(project)
    texts = dict(planning.documents)
    for phase in planning.phases:
        texts |= apply_changes(texts, [ListPlans(phase=phase.number, plans=(("97", "more"),))])
    roadmap = parse_roadmap(texts.get("ROADMAP.md", ""))
    after = {mention.number: mention for mention in roadmap.phases(roadmap.current(planning.milestone))}

    for phase in planning.phases:
        details = roadmap.details(after[phase.number])
        assert (after[phase.number].name, details.goal) == (phase.name, phase.goal)
        assert [plan.id for plan in details.plans if plan.text == "more"] == [f"{padded(phase.number)}-97"]
    assert sorted(after) == sorted(phase.number for phase in planning.phases)


@each_project
def test_a_ticked_phase_is_read_as_complete(project: Path) -> None:
    planning = read_planning(project)
    for phase in planning.phases:
        after = apply_changes(planning.documents, [TickPhase(phase=phase.number, date="2026-01-31")])

        roadmap = parse_roadmap((dict(planning.documents) | after)["ROADMAP.md"])
        found = [
            one for one in roadmap.phases(roadmap.current(planning.milestone)) if one.number == phase.number
        ]
        assert all(map(roadmap.is_complete, found))
