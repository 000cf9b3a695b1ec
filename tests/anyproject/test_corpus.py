"""The commands on real projects agree with the peer's own tool, or it is said why they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_core.model.ids import normal_phase
from gsd_core.planning.numbers import phase_numbers
from tests.anyproject.corpus import PROJECTS, each_project, expected, needs_corpus
from tests.cli.bench import said

pytestmark = needs_corpus

NO_PHASES_FOR_THE_PEER = {
    "Prodro21__RackPro": "only shipped milestones: we show the last one, as the command promises",
    "ProgressPlanner__markdown-alternate": "no ROADMAP.md: we show the last milestone from its archive",
}
PHASES = {
    "Poom5741__mm-bot 1 name": "its heading ends in '✓ COMPLETE (DATE)', which is a state and no name",
    "Poom5741__mm-bot 1 complete": "the same heading says so; the peer looks for a checkbox only",
    "PloganNV__gsd-town 6 complete": "its row of the progress table says Complete; it has no checkbox",
    "PloganNV__gsd-town 10 complete": "its row of the progress table says Complete; it has no checkbox",
    "PloganNV__gsd-town 12 complete": "its row of the progress table says Complete; it has no checkbox",
    "PowerAppsDarren__accessibility-platform 2 depends_on": "the field's name is Dependencies",
    "PowerAppsDarren__accessibility-platform 3 depends_on": "the field's name is Dependencies",
}
LOKULMEM = "the plan says so; a backslash in a quoted text makes the peer's reader lose the frontmatter"
DEPENDS_ON_IT = "its wave follows from the dependency that the peer's reader loses"
FILE_NAME = "the file names the plan by its file name; we give the plan's id"
PLANS = {
    **{f"Pouryaak__LokulMem {i} depends_on": LOKULMEM for i in (
        "04-01", "04-02", "05-02", "06-02", "06-03a", "06-03b", "07-02", "07-03a", "07-03b")},
    **{f"Pouryaak__LokulMem {i} files_modified": LOKULMEM for i in (
        "04-01", "04-02", "05-01", "05-02", "06-01", "06-02", "06-03a", "06-03b",
        "07-01", "07-02", "07-03a", "07-03b")},
    **{f"Pouryaak__LokulMem {i} wave": DEPENDS_ON_IT for i in (
        "04-01", "04-02", "05-02", "05-03", "06-02", "06-03a", "06-03b", "07-02", "07-03a", "07-03b")},
    **{f"PrajaNeeti__MakeGovAccountable {i} depends_on": FILE_NAME for i in (
        "03-python-scraper", "02-dashboard-ui", "04b", "04c", "04e")},
    "PrajaNeeti__MakeGovAccountable 01-setup-nextjs depends_on": "'none' is no plan",
    "PrajaNeeti__MakeGovAccountable 02-supabase-schema depends_on": "'none' is no plan",
    **{f"PrajaNeeti__MakeGovAccountable {i} wave": "the plan that its file names comes before" for i in (
        "03-python-scraper", "02-dashboard-ui", "04b", "04c", "04e")},
}  # fmt: skip


def differences(found: dict[str, Any], told: dict[str, Any], name: str) -> list[str]:
    """Return the fields that differ, as ``PROJECT ITEM FIELD``."""
    return [f"{name} {field}" for field in told if found[field] != told[field]]


def phase_of_peer(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": normal_phase(told["number"]),
        "name": told["name"],
        "goal": told["goal"] or "",
        "depends_on": list(phase_numbers(told["depends_on"] or "")),
        "plans": told["plan_count"],
        "summaries": told["summary_count"],
        "complete": told["roadmap_complete"],
    }


def plan_of_peer(told: dict[str, Any]) -> dict[str, Any]:
    fields = ("id", "wave", "depends_on", "autonomous", "files_modified", "has_summary")
    return {field: told[field] for field in fields}


@each_project
def test_phases_agree_with_the_peer_but_for_what_is_explained(project: Path) -> None:
    found = said("phases", "-C", project)["phases"]
    told = [phase_of_peer(phase) for phase in expected()[project.name]["roadmap"]["phases"]]
    if project.name in NO_PHASES_FOR_THE_PEER:
        assert told == []
        assert found != []
        return

    assert [phase["number"] for phase in found] == [phase["number"] for phase in told]
    unlike = [
        line
        for ours, theirs in zip(found, told, strict=True)
        for line in differences(ours, theirs, f"{project.name} {ours['number']}")
    ]
    assert sorted(unlike) == sorted(line for line in PHASES if line.split()[0] == project.name)


@each_project
def test_plans_agree_with_the_peer_but_for_what_is_explained(project: Path) -> None:
    unlike: list[str] = []
    for folder, told in expected()[project.name]["plans"].items():
        number = folder.split("-")[0]
        found = said("plans", number, "-C", project)["plans"]
        theirs = [plan_of_peer(plan) for plan in told["plans"]]
        assert [plan["id"] for plan in found] == [plan["id"] for plan in theirs], folder
        unlike += [
            line
            for ours, other in zip(found, theirs, strict=True)
            for line in differences(ours, other, f"{project.name} {ours['id']}")
        ]

    assert sorted(unlike) == sorted(line for line in PLANS if line.split()[0] == project.name)


@each_project
def test_tasks_are_at_least_those_that_the_peer_counts(project: Path) -> None:
    for folder, told in expected()[project.name]["plans"].items():
        found = said("plans", folder.split("-")[0], "-C", project)["plans"]

        fewer = {
            ours["id"]: (ours["tasks"], plan["task_count"])
            for ours, plan in zip(found, told["plans"], strict=True)
            if ours["tasks"] < plan["task_count"]
        }
        assert fewer == {}


@each_project
def test_the_status_is_what_the_counts_say(project: Path) -> None:
    for phase in said("phases", "-C", project, "--all")["phases"]:
        plans, summaries, status = phase["plans"], phase["summaries"], phase["status"]

        assert (status == "complete") == (summaries >= plans > 0)
        assert (status == "partial") == (0 < summaries < plans)
        assert (status == "planned") == (plans > summaries == 0)


@each_project
def test_every_phase_has_a_milestone_of_the_list_and_all_holds_the_current_ones(project: Path) -> None:
    told = said("phases", "-C", project, "--all")
    versions = {milestone["version"] for milestone in told["milestones"]}
    current = said("phases", "-C", project)["phases"]

    assert {phase["milestone"] for phase in told["phases"]} <= {*versions, None}
    assert [phase for phase in current if phase not in told["phases"]] == []


def test_shipped_milestones_are_read_from_their_folds_and_archives() -> None:
    [project] = [path for path in PROJECTS if path.name == "mirkanu__gsd-dashboard"]

    told = said("phases", "-C", project, "--all")

    shipped = [milestone["version"] for milestone in told["milestones"] if milestone["shipped"]]
    assert shipped == ["v1.0", "v1.1", "v1.2", "v2.0", "v2.1"]
    counted = {phase["number"]: phase["plans"] for phase in told["phases"] if phase["milestone"] == "v2.1"}
    assert counted["13.1"] == 3


@each_project
@pytest.mark.parametrize("command", ["phases", "requirements", "health"])
def test_nothing_is_written_into_a_project_that_is_read(project: Path, command: str) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}

    said_anyway(command, project)

    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def said_anyway(command: str, project: Path) -> None:
    from tests.cli.bench import call

    result = call(command, "-C", project)
    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.stderr
