"""The milestone in progress, its phases and the next version are found from all that the files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.planning.audit import audit
from gsd_core.planning.changes import ListPlans, SetPosition, TickPhase, TickPlan
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.next_milestone import next_version
from gsd_core.planning.state import begin_milestone
from gsd_core.planning.survey import read_planning, survey
from tests.planning.trees import make_project, plan_text

PHASES = "### Phase 1: A\n### Phase 2: B\n### Phase 3: C\n"
SHIPPED = "- ✅ **v1.0 One** — Phases 1-2 (shipped 2026-01-31)\n"
CASES: dict[str, tuple[dict[str, str], str, list[str], str]] = {
    "the list is newer than a heading": (
        {
            "ROADMAP.md": f"## Milestones\n{SHIPPED}- 🚧 **v2.0 Two** — Phase 3 (in progress)\n"
            f"## Phases\n### 🚧 v1.0 One (In Progress)\n#### Phase 1: A\n#### Phase 2: B\n"
            "## Progress\n### Phase 3: C\n",
            "STATE.md": "---\nmilestone: v2.0\n---\n",
        },
        *("v2.0", ["3"], "v2.1"),
    ),
    "a table gives a phase to a planned milestone": (
        {
            "ROADMAP.md": "### 🚧 v1.1 Two\n## Phase Details\n" + PHASES + "## Progress\n"
            "| Phase | Milestone | Plans Complete | Status |\n|---|---|---|---|\n"
            "| 1. A | v1.1 | 0/1 | Planned |\n| 2. B | v1.1 | 0/1 | Planned |\n| 3. C | v1.2 | 0/1 | - |\n"
        },
        *("v1.1", ["1", "2"], "v1.2"),
    ),
    "no heading has the milestone of STATE": (
        {
            "ROADMAP.md": "## v1.0 One\nDone long ago.\n## Phases\n" + PHASES,
            "STATE.md": "---\nmilestone: v2.0\n---\n## Current Position\n\nPhase: 2 of 3 (B)\n",
        },
        *("v2.0", ["1", "2", "3"], "v2.1"),
    ),
    "an early copy in the archive": (
        {
            "ROADMAP.md": "## 🚧 v1.1 Two\n- [x] **Phase 1: A** - a\n- [ ] **Phase 2: B** - b\n",
            "milestones/v1.1-ROADMAP.md": "# v1.1\n- [x] **Phase 1: A** - a\n- [ ] **Phase 2: B** - b\n",
            "STATE.md": "---\nmilestone: v1.1\n---\n",
        },
        *("v1.1", ["1", "2"], "v1.2"),
    ),
    "the roadmap in progress is kept in milestones": (
        {
            "ROADMAP.md": f"## Milestones\n{SHIPPED}- 🚧 [v1.1](milestones/v1.1-ROADMAP.md)\n",
            "milestones/v1.1-ROADMAP.md": "# v1.1 Two\n- [ ] **Phase 4: A** - a\n",
            "STATE.md": "---\nmilestone: v1.1\n---\n",
        },
        *("v1.1", ["4"], "v1.2"),
    ),
    "a stray file in the archive": (
        {
            "ROADMAP.md": "## Milestones\n- ✅ **v0.11.0 Data** — Phases 29-32 (shipped)\n",
            "milestones/v1-ROADMAP.md": "# v1\n**Status:** SHIPPED\n- [x] **Phase 1: A** - a\n",
        },
        *("", [], "v0.12.0"),
    ),
    "no active roadmap": (
        {
            "ROADMAP.md": "# Roadmap\n\nNo active roadmap.\n\n[v1.0](milestones/v1.0-ROADMAP.md)\n",
            "milestones/v1.0-ROADMAP.md": "# v1.0\n- [x] **Phase 1: A** - a\n",
            "STATE.md": "---\nmilestone: none\n---\n",
        },
        *("", [], "v1.1"),
    ),
    "a candidate in the backlog": (
        {"ROADMAP.md": f"## Milestones\n{SHIPPED}## Backlog\n### Dark (v1.4 candidate)\n### v1.x / v2+\n"},
        *("", [], "v1.1"),
    ),
    "a name instead of a version": (
        {
            "ROADMAP.md": PHASES,
            "STATE.md": "---\nmilestone: clean-up\n---\n",
            "milestones/v1.3-ROADMAP.md": "# v1.3\n",
        },
        *("clean-up", ["1", "2", "3"], "v1.4"),
    ),
    "a name that no file, tag or step can have": (
        {"ROADMAP.md": PHASES, "STATE.md": "---\nmilestone: 'M9/10: the ~last^'\n---\n"},
        *("M9-10-the-last", ["1", "2", "3"], "v1.0"),
    ),
    "headings with names": (
        {
            "ROADMAP.md": "## Milestone: Clean up (Phase 1)\n### Phase 1: A\n"
            "## Milestone goals: some\n## Milestone-wide rules\n## Milestone MS-09: Two\n### Phase 2: B\n",
            "STATE.md": "---\nmilestone: MS-09\n---\n",
        },
        *("MS-09", ["2"], "MS-10"),
    ),
    "a shipped name": (
        {
            "ROADMAP.md": "## Milestones\n- ✅ **M6 Motion** — Phase 2 (shipped)\n<details>\n"
            "<summary>✅ M6 Motion (Phase 2) — SHIPPED</summary>\n- [x] Phase 2: B\n</details>\n",
            "STATE.md": "---\nmilestone: M6\n---\n",
            "MILESTONES.md": "## M6 Motion (Shipped: 2026-01-31)\n",
            "milestones/M6-ROADMAP.md": "# Roadmap\n- [x] **Phase 2: B** - b\n",
            "milestones/ideas-ROADMAP.md": "# Ideas\n- [x] **Phase 9: C** - c\n",
        },
        *("", [], "M7"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_milestone_its_phases_and_the_next_version(tmp_path: Path, name: str) -> None:
    files, milestone, numbers, following = CASES[name]
    root = make_project(tmp_path, files)
    planning = read_planning(root)

    assert [phase.number for phase in planning.phases] == numbers
    assert bool(planning.idle) is (not numbers)
    if numbers:
        assert (planning.milestone, survey(root).current) == (milestone, milestone)
        assert [phase.number for phase in survey(root).phases()] == numbers
    assert next_version(root) == following


def test_sources_that_disagree_are_named_with_the_one_that_counts(tmp_path: Path) -> None:
    files, *_ = CASES["no heading has the milestone of STATE"]
    roadmap = files["ROADMAP.md"].replace("## v1.0 One", "## 🚧 v1.0 One")
    note = survey(make_project(tmp_path, {**files, "ROADMAP.md": roadmap})).note

    assert "v2.0 by STATE.md" in note
    assert "v1.0 by a heading of ROADMAP.md" in note
    assert note.endswith("counts")


POSITIONS = {
    "Phase: 29 of 32 (Old) — with Ada": "Phase: 29 of 32 (Old) — with Ada",
    "Phase: 28 of 32 (Before) — with Ada": "Phase: 29 of 32 (Search) — with Ada",
    "Phase: 29 (Old) — PARTIAL-SCOPE COMPLETE": "Phase: 29 (Old) — PARTIAL-SCOPE COMPLETE",
    "Phase: 29 — Old (not started)": "Phase: 29 — Old (executing)",
    "Phase: 27 of 32 (Docs (API)) — with Ada": "Phase: 29 of 32 (Search) — with Ada",
    "Phase: 27 — Docs (API) (not started)": "Phase: 29 — Search (executing)",
    "Phase: Ready for next milestone": "Phase: 29 of 32 (Search)",
    "Plan: 1 of 5 in it (1 complete, 4 remaining)": "Plan: 2 of 3 in it (2 complete, 1 remaining)",
    "Plan: 0 of TBD in current phase": "Plan: 2 of 3 in current phase",
    "Progress: [==    ] 50% (5/7 plans), demo": "Progress: [===== ] 75% (6/8 plans), demo",
    "Progress: 50% (29/40 plans of all)": "Progress: 75% (29/40 plans of all)",
    "Progress: v1.0 done | v1.1 [██░░░░░░░░] 20%": "Progress: v1.0 done | v1.1 [████████░░] 75%",
    "Progress: [░░░░░░░░░░] 0% (0/4 phases)": "Progress: [███░░░░░░░] 25% (1/4 phases)",
    "Progress: 25% (3/12 phases of all)": "Progress: 25% (3/12 phases of all)",
    "Progress: ######---- 60%": "Progress: ########-- 75%",
    "Status: Ready to plan — waits for a key": "Status: In progress — waits for a key",
}


@pytest.mark.parametrize("line", POSITIONS)
def test_a_line_keeps_its_form_and_what_a_person_added(line: str) -> None:
    change = SetPosition(
        phase="29",
        name="Search",
        status="In progress",
        date="2026-01-31",
        activity="Did it",
        phases=4,
        last=32,
        plan=2,
        plans=3,
        percent=75,
        done=6,
        all_plans=8,
        phases_done=1,
        names={"27": "Docs (API)", "29": "Search"},
    )
    text = f"## Current Position\n\n{line}\n"
    after = apply_changes({"STATE.md": text}, [change]).get("STATE.md", text)

    assert after.splitlines()[-1] == POSITIONS[line]
    assert apply_changes({"STATE.md": after}, [change]) == {}


def test_a_number_that_is_not_known_is_left_alone() -> None:
    text = "## Current Position\n\nPhase: 9 of 12 (B)\nPlan: 2 of 5\nProgress: [██░░░] 40%\n"
    change = SetPosition(phase="9", name="B", status="In progress", date="2026-01-31", activity="x")

    assert apply_changes({"STATE.md": text}, [change]) == {}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("3 plans in 2 waves", "4 plans in 2 waves"),
        ("1/3 plans executed", "3/4 plans executed"),
        ("3 plans (1 complete, 2 gap closure)", "4 plans (3 complete, 2 gap closure)"),
        ("9 plans (2 of them with Ada)", "9 plans (2 of them with Ada)"),
        ("to be split with Ada", "to be split with Ada"),
    ],
)
def test_plans_are_counted_on_disk_and_not_by_their_ticks(field: str, expected: str) -> None:
    roadmap = (
        f"- [ ] **Phase 1: A** (0/3 plans)\n### Phase 1: A\n**Plans**: {field}\nPlans:\n- [ ] 01-01-PLAN.md\n"
        "\n## Progress\n\n| Phase | Plans | Status |\n|---|---|---|\n| 1. A | 1/3 (late) | In Progress |\n"
    )
    change = TickPlan(phase="1", plan="01-01")

    after = apply_changes({"ROADMAP.md": roadmap}, [change], {"1": (3, 4)})["ROADMAP.md"]

    assert f"**Plans**: {expected}\n" in after
    assert "| 1. A | 3/4 (late) | In Progress |" in after
    assert "**Phase 1: A** (3/4 plans)" in after
    again = ListPlans(phase="1", plans=(("01-01", ""),))
    assert apply_changes({"ROADMAP.md": after}, [again], {"1": (3, 4)}) == {}


def test_a_completed_phase_has_the_counts_of_its_plans_on_disk() -> None:
    roadmap = (
        "- [ ] **Phase 1: A** - a\n\n| Phase | Plans | Status |\n|---|---|---|\n| 1. A | 0/9 | Planned |\n"
    )
    change = TickPhase(phase="1", date="2026-01-31")

    after = apply_changes({"ROADMAP.md": roadmap}, [change], {"1": (9, 9)})["ROADMAP.md"]

    assert "| 1. A | 9/9 | Complete |" in after


@pytest.mark.parametrize(("old", "new"), [(37, 26), (26, 26), (16, 16)])
def test_the_total_of_numbers_that_count_on_is_the_last_number(old: int, new: int) -> None:
    text = f"## Current Position\n\nPhase: 15 of {old} (B)\n"
    change = SetPosition(
        phase="15", phases=16, last=26, name="B", status="In progress", date="2026-01-31", activity="x"
    )

    after = apply_changes({"STATE.md": text}, [change]).get("STATE.md", text)

    assert after == text.replace(f"of {old}", f"of {new}")


@pytest.mark.parametrize("line", ["Phase: 1 — A (not started)", "Phase: 01 (A) — COMPLETE"])
def test_a_phase_that_is_ready_for_verification_is_not_complete(tmp_path: Path, line: str) -> None:
    text = f"## Current Position\n\n{line}\nStatus: Ready to execute\n"
    root = make_project(tmp_path, {"ROADMAP.md": PHASES, "STATE.md": text})
    status = "Phase complete — ready for verification"
    change = SetPosition(phase="2", name="B", status=status, date="2026-01-31", activity="x")
    after = apply_changes({"STATE.md": text}, [change])["STATE.md"]

    assert "verifying" in after.lower()
    # With the other word, an earlier version of gsd wrote it.
    for said in (after, after.replace("verifying", "complete").replace("VERIFYING", "COMPLETE")):
        (root / ".planning" / "STATE.md").write_text(said)
        assert not any(phase.complete for phase in survey(root).phases())


@pytest.mark.parametrize(
    ("state", "complete"),
    [
        ("Phase: 3 of 3 (C)\nStatus: Milestone complete\n", "1 3"),
        ("Phase: 3 of 3 (C)\nStatus: v1.0 milestone complete\n", "1 3"),
        ("Phase: 3 of 3 (C)\nStatus: v0.9 milestone complete\n", ""),
        ("| Phase | Status |\n|---|---|\n| 1 | ✅ Complete |\n| 2. B | Complete |\n| 3 | Open |\n", "1 2"),
        ("| Phase | Status |\n|---|---|\n| 1 | Complete |\n| 2. Old | Complete |\n| 3 | Open |\n", "1"),
        ("| Phase | Status |\n|---|---|\n| 1 | Complete |\n| 2 | Complete |\n", ""),
    ],
)
def test_state_says_which_phases_are_complete(tmp_path: Path, state: str, complete: str) -> None:
    files = {"ROADMAP.md": f"## 🚧 v1.0 One\n{PHASES}", "STATE.md": f"## Current Position\n\n{state}"}
    for name in ("01-a/01-01", "02-b/02-01", "03-c/03-01"):
        files[f"phases/{name}-PLAN.md"] = plan_text()
        files[f"phases/{name}-SUMMARY.md"] = "# Done\n"
    del files["phases/02-b/02-01-SUMMARY.md"]
    root = make_project(tmp_path, files)

    assert [phase.number for phase in survey(root).phases() if phase.complete] == complete.split()
    assert [phase.number for phase in read_planning(root).phases if phase.ticked] == complete.split()


@pytest.mark.parametrize(("row", "open_"), [("3. C (CA)", []), ("3. Other", ["3"])])
def test_a_phase_of_a_shipped_milestone_is_open_everywhere_or_nowhere(
    tmp_path: Path, row: str, open_: list[str]
) -> None:
    table = f"| Phase | Plans Complete | Status |\n|---|---|---|\n| {row} | 6/6 | Complete |\n"
    roadmap = (
        f"## Milestones\n- ✅ **v1.0 One** — Phases 1-3 (shipped)\n## More\n- [ ] **Phase 3: C**\n{table}"
    )
    root = make_project(tmp_path, {"ROADMAP.md": roadmap})

    assert [phase.number for phase in read_planning(root).phases] == open_
    assert [phase.number for phase in survey(root).phases() if not phase.complete] == open_


def test_an_audit_leaves_out_what_a_phase_of_an_earlier_milestone_owes(tmp_path: Path) -> None:
    rows = "| R-1 | Phase 1 | Pending |\n| R-3 | Phase 3 | Pending |\n| R-9 | Phase 9 | Pending |\n"
    root = make_project(
        tmp_path,
        {
            "ROADMAP.md": f"## Milestones\n{SHIPPED}- 🚧 **v2.0 Two** — Phase 3 (in progress)\n"
            "## Phases\n- [x] **Phase 1: A** - a\n- [x] **Phase 2: B** - b\n- [ ] **Phase 3: C** - c\n",
            "REQUIREMENTS.md": "## v1 Requirements\n\n- [ ] **R-1**: a\n- [ ] **R-3**: c\n- [ ] **R-9**: z\n"
            f"\n## Traceability\n\n| Requirement | Phase | Status |\n|---|---|---|\n{rows}",
        },
    )

    found = audit(read_planning(root), root)

    assert [one.requirement.id for one in found.requirements] == ["R-3", "R-9"]
    assert [one.evidence for one in found.requirements if one.status == "orphaned"] == [
        "assigned to phase 9, which is not in ROADMAP.md"
    ]


@pytest.mark.parametrize(
    ("said", "needs_work"),
    [
        ("✓ PASS", False),
        ("NOT PASSED", True),
        ("FAIL (passes locally)", True),
        ("not verified yet", True),
        ("✅ Completed", False),
        ("**✓ SATISFIED** — exits with 1 on failure; a human-readable message", False),
        ("PASS", False),
        ("✗ BLOCKED", True),
        ("✗ FAILED — 2 of 3 pass", True),
        ("? UNCERTAIN", True),
    ],
)
def test_the_mark_that_another_tool_gave_a_requirement_counts(
    tmp_path: Path, said: str, needs_work: bool
) -> None:
    rows = f"| ID | Requirement | Status | Evidence |\n|---|---|---|---|\n| R-1 | It is | {said} | a.py |\n"
    root = make_project(
        tmp_path,
        {
            "ROADMAP.md": "### Phase 1: A\n**Requirements**: R-1\n",
            "REQUIREMENTS.md": "## v1 Requirements\n\n- [ ] **R-1**: It is\n",
            "phases/01-a/01-01-PLAN.md": plan_text(),
            "phases/01-a/01-01-SUMMARY.md": "done",
            "phases/01-a/01-VERIFICATION.md": f"---\nphase: 1\nstatus: passed\n---\n{rows}",
        },
    )

    [found] = audit(read_planning(root), root).requirements

    assert found.needs_work is needs_work


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("Milestone: v2.1 — Big", "v2.1"),
        ("**Current Milestone:** v2.1 Big", "v2.1"),
        ("**Current focus:** v2.1 Big — beginning phase 1", "v2.1"),
        ("**Current focus:** Milestone v2.1 — Big", "v2.1"),
        ("**Current focus:** v2.1 milestone COMPLETE", "v1.0"),
        ("**Current focus:** Phase 1 — the v2 API", "v1.0"),
    ],
)
def test_a_milestone_that_only_a_line_of_state_names_is_in_progress(
    tmp_path: Path, line: str, version: str
) -> None:
    root = make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", "STATE.md": f"# State\n\n{line}\n"})

    assert read_planning(root).milestone == version


@pytest.mark.parametrize("field", ["Milestone:", "**Milestone:**"])
def test_the_position_names_the_milestone_that_begins(field: str) -> None:
    text = f"---\nmilestone: v1.1\n---\n## Current Position\n\n{field} (none — v1.1 shipped)\nPhase: —\n"

    assert begin_milestone(text, "v1.2", "Search").splitlines()[5] == f"{field} v1.2 Search"
