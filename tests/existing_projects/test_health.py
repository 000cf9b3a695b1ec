"""``gsd health``: GSD's codes, and repairs that are shown before they are applied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gsd_core.planning.config import default_config
from gsd_core.planning.health import check_health, plan_repair, repairs
from gsd_core.planning.idea import render_idea
from tests.cli.bench import call, repository
from tests.cli.bench import said as json_of
from tests.planning.trees import each_project, make_project, plan_text

STATE = "# Project State\n\n## Current Position\n\nPhase: 1 of 2 (Core)\nPlan: 1 of 1 in current phase\n"
ROADMAP = "- [ ] **Phase 1: Core** - a\n- [ ] **Phase 2: Rest** - b\n### Phase 1: Core\n### Phase 2: Rest\n"
COMPLETE: dict[str, str | bytes] = {
    "PROJECT.md": "# P\n## What This Is\nx\n## Core Value\nIt lasts\n## Requirements\n",
    "ROADMAP.md": ROADMAP,
    "STATE.md": STATE,
    "config.json": json.dumps(default_config(), indent=2),
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-01-SUMMARY.md": "done",
}


def health(root: Path, *options: str) -> dict[str, Any]:
    result = call("health", "-C", root, "--json", *options)
    report: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (1 if report["status"] == "broken" else 0)
    return report


def codes(report: dict[str, Any]) -> list[str]:
    return [issue["code"] for severity in ("errors", "warnings", "info") for issue in report[severity]]


def test_a_complete_project_is_healthy_and_an_unstarted_phase_is_only_information(tmp_path: Path) -> None:
    report = health(make_project(tmp_path, COMPLETE))

    assert (report["status"], codes(report)) == ("healthy", ["W006"])
    assert [one["code"] for one in report["info"]] == ["W006"]


BROKEN: dict[str, tuple[dict[str, str | bytes | None], str, str]] = {
    "E002": ({"PROJECT.md": None}, "errors", ".planning/PROJECT.md"),
    "E003": ({"ROADMAP.md": None}, "errors", ".planning/ROADMAP.md"),
    "E003 empty": ({"ROADMAP.md": ""}, "errors", ".planning/ROADMAP.md"),
    "E003 no text": ({"ROADMAP.md": b"### Phase 1: \xe4\n"}, "errors", ".planning/ROADMAP.md"),
    "E004": ({"STATE.md": None}, "errors", ".planning/STATE.md"),
    "E004 no text": ({"STATE.md": b"Phase: \xff\n"}, "errors", ".planning/STATE.md"),
    "E005": ({"config.json": '{"mode": '}, "errors", ".planning/config.json"),
    "E005 list": ({"config.json": "[]"}, "errors", ".planning/config.json"),
    "W001": ({"PROJECT.md": "# P\n## What This Is\n## Requirements\n"}, "warnings", ".planning/PROJECT.md"),
    "W002": ({"STATE.md": STATE.replace("1 of 2", "7 of 2")}, "warnings", ".planning/STATE.md"),
    "W003": ({"config.json": None}, "warnings", ".planning/config.json"),
    "W004": ({"config.json": '{"model_profile": "best"}'}, "warnings", ".planning/config.json"),
    "W005": ({"phases/Core/x.md": ""}, "warnings", ".planning/phases/Core"),
    "W006": (
        {"ROADMAP.md": "- [x] **Phase 1: Core** - a\n- [x] **Phase 2: Rest** - b\n"},
        "warnings",
        ".planning/ROADMAP.md",
    ),
    "W104": ({"phases/1-again/x.md": ""}, "warnings", ".planning/phases/1-again"),
    "W007": ({"phases/09-more/x.md": ""}, "warnings", ".planning/phases/09-more"),
    "E101": (
        {"REQUIREMENTS.md": "## v1 Requirements\n\n- [ ] **CORE-01**: It lasts\n"},
        "errors",
        ".planning/REQUIREMENTS.md",
    ),
    "E102": (
        {
            "ROADMAP.md": f"{ROADMAP}**Requirements**: CORE-01\n",
            "REQUIREMENTS.md": "## v1 Requirements\n\n- [ ] **CORE-01**: It lasts\n",
            "IDEA.md": render_idea("i.md", "It lasts. It is fast.", {"S1": ("CORE-01",), "S2": ("CORE-02",)}),
        },
        "errors",
        ".planning/REQUIREMENTS.md",
    ),
    "E104": ({"todos/pending/a.md": b"\xff"}, "errors", ".planning/todos/pending/a.md"),
    "E105": (
        {"config.json": '{"git": {"branching_strategy": "phase", "phase_branch_template": "phase-{N}"}}'},
        "errors",
        ".planning/config.json",
    ),
    "I001": ({"phases/01-core/01-01-SUMMARY.md": None}, "info", ".planning/phases/01-core/01-01-PLAN.md"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_issue_has_gsds_code_a_path_and_a_fix(tmp_path: Path, case: str) -> None:
    changed, severity, path = BROKEN[case]
    root = make_project(tmp_path, {k: v for k, v in {**COMPLETE, **changed}.items() if v is not None})
    report = health(root)

    found = [one for one in report[severity] if one["code"] == case.split()[0]]
    assert [(one["path"], bool(one["message"]), bool(one["fix"])) for one in found] == [(path, True, True)]
    assert report["status"] == {"errors": "broken", "warnings": "degraded", "info": "healthy"}[severity]


@pytest.mark.parametrize(
    "requirements",
    [
        "## v1 Requirements\n\n- [ ] **CORE-01**: x\n\n## v2 Requirements\n\n- **LATER-01**: y\n",
        "## v1 Requirements\n\n- [x] **OLD-01**: x\n- [ ] **CORE-01**: x\n",
        "## v1 Requirements\n\n- [ ] **A-01**: x\n\n"
        "| Requirement | Phase | Status |\n|-|-|-|\n| A-01 | Phase 2 | Pending |\n",
        "## Out of Scope\n\n- **CORE-09**: x\n",
    ],
)
def test_a_requirement_that_is_covered_done_or_for_later_is_no_issue(
    tmp_path: Path, requirements: str
) -> None:
    roadmap = f"{ROADMAP}**Requirements**: CORE-01\n"
    root = make_project(tmp_path, {**COMPLETE, "ROADMAP.md": roadmap, "REQUIREMENTS.md": requirements})

    assert codes(health(root)) == ["W006"]


def test_requirements_of_a_later_milestone_are_not_compared_with_the_idea(tmp_path: Path) -> None:
    files = {
        "ROADMAP.md": f"{ROADMAP}**Requirements**: NEXT-01\n",
        "REQUIREMENTS.md": "## v1 Requirements\n\n- [ ] **NEXT-01**: x\n",
        "IDEA.md": render_idea("i.md", "It lasts.", {"S1": ("CORE-01",)}),
    }

    assert codes(health(make_project(tmp_path, {**COMPLETE, **files}))) == ["W006"]


@pytest.mark.parametrize("folder", ["phases", "phases/01-core", "milestones", "todos", "todos/pending"])
def test_a_folder_that_leads_out_of_the_project_is_broken(tmp_path: Path, folder: str) -> None:
    root, outside = make_project(tmp_path / "project", COMPLETE), tmp_path / "outside"
    (outside / "pending").mkdir(parents=True)
    link = root / ".planning" / folder
    shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    refused = [one for one in (["todo", "list"], ["next"], ["phases"]) if call(*one, "-C", root).exit_code]

    assert (health(root)["status"] == "broken") is bool(refused)


@pytest.mark.parametrize("text", ["[run\n", "[run]\ngap_rounds = 'x'\n", "[nope]\na = 1\n"])
def test_settings_that_commands_refuse_are_broken(tmp_path: Path, text: str) -> None:
    root = make_project(tmp_path, COMPLETE)
    (root / "gsd.toml").write_text(text)
    [issue] = health(root)["errors"]

    assert (issue["code"], bool(issue["fix"])) == ("E106", True)
    assert issue["message"] in call("gaps", "1", "-C", root).stderr


def test_a_project_without_planning_is_broken(tmp_path: Path) -> None:
    assert codes(health(tmp_path)) == ["E001"]


@pytest.mark.parametrize("name", ["01-core", "02.1-hot-fix", "12A-x", "CK-03-x", "02-01-x", "GSD.02-05-x"])
def test_each_form_of_folder_name_is_accepted(tmp_path: Path, name: str) -> None:
    root = make_project(tmp_path, {**COMPLETE, f"phases/{name}/x.md": ""})

    assert "W005" not in codes(health(root))


REPAIRABLE = ["E004", "E004 no text", "E005", "E005 list", "W002", "W003"]


@pytest.mark.parametrize("case", REPAIRABLE)
def test_without_a_terminal_a_repair_is_only_shown(tmp_path: Path, case: str) -> None:
    root = broken(tmp_path, case)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    result = call("health", "-C", root, "--repair")

    path = BROKEN[case][2]
    assert f"+++ b/{path}" in result.stdout
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("case", REPAIRABLE)
def test_an_accepted_repair_resolves_the_issue(tmp_path: Path, case: str) -> None:
    root = broken(tmp_path, case)

    report = health(root, "--repair", "--yes")

    assert [(one["path"], one["codes"], one["applied"]) for one in report["repairs"]] == [
        (BROKEN[case][2], [case.split()[0]], True)
    ]
    assert case.split()[0] not in codes(report)
    assert health(root, "--repair", "--yes")["repairs"] == []


def broken(root: Path, case: str) -> Path:
    files = {**COMPLETE, **BROKEN[case][0]}
    return make_project(root, {name: text for name, text in files.items() if text is not None})


@pytest.mark.parametrize("case", sorted(set(BROKEN) - set(REPAIRABLE)))
def test_other_issues_are_not_repaired(tmp_path: Path, case: str) -> None:
    root = broken(tmp_path, case)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert health(root, "--repair", "--yes")["repairs"] == []
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_state_is_rebuilt_from_the_roadmap_the_project_and_the_files(tmp_path: Path) -> None:
    root = broken(tmp_path, "E004")
    health(root, "--repair", "--yes")

    text = (root / ".planning/STATE.md").read_text()
    assert "**Core value:** It lasts" in text
    assert "Phase: 2 of 2 (Rest)\nPlan: Not started\nStatus: Ready to plan\n" in text
    assert f"] {json_of('progress', '-C', root)['percent']}%" in text


def test_repairing_the_position_keeps_the_rest_of_the_state(tmp_path: Path) -> None:
    text = STATE.replace("1 of 2", "7 of 2") + "\n## Accumulated Context\r\n\r\nmy notes\t\n"
    root = make_project(tmp_path, {**COMPLETE, "STATE.md": text})
    health(root, "--repair", "--yes")

    text = (root / ".planning/STATE.md").read_bytes().decode()
    assert "Phase: 2 of 2 (Rest)" in text
    assert text.endswith("\n## Accumulated Context\r\n\r\nmy notes\t\n")


def test_repairing_a_config_keeps_the_readable_values(tmp_path: Path) -> None:
    text = '{\n  // mine\n  "mode": "yolo",\n  "novel": [1, 2,],\n}'
    root = make_project(tmp_path, {**COMPLETE, "config.json": text})
    health(root, "--repair", "--yes")

    assert json.loads((root / ".planning/config.json").read_text()) == {"mode": "yolo", "novel": [1, 2]}


def test_a_file_that_changed_since_the_diff_is_not_overwritten(tmp_path: Path) -> None:
    root = broken(tmp_path, "E005")
    [repair] = repairs(root, check_health(root), "2026-01-31")
    (root / ".planning/config.json").write_text("{}")

    with pytest.raises(Exception, match=r"config\.json"):
        plan_repair(root, repair)
    assert (root / ".planning/config.json").read_text() == "{}"


def test_a_project_with_an_active_run_is_not_repaired(tmp_path: Path) -> None:
    from gsd_core.journal.lock import ProjectLock

    root = broken(repository(tmp_path / "p"), "W003")
    with ProjectLock(root / ".git" / "gsd"):
        result = call("health", "-C", root, "--repair", "--yes")

    assert result.exit_code == 2
    assert result.stderr.rstrip().endswith(" stop")
    assert not (root / ".planning/config.json").exists()


def test_without_json_the_status_and_the_issues_are_printed(tmp_path: Path) -> None:
    result = call("health", "-C", broken(tmp_path, "E005"))

    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "broken"
    assert "E005 .planning/config.json:1" in result.stdout


@each_project
def test_every_project_can_be_examined_and_its_repairs_shown(project: Path) -> None:
    issues = check_health(project)

    assert all(issue.message and issue.fix and issue.path for issue in issues)
    shown = [repair.diff() for repair in repairs(project, issues, "2026-01-31")]
    assert all(diff.startswith("---") for diff in shown)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "not UTF-8": lambda path: path.write_bytes(b"\xff" + path.read_bytes()),
    "too large": lambda path: path.write_bytes(path.read_bytes() + b"\nx" * 1_500_000),
    "no frontmatter's end": lambda path: path.write_bytes(b"---\na: 1\n"),
    "leads out": lambda path: path.symlink_to("/etc/hostname"),
    "a folder": lambda path: path.mkdir(),
}
READ_BY_COMMANDS: dict[str, str | bytes] = {
    **COMPLETE,
    "REQUIREMENTS.md": "# R\n\n## v1 Requirements\n\n- [x] **CORE-01**: It lasts\n",
    "MILESTONES.md": "# M\n\n## v0.9 Old (Shipped: 2026-01-01)\n",
    "milestones/v0.9-ROADMAP.md": "# Milestone v0.9: Old\n",
    "IDEA.md": render_idea("i.md", "It lasts.", {"S1": ("CORE-01",)}),
    "HANDOFF.json": '{"status": "paused", "phase": "2"}\n',
    ".continue-here.md": "---\nphase: 02\n---\n",
    "phases/01-core/01-CONTEXT.md": "# C\n",
    "phases/01-core/01-RESEARCH.md": "# R\n",
    "phases/01-core/01-VERIFICATION.md": "---\nstatus: passed\n---\n",
}
COMMANDS = (
    *(["status"], ["next"], ["progress"], ["phases", "--all"], ["plans", "1"], ["requirements"]),
    *(["gaps", "1", "--read-only"], ["todo", "list"], ["run", "--dry-run", "--agent", "rehearsal"]),
)


def complaints(root: Path) -> list[str]:
    """Return what the commands refuse, or warn about."""
    results = [(command[0], call(*command, "-C", root)) for command in COMMANDS]
    return [name for name, found in results if found.exit_code or "cannot be" in found.stderr]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_nothing_is_healthy_that_another_command_refuses(tmp_path: Path, damage: str) -> None:
    root = make_project(repository(tmp_path / "p"), READ_BY_COMMANDS)
    assert (health(root)["status"], complaints(root)) == ("healthy", [])
    for name in READ_BY_COMMANDS:
        path = root / ".planning" / name
        if damage in ("leads out", "a folder"):
            path.unlink()
        DAMAGE[damage](path)
        report = health(root)
        assert report["status"] != "healthy" or complaints(root) == [], name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make_project(root, {name: READ_BY_COMMANDS[name]})
