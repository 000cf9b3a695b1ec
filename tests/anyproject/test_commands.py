"""The commands on any project: their JSON, their tables, their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.anyproject.tree import plan, project
from tests.cli.bench import EVIL, call, said

FILES = {
    "ROADMAP.md": "### Phase 1: Core\n**Goal**: It works\n**Depends on**: Nothing\n### Phase 2.1: Fix\n",
    "REQUIREMENTS.md": (
        "## v1 Requirements\n### Core\n- [x] **CORE-01**: It works\n- [ ] **CORE-02**: It lasts\n"
        "## v2 Requirements\n- **LATER-01**: It flies\n"
        "| Requirement | Phase | Status |\n|---|---|---|\n| CORE-01 | Phase 1 | Complete |\n"
        "| CORE-02 | Phase 2.1 | Pending |\n"
    ),
    "phases/01-core/01-01-PLAN.md": plan(head="gap_closure: true\n"),
    "phases/01-core/01-01-SUMMARY.md": "done",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path, FILES)


def test_phases_have_exactly_the_promised_shape(root: Path) -> None:
    assert said("phases", "-C", root) == {
        "schema_version": 1,
        "milestones": [],
        "phases": [
            {
                "number": "1", "name": "Core", "goal": "It works", "depends_on": [], "plans": 1,
                "summaries": 1, "status": "complete", "complete": False, "milestone": None,
            },
            {
                "number": "2.1", "name": "Fix", "goal": "", "depends_on": [], "plans": 0,
                "summaries": 0, "status": "no_directory", "complete": False, "milestone": None,
            },
        ],
    }  # fmt: skip


def test_plans_have_exactly_the_promised_shape(root: Path) -> None:
    assert said("plans", "1", "-C", root) == {
        "schema_version": 1,
        "plans": [
            {
                "id": "01-01", "wave": 1, "depends_on": [], "autonomous": True, "files_modified": ["a.py"],
                "requirements": ["CORE-01"], "tasks": 1, "has_summary": True, "gap_closure": True,
            }
        ],
    }  # fmt: skip


def test_requirements_are_told_with_phase_and_status(root: Path) -> None:
    told = said("requirements", "-C", root)

    assert told["schema_version"] == 1
    assert [(r["id"], r["phase"], r["status"], r["version"], r["done"]) for r in told["requirements"]] == [
        ("CORE-01", "1", "Complete", "v1", True),
        ("CORE-02", "2.1", "Pending", "v1", False),
        ("LATER-01", None, "Pending", "v2", False),
    ]


@pytest.mark.parametrize("phase", ["2", "11", "1.1", "x", "", "../..", "9" * 5000, EVIL])
@pytest.mark.parametrize("command", ["plans", "gaps"])
def test_an_unknown_phase_is_an_error_that_names_the_known_ones(root: Path, command: str, phase: str) -> None:
    result = call(command, "-C", root, "--", phase)

    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert result.stderr.splitlines()[-1] == "hint: known phases: 1, 2.1"


@pytest.mark.parametrize("written", ["2.1", "02.1", "2.01"])
def test_a_phase_may_be_written_with_zeros(root: Path, written: str) -> None:
    assert said("plans", written, "-C", root)["plans"] == []


@pytest.mark.parametrize("command", [("phases",), ("plans", "1"), ("gaps", "1"), ("requirements",)])
def test_each_command_has_a_table_for_people(root: Path, command: tuple[str, ...]) -> None:
    result = call(*command, "-C", root)

    assert result.exit_code == 0
    assert "Core" in result.stdout or "CORE-01" in result.stdout


@pytest.mark.parametrize("command", ["phases", "requirements"])
def test_a_folder_without_planning_has_nothing(tmp_path: Path, command: str) -> None:
    assert said(command, "-C", tmp_path)[command] == []
    assert call(command, "-C", tmp_path).stdout.startswith("no ")


def test_foreign_text_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    roadmap = f"## v1.0 {EVIL}\n### Phase 1: {EVIL}\n**Goal**: {EVIL}\n"
    requirements = f"## v1\n- [ ] **A-01**: {EVIL}\n"
    project(tmp_path, {"ROADMAP.md": roadmap, "REQUIREMENTS.md": requirements, "phases/01-a/PLAN.md": plan()})

    for command in (("phases",), ("plans", "1"), ("requirements",), ("gaps", "1"), ("health",)):
        for form in ((), ("--json",)):
            shown = call(*command, "-C", tmp_path, *form).output
            assert "\x1b" not in shown
            assert "\u202e" not in shown
