"""What the commands show of real projects agrees with GSD's own tool, except where explained here.

The projects are optional; see ``tests.planning.trees``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_core.model.ids import normal_phase
from gsd_core.planning.numbers import phase_numbers
from tests.cli.bench import said as json_of
from tests.planning.trees import each_corpus_project, gsd_report

NO_PHASES_IN_GSD = {
    "Prodro21__RackPro": "only shipped milestones: we show the last one, as documented",
    "ProgressPlanner__markdown-alternate": "no ROADMAP.md: we show the last milestone from its archive",
}
OTHER_MILESTONES = {
    "PloganNV__gsd-town": (
        ("6", "7", "8", "9", "10"),
        "the list and STATE say that v3.0 is in progress, and give it phases 11-14; GSD lists all phases",
    )
}
PHASE_DIFFERENCES = {
    "Poom5741__mm-bot 1 name": "its heading ends in '✓ COMPLETE (DATE)', a state, not a name",
    "Poom5741__mm-bot 1 complete": "the same heading says so; GSD only looks for a checkbox",
    "PloganNV__gsd-town 12 complete": "its row of the progress table says Complete; it has no checkbox",
    "PloganNV__gsd-town 14 complete": "STATE.md is at this phase and calls it COMPLETE",
    "Pouryaak__LokulMem 8 complete": "its plans are executed, and STATE.md says 'Milestone complete'",
    **{
        f"Praciller__stockrush-go {i} complete": "a table of STATE.md says so; GSD reads ROADMAP.md only"
        for i in range(1, 11)
    },
    "mirkanu__gsd-dashboard 18.1 complete": "its row of the progress table says Complete, in another column",
    "PowerAppsDarren__accessibility-platform 2 depends_on": "the field's name is Dependencies",
    "PowerAppsDarren__accessibility-platform 3 depends_on": "the field's name is Dependencies",
}
LOKULMEM = "it is in the plan; GSD loses the frontmatter because of a backslash in a quoted string"
WAVE = "its wave follows from the dependency that GSD loses"
FILE_NAME = "the plan is named by its file name; we return its id"
PLAN_DIFFERENCES = {
    **{
        f"Pouryaak__LokulMem {i} depends_on": LOKULMEM
        for i in ("04-01", "04-02", "05-02", "06-02", "06-03a", "06-03b", "07-02", "07-03a", "07-03b")
    },
    **{
        f"Pouryaak__LokulMem {i} files_modified": LOKULMEM
        for i in (
            "04-01",
            "04-02",
            "05-01",
            "05-02",
            "06-01",
            "06-02",
            "06-03a",
            "06-03b",
            "07-01",
            "07-02",
            "07-03a",
            "07-03b",
        )
    },
    **{
        f"Pouryaak__LokulMem {i} wave": WAVE
        for i in (
            "04-01",
            "04-02",
            "05-02",
            "05-03",
            "06-02",
            "06-03a",
            "06-03b",
            "07-02",
            "07-03a",
            "07-03b",
        )
    },
    **{
        f"PrajaNeeti__MakeGovAccountable {i} depends_on": FILE_NAME
        for i in ("03-python-scraper", "02-dashboard-ui", "04b", "04c", "04e")
    },
    "PrajaNeeti__MakeGovAccountable 01-setup-nextjs depends_on": "'none' is not a plan",
    "PrajaNeeti__MakeGovAccountable 02-supabase-schema depends_on": "'none' is not a plan",
    **{
        f"PrajaNeeti__MakeGovAccountable {i} wave": "it depends on a plan that is named by its file name"
        for i in ("03-python-scraper", "02-dashboard-ui", "04b", "04c", "04e")
    },
}


def differences(found: dict[str, Any], expected: dict[str, Any], name: str) -> list[str]:
    """Return the fields that differ, as ``PROJECT ITEM FIELD``."""
    return [f"{name} {field}" for field in expected if found[field] != expected[field]]


def gsd_phase(phase: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": normal_phase(phase["number"]),
        "name": phase["name"],
        "goal": phase["goal"] or "",
        "depends_on": list(phase_numbers(phase["depends_on"] or "")),
        "plans": phase["plan_count"],
        "summaries": phase["summary_count"],
        "complete": phase["roadmap_complete"],
    }


def gsd_plan(plan: dict[str, Any]) -> dict[str, Any]:
    fields = ("id", "wave", "depends_on", "autonomous", "files_modified", "has_summary")
    return {field: plan[field] for field in fields}


@each_corpus_project
def test_phases_agree_with_gsd_except_where_explained(project: Path) -> None:
    found = json_of("phases", "-C", project)["phases"]
    reported = [gsd_phase(phase) for phase in gsd_report(project)["roadmap"]["phases"]]
    if project.name in NO_PHASES_IN_GSD:
        assert reported == []
        assert found != []
        return

    others, _ = OTHER_MILESTONES.get(project.name, ((), ""))
    reported = [phase for phase in reported if phase["number"] not in others]
    assert [phase["number"] for phase in found] == [phase["number"] for phase in reported]
    differing = [
        line
        for ours, theirs in zip(found, reported, strict=True)
        for line in differences(ours, theirs, f"{project.name} {ours['number']}")
    ]
    assert sorted(differing) == sorted(line for line in PHASE_DIFFERENCES if line.split()[0] == project.name)


@each_corpus_project
def test_plans_agree_with_gsd_except_where_explained(project: Path) -> None:
    differing: list[str] = []
    for folder, reported in gsd_report(project)["plans"].items():
        number = folder.split("-")[0]
        found = json_of("plans", number, "-C", project)["plans"]
        theirs = [gsd_plan(plan) for plan in reported["plans"]]
        assert [plan["id"] for plan in found] == [plan["id"] for plan in theirs], folder
        differing += [
            line
            for ours, other in zip(found, theirs, strict=True)
            for line in differences(ours, other, f"{project.name} {ours['id']}")
        ]

    assert sorted(differing) == sorted(line for line in PLAN_DIFFERENCES if line.split()[0] == project.name)


@each_corpus_project
def test_no_plan_has_fewer_tasks_than_gsd_counts(project: Path) -> None:
    for folder, reported in gsd_report(project)["plans"].items():
        found = json_of("plans", folder.split("-")[0], "-C", project)["plans"]

        fewer = {
            ours["id"]: (ours["tasks"], plan["task_count"])
            for ours, plan in zip(found, reported["plans"], strict=True)
            if ours["tasks"] < plan["task_count"]
        }
        assert fewer == {}


@each_corpus_project
def test_shipped_milestones_are_read_from_details_elements_and_archives(project: Path) -> None:
    if project.name != "mirkanu__gsd-dashboard":
        return
    shown = json_of("phases", "-C", project, "--all")

    shipped = [milestone["version"] for milestone in shown["milestones"] if milestone["shipped"]]
    assert shipped == ["v1.0", "v1.1", "v1.2", "v2.0", "v2.1"]
    plans = {phase["number"]: phase["plans"] for phase in shown["phases"] if phase["milestone"] == "v2.1"}
    assert plans["13.1"] == 3
