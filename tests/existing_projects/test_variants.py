"""Old and new variants of single elements of the planning format, as the commands show them.

Whole trees are in ``tests/data``; see ``test_trees.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_core.planning.plan import parse_plan
from tests.cli.bench import said as json_of
from tests.planning.trees import make_project, plan_text


def phases(root: Path, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json_of("phases", "-C", root, *options)["phases"]
    return found


def plans(root: Path, phase: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json_of("plans", phase, "-C", root)["plans"]
    return found


@pytest.mark.parametrize(
    ("heading", "number", "name"),
    [
        ("## Phase 1: A", "1", "A"),
        ("#### Phase 02.1: Hot fix (INSERTED)", "2.1", "Hot fix"),
        ("  ### Phase 3: Indented", "3", "Indented"),
        ("###Phase 4: No space", "4", "No space"),
        ("### phase 5: Small", "5", "Small"),
        ("### [API] Phase 26 (Cluster B): Tagged", "26", "Tagged"),
        ("### 🚧 Phase 7: Marked", "7", "Marked"),
        ("### Phase 12A: Letter", "12A", "Letter"),
        ("### Phase 2-01: With its milestone", "2-01", "With its milestone"),
        ("### [GSD.02] 05: Bracket", "5", "Bracket"),
        ("### [GSD.02] Phase 05: Bracket", "5", "Bracket"),
        ("### Phase P0.1: Prefixed", "P0.1", "Prefixed"),
        ("### Phase PROJ-42: Custom", "PROJ-42", "Custom"),
        ("### Phase 36 — Dash", "36", "Dash"),
        ("### Phase 1: Done ✓ COMPLETE (2026-01-31)", "1", "Done"),
        ("- [ ] **Phase 36 — Name**", "36", "Name"),
        ("- [x] **[GSD.02] 05: Name** - text", "5", "Name"),
        ("| Phase | Name |\n|---|---|\n| 2.1 | In a table |", "2.1", "In a table"),
        ("| Phase | Name |\n|---|---|\n| **12A** | Bold |", "12A", "Bold"),
        ("| Phase # | Status | Phase Name |\n|---|---|---|\n| 3 | Complete | Last |", "3", "Last"),
    ],
)
def test_a_phase_is_found_in_each_form_of_heading_checklist_and_table(
    tmp_path: Path, heading: str, number: str, name: str
) -> None:
    make_project(tmp_path, {"ROADMAP.md": f"# Roadmap\n\n{heading}\n"})

    assert [(phase["number"], phase["name"]) for phase in phases(tmp_path)] == [(number, name)]


@pytest.mark.parametrize(
    "line",
    [
        "### Phase 0: Backlog",
        "### Phase 999.1: Later",
        "### Phase Details",
        "### [RFC.2119] 5: Words",
        "- `### Phase 8: quoted`",
        "> ### Phase 8: cited",
        "```\n### Phase 9: example\n```",
        "| Phase | Plans | Status |\n|---|---|---|\n| 1. A | 0/1 | Planned |",
        "Phase 3: in prose",
    ],
)
def test_text_that_only_looks_like_a_phase_is_ignored(tmp_path: Path, line: str) -> None:
    make_project(tmp_path, {"ROADMAP.md": f"# Roadmap\n\n{line}\n"})

    assert phases(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "heading", "folder"),
    [
        ("1", "Phase 1: A", "01-a"),
        ("1", "Phase 01: A", "1-a"),
        ("2.1", "Phase 2.1: A", "02.1-a"),
        ("12A", "Phase 12A: A", "12A-a"),
        ("3", "Phase 3: A", "CK-03-a"),
        ("2-01", "Phase 2-01: A", "02-01-a"),
        ("5", "[GSD.02] 05: A", "GSD.02-05-a"),
        ("14", "Phase 14: A", "14-2026-photos"),
        ("46", "Phase 46: A", "46-6-rs"),
        ("B7", "Phase B7: A", "B7-a"),
        ("PROJ-42", "Phase PROJ-42: A", "PROJ-42-a"),
    ],
)
def test_a_folder_is_matched_to_its_phase(tmp_path: Path, number: str, heading: str, folder: str) -> None:
    make_project(tmp_path, {"ROADMAP.md": f"### {heading}\n", f"phases/{folder}/PLAN.md": plan_text()})

    assert [(phase["number"], phase["plans"]) for phase in phases(tmp_path)] == [(number, 1)]
    assert len(plans(tmp_path, number)) == 1


def test_a_phase_number_is_not_matched_by_its_prefix(tmp_path: Path) -> None:
    folders = ("01.1-b", "010-c", "10-d", "11-e")
    files = {f"phases/{folder}/{folder.split('-')[0]}-01-PLAN.md": plan_text() for folder in folders}
    make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", **files})

    assert plans(tmp_path, "1") == []
    assert [one["id"] for one in plans(tmp_path, "1.1")] == ["01.1-01"]


@pytest.mark.parametrize(
    ("plan_file", "summary", "identity"),
    [
        ("01-01-PLAN.md", "01-01-SUMMARY.md", "01-01"),
        ("01-03a-PLAN.md", "01-03a-SUMMARY.md", "01-03a"),
        ("01-01-setup-PLAN.md", "01-01-SUMMARY.md", "01-01-setup"),
        ("PLAN.md", "SUMMARY.md", "01-01"),
        ("PLAN-1.md", "PLAN-1-SUMMARY.md", "01-01"),
        ("plans/PLAN-02-setup.md", "plans/SUMMARY-02-setup.md", "01-02"),
        ("3-PLAN-02-setup.md", "01-02-SUMMARY.md", "01-02"),
        ("20260131-0930-PLAN.md", "20260131-0930-SUMMARY.md", "20260131-0930"),
        ("2026-01-31T0930-fix-PLAN.md", "2026-01-31T0930-fix-SUMMARY.md", "2026-01-31T0930-fix"),
        ("CK-01-02-PLAN.md", "CK-01-02-SUMMARY.md", "CK-01-02"),
    ],
)
def test_a_plan_and_its_summary_are_found_by_each_form_of_file_name(
    tmp_path: Path, plan_file: str, summary: str, identity: str
) -> None:
    files = {f"phases/01-a/{plan_file}": plan_text(), "ROADMAP.md": "### Phase 1: A\n"}
    make_project(tmp_path, files)
    assert [(one["id"], one["has_summary"]) for one in plans(tmp_path, "1")] == [(identity, False)]

    make_project(tmp_path, {f"phases/01-a/{summary}": "done"})

    assert [one["has_summary"] for one in plans(tmp_path, "1")] == [True]
    [phase] = phases(tmp_path)
    assert (phase["plans"], phase["summaries"], phase["status"]) == (1, 1, "complete")


@pytest.mark.parametrize(
    "name",
    [
        "01-PLAN-OUTLINE.md",
        "01-01-OUTLINE.md",
        "01-01-PLAN.pre-bounce.md",
        "01-PLAN-REVIEW.md",
        "01-PLANNING-NOTES.md",
        "01-REPLAN.md",
        "1-PLAN-01-SUMMARY.md",
    ],
)
def test_other_files_are_not_counted_as_plans(tmp_path: Path, name: str) -> None:
    make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", f"phases/01-a/{name}": plan_text()})

    assert [phase["plans"] for phase in phases(tmp_path)] == [0]


def test_superseded_plans_and_blocked_summaries_are_not_counted(tmp_path: Path) -> None:
    make_project(
        tmp_path,
        {
            "ROADMAP.md": "### Phase 1: A\n",
            "phases/01-a/01-01-PLAN.md": plan_text(frontmatter="status: superseded\n"),
            "phases/01-a/01-02-PLAN.md": plan_text(),
            "phases/01-a/01-02-SUMMARY.md": "---\nstatus: blocked\n---\n",
            "phases/01-a/01-03-PLAN.md": plan_text(body="status: superseded\n"),
            "phases/01-a/01-03-SUMMARY.md": "---\nstatus: halted\n---\n",
        },
    )

    assert [(one["id"], one["has_summary"]) for one in plans(tmp_path, "1")] == [
        ("01-02", False),
        ("01-03", True),
    ]
    assert [(one["plans"], one["summaries"]) for one in phases(tmp_path)] == [(2, 1)]


def test_waves_follow_from_the_dependencies_in_every_spelling(tmp_path: Path) -> None:
    dependencies = {
        "01": "[]",
        "02": "[01-01-PLAN.md]",
        "03": '["02"]',
        "04": "01-03",
        "05": "none",
        "06": "[09-09]",
    }
    files = {
        f"phases/01-a/01-{n}-PLAN.md": plan_text(wave=7, depends_on=names)
        for n, names in dependencies.items()
    }
    make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", **files})

    assert {one["id"]: one["wave"] for one in plans(tmp_path, "1")} == {
        "01-01": 1,
        "01-02": 2,
        "01-03": 3,
        "01-04": 4,
        "01-05": 1,
        "01-06": 1,
    }


def test_a_phase_may_start_with_wave_0(tmp_path: Path) -> None:
    files = {"01-00": plan_text(wave=0), "01-01": plan_text(wave=1, depends_on="[01-00]")}
    make_project(tmp_path, {f"phases/01-a/{name}-PLAN.md": text for name, text in files.items()})

    assert [one["wave"] for one in plans(tmp_path, "1")] == [0, 1]


def test_plans_in_a_cycle_keep_their_declared_waves(tmp_path: Path) -> None:
    files = {
        "01-01": plan_text(wave=2, depends_on="[01-02]"),
        "01-02": plan_text(wave=3, depends_on="[01-01]"),
    }
    make_project(tmp_path, {f"phases/01-a/{name}-PLAN.md": text for name, text in files.items()})

    assert [one["wave"] for one in plans(tmp_path, "1")] == [2, 3]


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("checkpoint:human-verify", "checkpoint:human-verify"),
        ("checkpoint:test", "checkpoint:human-verify"),
        ("checkpoint:user", "checkpoint:human-action"),
        ("checkpoint:decision", "checkpoint:decision"),
        ("checkpoint:novel", "checkpoint:human-verify"),
        ("tracer", "auto"),
    ],
)
def test_a_checkpoint_of_any_kind_is_for_a_human(kind: str, type_: str) -> None:
    text = plan_text(body=f'<tasks><task type="{kind}"><name>X</name></task></tasks>')

    assert [task.type for task in parse_plan(text, path="01-01-PLAN.md", phase="1").tasks] == [type_]


def test_tasks_in_prose_are_read_with_their_fields() -> None:
    body = (
        "<objective>Do</objective>\n## Tasks\n\n### Task 1: First\n**Files:** `a.py`, `b.py`\n"
        "**Action:**\nWrite it\nwell\n\n**Verify:** it runs\n**Done:** it is there\n\n"
        "```\n### Task 9: an example\n```\n\n### Task 2 - Second\nJust do it\n\n## Notes\nend\n"
    )

    first, second = parse_plan(plan_text(body=body), path="01-01-PLAN.md", phase="1").tasks

    assert (first.name, first.files, first.action) == ("First", ("a.py", "b.py"), "Write it\nwell")
    assert (first.verify, first.done) == ("it runs", "it is there")
    assert (second.number, second.name, second.action) == (2, "Second", "Just do it")


SHIPPED = """\
# Roadmap

## Milestones

- ✅ **v1.0 MVP** — Phases 1-2 (shipped 2026-01-01)
- 🚧 **v1.1 Next** — Phases 3-4
- 📋 **v2.0 Later**

<details>
<summary>✅ v1.0 MVP (Phases 1-2) — SHIPPED 2026-01-01</summary>

- [x] Phase 1: Foundation (2/2 plans) — completed 2026-01-01
- [x] Phase 2: More (1/1 plan)

</details>

### 🚧 v1.1 Next (In Progress)

#### Phase 3: New
**Goal**: It is new
**Depends on**: Phase 2
#### Phase 4: Newer
**Depends on**: Phases 1-2 and 3
"""


def test_milestones_are_read_from_the_list_the_details_elements_and_the_headings(tmp_path: Path) -> None:
    make_project(tmp_path, {"ROADMAP.md": SHIPPED})
    shown = json_of("phases", "-C", tmp_path)

    assert shown["milestones"] == [
        {"version": "v1.0", "name": "MVP", "shipped": True},
        {"version": "v1.1", "name": "Next", "shipped": False},
        {"version": "v2.0", "name": "Later", "shipped": False},
    ]
    assert [(one["number"], one["milestone"], one["depends_on"]) for one in shown["phases"]] == [
        ("3", "v1.1", ["2"]),
        ("4", "v1.1", ["1", "2", "3"]),
    ]
    assert [(one["number"], one["milestone"], one["complete"]) for one in phases(tmp_path, "--all")] == [
        ("1", "v1.0", True),
        ("2", "v1.0", True),
        ("3", "v1.1", False),
        ("4", "v1.1", False),
    ]


@pytest.mark.parametrize(
    "heading",
    [
        "## v1.0 Trails ✅ SHIPPED",
        "## v1.0 Trails — SHIPPED 2026-01-31",
        "## ✅ v1.0: Trails (Phases 1-4) — SHIPPED 2026-01-31",
        "## v1.0 Trails ✅ SHIPPED 2026-01-31",
        "## v1.0 Trails ✅",
        "## v1.0 Trails (shipped)",
    ],
)
def test_the_state_of_a_milestone_is_not_part_of_its_name(tmp_path: Path, heading: str) -> None:
    make_project(tmp_path, {"ROADMAP.md": f"{heading}\n### Phase 1: A\n"})

    milestones = json_of("phases", "-C", tmp_path)["milestones"]
    assert milestones == [{"version": "v1.0", "name": "Trails", "shipped": True}]


def test_the_last_milestone_is_shown_if_none_is_in_progress(tmp_path: Path) -> None:
    make_project(
        tmp_path,
        {
            "ROADMAP.md": SHIPPED.partition("### 🚧")[0]
            .replace("🚧", "✅")
            .replace("- 📋 **v2.0 Later**\n", ""),
            "milestones/v1.1-ROADMAP.md": "# Milestone v1.1: Next\n### Phase 3: New\n### Phase 1: Again\n",
            "milestones/v1.1-phases/03-new/03-01-PLAN.md": plan_text(),
            "milestones/v1.1-phases/01-again/01-01-PLAN.md": plan_text(),
            "milestones/v1.0-phases/01-foundation/01-01-PLAN.md": plan_text(),
            "milestones/v1.0-phases/01-foundation/01-01-SUMMARY.md": "done",
        },
    )

    assert [(one["number"], one["milestone"], one["plans"]) for one in phases(tmp_path)] == [
        ("1", "v1.1", 1),
        ("3", "v1.1", 1),
    ]
    first = phases(tmp_path, "--all")[0]
    assert (first["milestone"], first["plans"], first["summaries"]) == ("v1.0", 1, 1)


def test_of_two_phases_with_the_same_number_the_current_one_is_chosen(tmp_path: Path) -> None:
    make_project(
        tmp_path,
        {
            "ROADMAP.md": "## v2.0 New\n### Phase 1: New\n",
            "milestones/v1.0-ROADMAP.md": "### Phase 1: Old\n### Phase 2: Older\n",
            "milestones/v1.0-phases/01-old/01-01-PLAN.md": plan_text(),
            "phases/01-new/01-07-PLAN.md": plan_text(),
        },
    )

    assert [one["id"] for one in plans(tmp_path, "1")] == ["01-07"]
    assert plans(tmp_path, "2") == []


@pytest.mark.parametrize("state", ["---\nmilestone: v1.1\n---\n", "\ufeff---\r\nmilestone: v1.1\r\n---\r\n"])
def test_state_decides_which_milestone_is_in_progress_if_the_roadmap_does_not(
    tmp_path: Path, state: str
) -> None:
    roadmap = "## v1.0 MVP\n### Phase 1: A\n## v1.1 Next\n### Phase 2: B\n"
    make_project(tmp_path, {"ROADMAP.md": roadmap, "STATE.md": state})

    assert [one["number"] for one in phases(tmp_path)] == ["2"]


def test_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    text = "\ufeff" + SHIPPED.replace("\n", "\r\n")
    make_project(tmp_path / "a", {"ROADMAP.md": SHIPPED})
    make_project(tmp_path / "b", {"ROADMAP.md": text})

    assert phases(tmp_path / "a", "--all") == phases(tmp_path / "b", "--all")


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({}, "no_directory"),
        ({"notes.md": ""}, "empty"),
        ({"01-CONTEXT.md": "x"}, "discussed"),
        ({"CONTEXT.md": "x", "01-RESEARCH.md": "x"}, "researched"),
        ({"02-RESEARCH.md": "x"}, "empty"),
        ({"01-01-PLAN.md": plan_text()}, "planned"),
        ({"01-01-PLAN.md": plan_text(), "01-01-SUMMARY.md": "", "01-02-PLAN.md": plan_text()}, "partial"),
        ({"01-01-PLAN.md": plan_text(), "01-01-SUMMARY.md": ""}, "complete"),
    ],
)
def test_the_status_follows_from_the_files_of_the_phase(
    tmp_path: Path, files: dict[str, str], status: str
) -> None:
    here = {f"phases/01-a/{name}": text for name, text in files.items()}
    make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", **here})

    assert [one["status"] for one in phases(tmp_path)] == [status]


def test_a_broken_plan_does_not_hide_other_phases(tmp_path: Path) -> None:
    broken = "---\nwave: [\n---\n"
    make_project(
        tmp_path, {"ROADMAP.md": "### Phase 1: A\n### Phase 2: B\n", "phases/01-a/01-01-PLAN.md": broken}
    )

    assert [(one["number"], one["plans"]) for one in phases(tmp_path)] == [("1", 1), ("2", 0)]
    assert plans(tmp_path, "2") == []
