"""What the commands show of the trees in ``tests/data``, against each tree's ``expected.toml``.

``expected.toml`` is written from the rules of the format. It names every phase, plan, task,
requirement and gap, but only the fields that matter there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core.planning.config import get
from gsd_core.planning.survey import read_planning
from tests.cli.bench import call
from tests.cli.bench import said as json_of
from tests.planning.trees import TREES, each_project, each_tree, expected


def matching(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return *found* with only the fields that *wanted* names; TOML has no null, so None is ""."""
    assert len(found) == len(wanted), found
    return [
        {key: "" if one[key] is None else one[key] for key in want}
        for one, want in zip(found, wanted, strict=True)
    ]


def test_there_are_trees() -> None:
    assert len(TREES) >= 8


@each_tree
def test_the_phases_of_the_current_milestone(project: Path) -> None:
    shown, wanted = json_of("phases", "-C", project), expected(project)

    assert shown["milestones"] == wanted["milestones"]
    assert matching(shown["phases"], wanted["phases"]) == wanted["phases"]


@each_tree
def test_the_phases_of_all_milestones(project: Path) -> None:
    shown, wanted = json_of("phases", "-C", project, "--all"), expected(project)

    if "all_phases" in wanted:
        assert matching(shown["phases"], wanted["all_phases"]) == wanted["all_phases"]
    else:
        current = matching(shown["phases"][-len(wanted["phases"]) :], wanted["phases"])
        assert current == wanted["phases"]


@each_tree
def test_the_plans_of_each_phase(project: Path) -> None:
    for phase, wanted in expected(project).get("plans", {}).items():
        assert matching(json_of("plans", phase, "-C", project)["plans"], wanted) == wanted


@each_tree
def test_the_tasks_of_a_plan(project: Path) -> None:
    plans = {plan.id: plan for phase in read_planning(project).phases for plan in phase.plans}

    for plan, wanted in expected(project).get("tasks", {}).items():
        tasks = [{**attrs.asdict(task), "files": list(task.files)} for task in plans[plan].tasks]
        assert matching(tasks, wanted) == wanted


@each_tree
def test_the_must_haves_of_a_plan(project: Path) -> None:
    plans = {plan.id: plan for phase in read_planning(project).phases for plan in phase.plans}

    for plan, wanted in expected(project).get("must_haves", {}).items():
        found = plans[plan].must_haves
        assert [truth.text for truth in found.truths] == wanted["truths"]
        assert [artifact.path for artifact in found.artifacts] == wanted["artifacts"]
        assert [[link.source, link.target] for link in found.key_links] == wanted["key_links"]


@each_tree
def test_the_verdict_on_a_phase_and_its_gaps(project: Path) -> None:
    wanted = expected(project)

    for phase, status in wanted.get("verdicts", {}).items():
        shown = json_of("gaps", phase, "-C", project, "--read-only")
        gaps = wanted.get("gaps", {}).get(phase, [])
        assert shown["status"] == status
        assert matching(shown["gaps"], gaps) == gaps


@each_tree
def test_the_requirements(project: Path) -> None:
    wanted = expected(project).get("requirements", [])

    assert matching(json_of("requirements", "-C", project)["requirements"], wanted) == wanted


@each_tree
def test_the_health_of_a_tree(project: Path) -> None:
    result = call("health", "-C", project)

    assert result.stdout.splitlines()[0] == expected(project)["health"]


@each_tree
def test_a_run_reads_only_the_milestone_in_progress(project: Path) -> None:
    """Without a milestone in progress, there is nothing to work on."""
    planning, wanted = read_planning(project), expected(project)
    numbers = wanted.get("in_progress", [phase["number"] for phase in wanted["phases"]])

    assert (planning.name, planning.core_value) == (wanted["name"], wanted["core_value"])
    assert [phase.number for phase in planning.phases] == numbers


@each_tree
def test_the_settings_in_a_config(project: Path) -> None:
    config = read_planning(project).config

    for key, value in expected(project).get("config", {}).items():
        other = not value if isinstance(value, bool) else ""
        assert get(config, key, other) == value


@each_project
def test_the_status_follows_from_the_counts(project: Path) -> None:
    for phase in json_of("phases", "-C", project, "--all")["phases"]:
        plans, summaries, status = phase["plans"], phase["summaries"], phase["status"]

        assert (status == "complete") == (summaries >= plans > 0)
        assert (status == "partial") == (0 < summaries < plans)
        assert (status == "planned") == (plans > summaries == 0)


@each_project
def test_every_phase_belongs_to_a_listed_milestone_and_all_includes_the_current_phases(
    project: Path,
) -> None:
    shown = json_of("phases", "-C", project, "--all")
    versions = {milestone["version"] for milestone in shown["milestones"]}
    current = json_of("phases", "-C", project)["phases"]

    assert {phase["milestone"] for phase in shown["phases"]} <= {*versions, None}
    assert [phase for phase in current if phase not in shown["phases"]] == []


@each_project
@pytest.mark.parametrize("command", ["phases", "requirements", "health"])
def test_commands_that_read_a_project_write_nothing(project: Path, command: str) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}

    result = call(command, "-C", project)

    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
