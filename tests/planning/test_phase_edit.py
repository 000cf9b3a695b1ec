"""Phases are added, inserted and removed: everything else stays, also if the process is killed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from gsd_core.codec import structure, unstructure
from gsd_core.errors import PlanningError
from gsd_core.planning.edits import Edit, apply_edit
from gsd_core.planning.phase_edit import plan_addition, plan_removal
from gsd_core.planning.survey import read_planning
from tests.peer.reader import ask_gsd, needs_gsd
from tests.planning.trees import DATA, each_project, make_project, plan_text

ROADMAP = """# Roadmap

- 🚧 **v1.0 MVP** - Phases 1-4 (in progress)

## Phases

- [x] **Phase 1: Core** - it works (completed 2026-01-01)
- [ ] **Phase 2: Middle** - between
- [ ] **Phase 3: More** - it does more
  - a note about it
- [ ] **Phase 4: Last** - it ends

## Phase Details

### Phase 1: Core
**Goal**: It works
**Depends on**: Nothing
### Phase 2: Middle
**Goal**: Between
**Depends on**: Phase 1
**Requirements**: CORE-01
### Phase 3: More
**Goal**: It does more than phase 2
**Depends on**: Phases 1-2
Plans:
- [ ] 03-01-PLAN.md — first
- [ ] 03-02: second
### Phase 4: Last
**Goal**: It ends
**Depends on**: Phase 2 (its parser), Phase 3 (4 files)
**Success Criteria** (what must be TRUE):
  1. Phase 3 is used

---
A person's own words.

## Progress

Phases execute in numeric order: 1 → 2 → 3 → 4

| Phase | Plans Complete | Status | Completed |
|-------|----------------|--------|-----------|
| 1. Core | 1/1 | Complete | 2026-01-01 |
| 2. Middle | 0/TBD | Not started | - |
| 3. More | 0/2 | Planned | - |
| 4. Last | 0/TBD | Not started | - |
"""
REQUIREMENTS = """## v1 Requirements
- [ ] **CORE-01**: one
- [ ] **CORE-02**: two

| Requirement | Phase | Status |
|---|---|---|
| CORE-01 | Phase 2 | In Progress |
| CORE-02 | Phase 3 | Pending |

- Mapped to phases: 2
- Unmapped: 0 ✓
"""
STATE = """---
current_phase: 3
progress:
  total_phases: 4
---
## Current Position
Phase: 3 of 4 (More)
Status: Ready to execute on 2026-03-01
"""
FILES: dict[str, str | bytes] = {
    "ROADMAP.md": ROADMAP,
    "REQUIREMENTS.md": REQUIREMENTS,
    "STATE.md": STATE,
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-01-SUMMARY.md": "done",
    "phases/02-middle/02-CONTEXT.md": "mine, and not committed",
    "phases/03-more/03-CONTEXT.md": "Phase 3 begins on 2026-03-01.",
    "phases/03-more/03-01-PLAN.md": plan_text(),
    "phases/03-more/03-02-PLAN.md": plan_text(
        depends_on='["03-01"]',
        body="See @.planning/phases/03-more/03-01-PLAN.md, released 2026-03-01.\n<tasks></tasks>",
    ).replace("phase: x", "phase: 03-more"),
    "phases/03-more/notes/3rd.bin": b"\xff03-01-PLAN",
    "phases/04-more/.gitkeep": "",
}


def content(root: Path) -> dict[str, bytes]:
    """Return all files below ``.planning``."""
    folder = root / ".planning"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def phases(root: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the names and dependencies of the phases in progress, by number."""
    return {one.number: (one.name, one.depends_on) for one in read_planning(root).phases}


def do(root: Path, edit: Edit) -> Edit:
    """Carry out an edit as the next process would read it."""
    apply(root, structure(json.loads(json.dumps(unstructure(edit))), Edit))
    return edit


def apply(root: Path, edit: Edit) -> None:
    apply_edit(root, edit, root / "beside")


def removal(root: Path, number: str, *, force: bool = False, keep_numbers: bool = False) -> Edit:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return plan_removal(root, number, at=at, force=force, keep_numbers=keep_numbers)


def test_a_removed_phase_leaves_no_gap_and_no_other_trace(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    edit = do(tmp_path, removal(tmp_path, "02"))
    found = content(tmp_path)
    roadmap = found["ROADMAP.md"].decode()

    assert phases(tmp_path) == {"1": ("Core", ()), "2": ("More", ("1",)), "3": ("Last", ("1", "2"))}
    assert roadmap.split("## Progress")[1].split("\n\n")[1:] == [
        "Phases execute in numeric order: 1 → 2 → 3",
        "| Phase | Plans Complete | Status | Completed |\n"
        "|-------|----------------|--------|-----------|\n"
        "| 1. Core | 1/1 | Complete | 2026-01-01 |\n"
        "| 2. More | 0/2 | Planned | - |\n"
        "| 3. Last | 0/TBD | Not started | - |\n",
    ]
    assert "Phases 1-3 (in progress)" in roadmap
    assert "  - a note about it\n" in roadmap
    assert "- [ ] 02-01-PLAN.md — first\n- [ ] 02-02: second\n" in roadmap
    assert "  1. Phase 3 is used\n\n---\nA person's own words.\n" in roadmap
    assert [roadmap.splitlines()[line - 1] for line in edit.about["mentions"]] == [
        "**Goal**: It does more than phase 2",
        "  1. Phase 3 is used",
    ]
    assert "| CORE-01 | Unmapped | Pending     |\n| CORE-02 | Phase 2 | Pending |" in (
        requirements := found["REQUIREMENTS.md"].decode()
    )
    assert "- Mapped to phases: 1\n- Unmapped: 1 ⚠️\n" in requirements
    assert found["STATE.md"].decode() == STATE.replace("phase: 3", "phase: 2").replace(
        "phases: 4", "phases: 3"
    ).replace("Phase: 3 of 4", "Phase: 2 of 3")
    assert sorted(name for name in found if name.startswith("phases/")) == [
        "phases/01-core/01-01-PLAN.md",
        "phases/01-core/01-01-SUMMARY.md",
        "phases/02-more/02-01-PLAN.md",
        "phases/02-more/02-02-PLAN.md",
        "phases/02-more/02-CONTEXT.md",
        "phases/02-more/notes/3rd.bin",
        "phases/03-more/.gitkeep",
    ]
    before, plan = FILES["phases/03-more/03-02-PLAN.md"], found["phases/02-more/02-02-PLAN.md"].decode()
    for old, new in (("03-more", "02-more"), ("03-01-PLAN", "02-01-PLAN"), ('"03-01"', '"02-01"')):
        before = str(before).replace(old, new)
    assert plan == before
    assert found["phases/02-more/02-CONTEXT.md"] == b"Phase 3 begins on 2026-03-01."


def test_a_decimal_is_removed_and_the_ones_after_it_move_up(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    for name in ("Urgent", "More urgent", "Most urgent"):
        do(tmp_path, plan_addition(tmp_path, name, after="3"))
    with pytest.raises(PlanningError, match=r"phase 3\.1 was inserted after phase 3"):
        removal(tmp_path, "3")
    before = phases(tmp_path)
    do(tmp_path, removal(tmp_path, "3.1"))

    assert [*before] == ["1", "2", "3", "3.1", "3.2", "3.3", "4"]
    assert before["3.2"] == ("More urgent", ("3",))
    assert {number: name for number, (name, _) in phases(tmp_path).items() if "." in number} == {
        "3.1": "More urgent",
        "3.2": "Most urgent",
    }
    assert sorted(path.name for path in (tmp_path / ".planning/phases").glob("03.*")) == [
        "03.1-more-urgent",
        "03.2-most-urgent",
    ]
    do(tmp_path, removal(tmp_path, "2"))
    assert [*phases(tmp_path)] == ["1", "2", "2.1", "2.2", "3"]
    assert phases(tmp_path)["2.1"] == ("More urgent", ("2",))


def test_numbers_can_be_kept(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    do(tmp_path, removal(tmp_path, "2", keep_numbers=True))

    assert phases(tmp_path) == {"1": ("Core", ()), "3": ("More", ("1",)), "4": ("Last", ("1", "3"))}
    assert (tmp_path / ".planning/phases/03-more/03-01-PLAN.md").exists()
    assert plan_addition(tmp_path, "New").about["phase"] == "5"


@each_project
def test_a_real_project_survives_adding_inserting_and_removing(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project / ".planning", tmp_path / ".planning")
    roadmap = tmp_path / ".planning/ROADMAP.md"
    # Those of our own projects have Windows line ends here, and those of others what they have.
    if project.is_relative_to(DATA) and roadmap.exists():
        roadmap.write_bytes(roadmap.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    before = content(tmp_path)
    state = before.pop("STATE.md", b"")
    named = phases(tmp_path)
    try:
        added = do(tmp_path, plan_addition(tmp_path, "Something new", goal="It is new"))
    except PlanningError:
        # No roadmap, no milestone in progress, or numbers that GSD itself cannot continue.
        assert content(tmp_path) == (before | {"STATE.md": state} if state else before)
        assert project.name in (
            *("Prodro21__RackPro", "ProgressPlanner__markdown-alternate"),
            *("quiz-night", "ski-trails", "tide-clock"),
        )
        return
    middle = [*named][len(named) // 2]
    inserted = do(tmp_path, plan_addition(tmp_path, "Quick fix", after=middle))
    with_both = phases(tmp_path)
    for number in (inserted.about["phase"], added.about["phase"]):
        do(tmp_path, removal(tmp_path, number, force=True))
    after = content(tmp_path)
    after.pop("STATE.md", None)
    if project.name == "Praciller__stockrush-go":
        # Only a table in STATE.md said which phases are complete; with a new phase, ROADMAP.md has to.
        assert after["ROADMAP.md"].count(" ✓ COMPLETE".encode()) == len(named)
        after["ROADMAP.md"] = after["ROADMAP.md"].replace(" ✓ COMPLETE".encode(), b"")

    assert {number: with_both[number] for number in named} == named
    assert with_both.keys() - named.keys() == {added.about["phase"], inserted.about["phase"]}
    assert with_both[inserted.about["phase"]] == ("Quick fix", (middle,))
    assert after == before


@pytest.mark.slow
@needs_gsd
@each_project
def test_gsds_own_tool_sees_the_same_phases(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project / ".planning", tmp_path / ".planning")
    if project.name in ("ProgressPlanner__markdown-alternate", "quiz-night"):
        pytest.skip("it has no roadmap")
    seen = _as_gsd_sees(tmp_path)
    try:
        added = do(tmp_path, plan_addition(tmp_path, "Something new"))
    except PlanningError:
        pytest.skip("it cannot be extended")
    with_new = _as_gsd_sees(tmp_path)
    do(tmp_path, removal(tmp_path, added.about["phase"]))

    assert _as_gsd_sees(tmp_path) == seen
    assert {number: with_new.get(number) for number in seen} == seen
    # What it cannot see, such as the numbers of [GSD.02] 05, it cannot see in a new phase either.
    if str(int(added.about["phase"]) - 1) in seen:
        assert with_new[added.about["phase"]] == "Something new"


def _as_gsd_sees(root: Path) -> dict[str, str]:
    found = ask_gsd(root, "roadmap", "analyze")["phases"]
    return {str(one["number"]).lstrip("0") or "0": one["name"] for one in found}


STEPS = ("rename", "replace", "unlink", "mkdir", "rmdir")
"""The calls of the system that change the tree; the process is killed after each of them in turn."""


def test_a_kill_at_any_point_is_finished_by_the_next_call(tmp_path: Path) -> None:
    make_project(tmp_path / "done", FILES)
    do(tmp_path / "done", removal(tmp_path / "done", "2"))
    expected = content(tmp_path / "done")
    killed, root = 0, tmp_path
    for count in range(1, 200):
        root = make_project(tmp_path / str(count), FILES)
        edit = removal(root, "2")
        if not _killed_after(count, partial(apply, root, edit)):
            break
        killed += 1
        do(root, edit)
        drafts = {name for name in content(root) if ".gsd-" in name}  # recovery removes these
        assert {name: data for name, data in content(root).items() if name not in drafts} == expected
        do(root, edit)
        assert phases(root) == phases(tmp_path / "done")

    assert killed > 8
    assert content(root) == expected


def _killed_after(count: int, work: Callable[[], None]) -> bool:
    """Do *work* in a process that is killed after its *count*-th change; return whether it was."""
    child = os.fork()
    if child == 0:
        left = count

        def counted(name: str) -> Callable[..., object]:
            real = getattr(os, name)

            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                found = real(*args, **kwargs)
                left -= 1
                if not left:
                    os._exit(9)
                return found

            return call

        for name in STEPS:
            setattr(os, name, counted(name))
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 9


def test_what_a_person_changed_after_a_kill_is_not_overwritten(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    edit = removal(tmp_path, "2")
    _killed_after(1, lambda: apply(tmp_path, edit))
    state = tmp_path / ".planning/STATE.md"
    state.write_text("my own words")

    with pytest.raises(PlanningError, match=r"STATE\.md.* was changed in the middle of an edit"):
        apply(tmp_path, edit)
    assert state.read_text() == "my own words"


def test_a_total_of_all_milestones_grows_by_the_new_phase(tmp_path: Path) -> None:
    state = "---\nprogress:\n  total_phases: 10\n  completed_phases: 9\n---\n"
    root = make_project(tmp_path, {"ROADMAP.md": "## Phase 9: A\n\n## Phase 10: B\n", "STATE.md": state})

    apply_edit(root, plan_addition(root, "C"), beside=tmp_path)

    assert (root / ".planning/STATE.md").read_text() == state.replace("10", "11")


def test_phases_that_a_table_in_state_calls_complete_stay_complete(tmp_path: Path) -> None:
    table = "| Phase | Status |\n|---|---|\n| 1 | Complete |\n| 2 | Complete |\n"
    files = {"ROADMAP.md": "## Phase 1: A\n\n## Phase 2: B\n", "STATE.md": f"## Progress\n\n{table}"}
    root = make_project(tmp_path, files)

    apply_edit(root, plan_addition(root, "C"), beside=tmp_path)
    apply_edit(root, plan_addition(root, "Between", after="1"), beside=tmp_path)

    assert {one.number: one.ticked for one in read_planning(root).phases} == {
        "1": True,
        "1.1": False,
        "2": True,
        "3": False,
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("  ", "cannot have a phase named"),
        ("…", "cannot have a phase named"),
        ("x" * 121, "cannot have a phase named"),
        ("Make it complete", "would not show a phase named"),
        ("Ready ✓", "would not show a phase named"),
    ],
)
def test_a_name_that_would_be_read_as_something_else_is_refused(tmp_path: Path, name: str, why: str) -> None:
    make_project(tmp_path, FILES)

    with pytest.raises(PlanningError, match=why):
        plan_addition(tmp_path, name)


@pytest.mark.parametrize(
    "name", ["Upgrade to v2.0", "a | b", "## v3.0 Hidden\n### Phase 9: x", "*bold* `code`"]
)
def test_a_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    make_project(tmp_path, FILES)
    do(tmp_path, plan_addition(tmp_path, name))

    assert [*phases(tmp_path)] == ["1", "2", "3", "4", "5"]
    assert read_planning(tmp_path).milestone == "v1.0"


def test_executed_work_is_not_removed_or_renumbered_without_force(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    with pytest.raises(PlanningError, match="phase 1 has executed work"):
        removal(tmp_path, "1")
    (tmp_path / ".planning/phases/03-more/03-01-SUMMARY.md").write_text("done")
    with pytest.raises(PlanningError, match="phase 3 has executed work, and would get another number"):
        removal(tmp_path, "2")
    do(tmp_path, removal(tmp_path, "2", force=True))

    assert (tmp_path / ".planning/phases/02-more/02-01-SUMMARY.md").read_text() == "done"


@pytest.mark.parametrize("number", ["9", "2.1", "999.1", "0"])
def test_a_phase_that_does_not_exist_is_not_found(tmp_path: Path, number: str) -> None:
    make_project(tmp_path, FILES)
    before = content(tmp_path)

    with pytest.raises(PlanningError, match="does not exist") as removed:
        removal(tmp_path, number)
    with pytest.raises(PlanningError, match="does not exist"):
        plan_addition(tmp_path, "New", after=number)
    assert "1, 2, 3, 4" in str(removed.value)
    assert content(tmp_path) == before


def test_a_file_in_the_way_and_two_folders_of_one_phase_are_refused(tmp_path: Path) -> None:
    make_project(tmp_path, {**FILES, "phases/03-more/02-01-PLAN.md": "another's"})
    with pytest.raises(PlanningError, match="cannot be renumbered"):
        removal(tmp_path, "2")
    (tmp_path / ".planning/phases/03-more/02-01-PLAN.md").unlink()
    (tmp_path / ".planning/phases/02-other").mkdir()
    with pytest.raises(PlanningError, match="more than one folder"):
        removal(tmp_path, "2")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    make_project(tmp_path, FILES)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    link = tmp_path / ".planning/phases/03-more/plans"
    link.symlink_to(outside)
    do(tmp_path, removal(tmp_path, "2"))
    do(tmp_path, removal(tmp_path, "2"))

    assert (outside / "precious").read_text() == "x"
    assert [*phases(tmp_path)] == ["1", "2"]
