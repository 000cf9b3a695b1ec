"""The commands that read an existing project: their JSON, tables and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench import EVIL, call
from tests.cli.bench import said as json_of
from tests.planning.trees import make_project, plan_text

FILES = {
    "ROADMAP.md": "### Phase 1: Core\n**Goal**: It works\n**Depends on**: Nothing\n### Phase 2.1: Fix\n",
    "REQUIREMENTS.md": (
        "## v1 Requirements\n### Core\n- [x] **CORE-01**: It works\n- [ ] **CORE-02**: It lasts\n"
        "## v2 Requirements\n- **LATER-01**: It flies\n"
        "| Requirement | Phase | Status |\n|---|---|---|\n| CORE-01 | Phase 1 | Complete |\n"
        "| CORE-02 | Phase 2.1 | Pending |\n"
    ),
    "phases/01-core/01-01-PLAN.md": plan_text(frontmatter="gap_closure: true\n"),
    "phases/01-core/01-01-SUMMARY.md": "done",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path, FILES)


def test_the_json_of_phases(root: Path) -> None:
    assert json_of("phases", "-C", root) == {
        "schema_version": 1,
        "milestones": [],
        "phases": [
            {
                "number": "1",
                "name": "Core",
                "goal": "It works",
                "depends_on": [],
                "plans": 1,
                "summaries": 1,
                "status": "complete",
                "complete": False,
                "milestone": None,
            },
            {
                "number": "2.1",
                "name": "Fix",
                "goal": "",
                "depends_on": [],
                "plans": 0,
                "summaries": 0,
                "status": "no_directory",
                "complete": False,
                "milestone": None,
            },
        ],
    }


def test_the_json_of_plans(root: Path) -> None:
    assert json_of("plans", "1", "-C", root) == {
        "schema_version": 1,
        "plans": [
            {
                "id": "01-01",
                "wave": 1,
                "depends_on": [],
                "autonomous": True,
                "files_modified": ["a.py"],
                "requirements": ["CORE-01"],
                "tasks": 1,
                "has_summary": True,
                "gap_closure": True,
            }
        ],
    }


def test_requirements_have_a_phase_and_a_status(root: Path) -> None:
    shown = json_of("requirements", "-C", root)

    assert shown["schema_version"] == 1
    assert [(r["id"], r["phase"], r["status"], r["version"], r["done"]) for r in shown["requirements"]] == [
        ("CORE-01", "1", "Complete", "v1", True),
        ("CORE-02", "2.1", "Pending", "v1", False),
        ("LATER-01", None, "Pending", "v2", False),
    ]


@pytest.mark.parametrize("phase", ["2", "11", "1.1", "x", "", "../..", "9" * 5000, EVIL])
@pytest.mark.parametrize("command", ["plans", "gaps"])
def test_an_unknown_phase_is_an_error_that_lists_the_known_ones(root: Path, command: str, phase: str) -> None:
    result = call(command, "-C", root, "--", phase)

    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("hint: ")
    assert "does not exist; the project has 1, 2.1\n" in result.stderr


@pytest.mark.parametrize("written", ["2.1", "02.1", "2.01"])
def test_leading_zeros_of_a_phase_number_do_not_matter(root: Path, written: str) -> None:
    assert json_of("plans", written, "-C", root)["plans"] == []


@pytest.mark.parametrize("command", [("phases",), ("plans", "1"), ("gaps", "1"), ("requirements",)])
def test_without_json_each_command_prints_a_table(root: Path, command: tuple[str, ...]) -> None:
    result = call(*command, "-C", root)

    assert result.exit_code == 0
    assert "Core" in result.stdout or "CORE-01" in result.stdout


@pytest.mark.parametrize("command", ["phases", "requirements"])
def test_a_planning_folder_without_the_file_has_no_phases_or_requirements(
    tmp_path: Path, command: str
) -> None:
    make_project(tmp_path, {"config.json": "{}"})

    assert json_of(command, "-C", tmp_path)[command] == []
    assert call(command, "-C", tmp_path).stdout.strip()


@pytest.mark.parametrize(
    ("roadmap", "expected"),
    [
        ("# Roadmap\n\nFirst we plan.\n", ".planning/ROADMAP.md:1: names no phase; "),
        ("", ".planning/ROADMAP.md:1: is empty; "),
        ("# Roadmap\n\n```\n### Phase 1: A\n", ".planning/ROADMAP.md:3: "),
        (None, ".planning/ROADMAP.md does not exist"),
    ],
)
def test_an_empty_list_of_phases_is_explained(tmp_path: Path, roadmap: str | None, expected: str) -> None:
    make_project(tmp_path, {"PROJECT.md": "# A\n"} if roadmap is None else {"ROADMAP.md": roadmap})
    shown = call("phases", "-C", tmp_path)

    assert shown.exit_code == 0
    assert expected in shown.stdout
    assert roadmap is None or "### Phase 1: NAME" in shown.stdout
    assert json_of("phases", "-C", tmp_path)["phases"] == []


@pytest.mark.parametrize("roadmap", ["", "# Roadmap\n", "\0" * 10, "```\n### Phase 1: A\n"])
def test_status_does_not_need_a_readable_roadmap(tmp_path: Path, roadmap: str) -> None:
    make_project(tmp_path, {"ROADMAP.md": roadmap})
    (tmp_path / ".planning/STATE.md").write_bytes(b"\xff")

    assert "no run yet" in call("status", "-C", tmp_path).stdout
    assert json_of("status", "-C", tmp_path)["status"] == "none"


def test_control_characters_of_a_project_never_reach_the_terminal(tmp_path: Path) -> None:
    roadmap = f"## v1.0 {EVIL}\n### Phase 1: {EVIL}\n**Goal**: {EVIL}\n"
    requirements = f"## v1\n- [ ] **A-01**: {EVIL}\n"
    make_project(
        tmp_path, {"ROADMAP.md": roadmap, "REQUIREMENTS.md": requirements, "phases/01-a/PLAN.md": plan_text()}
    )

    for command in (("phases",), ("plans", "1"), ("requirements",), ("gaps", "1"), ("health",)):
        for output in ((), ("--json",)):
            shown = call(*command, "-C", tmp_path, *output).output
            assert "\x1b" not in shown
            assert "\u202e" not in shown
