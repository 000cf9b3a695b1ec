"""A finished project that we wrote, as our readers and GSD's own tool read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from gsd_core import (
    Artifact,
    Change,
    Evidence,
    GapReport,
    KeyLink,
    ListPlans,
    MapRequirement,
    MustHaves,
    PhaseView,
    Plan,
    PlannedPhase,
    Requirement,
    SetPosition,
    Task,
    TickPhase,
    TickPlan,
    Truth,
)
from gsd_core.planning.config import default_config, render_config
from gsd_core.planning.context import Decision, Scope, render_context
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.must_haves import required_of
from gsd_core.planning.plan import render_plan
from gsd_core.planning.project import render_project
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state
from gsd_core.planning.summary import render_summary
from gsd_core.planning.survey import read_planning
from gsd_core.planning.verification import render_verification
from tests.peer.reader import ask_gsd, needs_gsd

DATE = "2026-01-31"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)

REQUIREMENTS = (
    Requirement(id="CORE-01", category="Core", text="Users can add a task: with a title & a date"),
    Requirement(id="CORE-02", category="Core", text="Users can list <all> tasks"),
    Requirement(id="SHOW-01", category="Output", text="Lists are coloured | plain"),
)
PHASES = (
    PlannedPhase(
        number="1",
        name="Store & list",
        goal="Tasks are kept: nothing is lost",
        requirements=("CORE-01", "CORE-02"),
        criteria=("A user can add a task", "A user can list tasks"),
    ),
    PlannedPhase(
        number="2",
        name="Output",
        goal="Lists look well",
        depends_on=("1",),
        requirements=("SHOW-01",),
        criteria=("Colours on a terminal",),
    ),
)
FOLDERS = {"1": ".planning/phases/01-store-list", "2": ".planning/phases/02-output"}


def plan_of(phase: PlannedPhase, number: int, *after: str) -> Plan:
    """Return a plan that uses every field, with one requirement of its phase."""
    identity = f"0{phase.number}-0{number}"
    source = f"src/part_{phase.number}_{number}.py"
    return Plan(
        id=identity,
        phase=phase.number,
        name=f"Part {number} of {phase.name}",
        objective=f"Build part {number}.\n\nPurpose: it is needed: now\nOutput: {source}",
        wave=1 + len(after),
        depends_on=after,
        files_modified=(source,),
        requirements=phase.requirements[number - 1 : number],
        must_haves=MustHaves(
            truths=(Truth(id=f"{identity}:T1", text="It works: always"),),
            artifacts=(Artifact(path=source, provides="the part", min_lines=2),),
            key_links=(KeyLink(source=source, target="src/main.py", via="import", pattern=r"import\s+main"),),
        ),
        tasks=(
            Task(
                number=1,
                name="Write it",
                files=(source,),
                action="Write <task> & </task> handling\n\n## Task 9: no task",
                verify="It runs",
                check="python -c 'print(1 < 2)'",
                done="It prints",
            ),
            Task(number=2, name="Test it", files=(source,), action="Test", verify="Look", done="Green"),
        ),
        path=f"{FOLDERS[phase.number]}/{identity}-PLAN.md",
    )


PLANS = (plan_of(PHASES[0], 1), plan_of(PHASES[0], 2, "01-01"), plan_of(PHASES[1], 1))


def planned_documents() -> dict[str, str]:
    """Return the root files of a project that has just been planned."""
    return {
        "PROJECT.md": render_project(
            "Tasks", "A list of tasks.", "Nothing is lost", REQUIREMENTS, (), (("Sync", "later"),), (), DATE
        ),
        "REQUIREMENTS.md": render_requirements(
            "Tasks", "Nothing is lost", REQUIREMENTS, (), (("Sync", "later"),), PHASES, DATE
        ),
        "ROADMAP.md": render_roadmap("Tasks", "First store, then show.", PHASES, DATE),
        "STATE.md": render_state(core_value="Nothing is lost", phases=PHASES, date=DATE),
        "config.json": render_config(default_config()),
    }


def changes_of(phase: PlannedPhase) -> list[Change]:
    """Return what the steps of a phase change in the root files."""
    plans = [plan for plan in PLANS if plan.phase == phase.number]
    return [
        ListPlans(phase=phase.number, plans=tuple((plan.id, plan.name) for plan in plans)),
        *(TickPlan(phase=phase.number, plan=plan.id) for plan in plans),
        *(MapRequirement(requirement=i, phase=phase.number, status="Complete") for i in phase.requirements),
        SetPosition(
            phase=phase.number,
            phases=len(PHASES),
            name=phase.name,
            plan=len(plans),
            plans=len(plans),
            status="Phase complete",
            percent=100,
            date=DATE,
            activity=f"Completed phase {phase.number}",
        ),
        TickPhase(phase=phase.number, date=DATE),
    ]


def write(root: Path, path: str, text: str) -> None:
    """Write a file, and create the folders above it."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A project with all phases executed and verified."""
    texts = planned_documents()
    for phase in PHASES:
        texts |= apply_changes(texts, changes_of(phase))
    for name, text in texts.items():
        write(tmp_path, f".planning/{name}", text)
    for plan in PLANS:
        write(tmp_path, plan.path, render_plan(plan))
        write(tmp_path, plan.path.replace("PLAN", "SUMMARY"), summary_of(plan))
    for view in read_planning(tmp_path).phases:
        evidence = tuple(
            Evidence(about=must_have.id, holds=True, proof="the check ran")
            for must_have in required_of(view, view.plans)
        )
        text = render_verification(view, GapReport(evidence=evidence), now=NOW)
        write(tmp_path, f"{view.directory}/0{view.number}-VERIFICATION.md", text)
        write(tmp_path, f"{view.directory}/0{view.number}-CONTEXT.md", context_of(view))
    return tmp_path


def summary_of(plan: Plan) -> str:
    return render_summary(
        plan,
        date=DATE,
        duration=timedelta(minutes=3),
        commits=[(task.name, "abcdef1234567") for task in plan.tasks],
        created=plan.files_modified,
        modified=(),
        accomplishments=["It works: now"],
        decisions=["Keep it small"],
        deviations=[],
        issues=[],
    )


def context_of(view: PhaseView) -> str:
    decisions = [Decision(area="Storage", text="One file"), Decision(area="Storage", text="JSON")]
    return render_context(view, decisions, Scope(discretion=("Names",)), DATE)


def test_our_reader_reads_a_finished_project_as_complete(finished: Path) -> None:
    planning = read_planning(finished)

    assert [phase.ticked for phase in planning.phases] == [True, True]
    assert [phase.verdict and phase.verdict.status for phase in planning.phases] == ["passed", "passed"]
    scores = [phase.verdict.score.split(" ")[0].split("/") for phase in planning.phases if phase.verdict]
    assert [holding == total != "0" for holding, total in scores] == [True, True]
    assert {requirement.status for requirement in planning.requirements} == {"Complete"}
    read = [attrs.evolve(plan, text="", summary="") for phase in planning.phases for plan in phase.plans]
    assert read == list(PLANS)
    assert all(plan.summary for phase in planning.phases for plan in phase.plans)


def test_our_reader_returns_what_the_roadmap_was_rendered_from(finished: Path) -> None:
    planning = read_planning(finished)

    assert planning.name == "Tasks"
    assert planning.core_value == "Nothing is lost"
    read = [
        PlannedPhase(
            number=phase.number,
            name=phase.name,
            goal=phase.goal,
            depends_on=phase.depends_on,
            requirements=phase.requirements,
            criteria=phase.criteria,
        )
        for phase in planning.phases
    ]
    assert read == list(PHASES)
    assert [(one.id, one.text, one.category) for one in planning.requirements] == [
        (one.id, one.text, one.category) for one in REQUIREMENTS
    ]


@needs_gsd
def test_gsd_reads_a_finished_project_as_complete(finished: Path) -> None:
    report = ask_gsd(finished, "roadmap", "analyze")

    phases = cast("list[dict[str, Any]]", report["phases"])
    assert [(one["number"], one["name"], one["disk_status"], one["roadmap_complete"]) for one in phases] == [
        ("1", "Store & list", "complete", True),
        ("2", "Output", "complete", True),
    ]
    assert [(one["plan_count"], one["summary_count"]) for one in phases] == [(2, 2), (1, 1)]
    assert [one["goal"] for one in phases] == [phase.goal for phase in PHASES]
    assert (report["progress_percent"], report["current_phase"], report["next_phase"]) == (100, None, None)


@needs_gsd
def test_gsd_reads_our_plans_as_we_do(finished: Path) -> None:
    report = ask_gsd(finished, "phase-plan-index", "1")

    assert [
        (
            plan["id"],
            plan["wave"],
            plan["depends_on"],
            plan["files_modified"],
            plan["task_count"],
            plan["has_summary"],
        )
        for plan in report["plans"]
    ] == [
        ("01-01", 1, [], ["src/part_1_1.py"], 2, True),
        ("01-02", 2, ["01-01"], ["src/part_1_2.py"], 2, True),
    ]
    assert report["incomplete"] == []
