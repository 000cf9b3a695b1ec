"""Three versions of a planning file, merged by meaning; git itself merges their lines."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_core.errors import PlanningError
from gsd_core.planning.merge import MERGED, merge_planning
from gsd_core.planning.requirements import parse_requirements
from gsd_core.planning.roadmap_edit import plan_ticks
from tests.planning.trees import CORPUS_PROJECTS, TREES

ROADMAP = """\
# Roadmap: Greeter

## Milestones

- 🚧 **v1.0 MVP** — Phases 1-3

## Phases

- [ ] **Phase 1: Parse** - Lines become guests
- [ ] **Phase 2: Greet** - Guests are greeted
- [x] **Phase 3: Store** - Guests are stored

### Phase 1: Parse
**Goal**: Lines become guests
**Plans**: 2 plans

Plans:
- [ ] 01-01-PLAN.md — Parse a line
- [ ] 01-02-PLAN.md — Refuse a wrong one

### Phase 2: Greet
**Goal**: Guests are greeted
**Plans**: TBD

## Progress

| Phase | Plans Complete | Status | Completed |
|-------|----------------|--------|-----------|
| 1. Parse | 0/2 | Planned | - |
| 2. Greet | 0/TBD | Not started | - |
| 3. Store | 1/1 | Complete | 2026-01-01 |
"""
REQUIREMENTS = """\
# Requirements

## v1 Requirements

- [ ] **CORE-01**: User can add a guest
- [ ] **CORE-02**: User sees a greeting
- [x] **CORE-03**: User sees 100 guests

## Traceability

| Requirement | Phase | Status |
|-------------|-------|--------|
| CORE-01 | Phase 1 | Pending |
| CORE-02 | Phase 2 | Pending |
| CORE-03 | Phase 3 | Complete |

*Last updated: 2026-01-01 after the start*
"""
STATE = """\
---
status: executing
stopped_at: Phase 1 planned
last_updated: "2026-01-01T10:00:00Z"
progress:
  total_phases: 3
  completed_phases: 0
  total_plans: 4
  completed_plans: 1
  percent: 25
---
# Project State

**Current focus:** Phase 1 — Parse

## Current Position

Phase: 1 of 3 (Parse)
Plan: 1 of 2 in current phase
Status: In progress
Last activity: 2026-01-01 — Planned

Progress: [██░░░░░░░░] 25%

### Decisions

- [Phase 1]: Names are kept as they are

### Pending Todos

None yet.

### Blockers/Concerns

None yet.
"""
MILESTONES = """\
# Milestones

## v1.0 MVP (Shipped: 2026-01-01)

**Key accomplishments:**
- Guests are greeted

---
"""
TEXTS: dict[str, str] = dict(zip(MERGED, (ROADMAP, REQUIREMENTS, STATE, MILESTONES), strict=True))


def merge_lines(base: str, ours: str, theirs: str) -> str:
    """Merge texts with git, as the command does."""
    with tempfile.TemporaryDirectory() as folder:
        names = ["ours", "base", "theirs"]
        for name, text in zip(names, (ours, base, theirs), strict=True):
            Path(folder, name).write_text(text, encoding="utf-8")
        command = ["git", "merge-file", "-p", "--diff3", *names]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def merged(name: str, base: str, ours: str, theirs: str) -> tuple[str, bool]:
    """Merge both ways, which has to give the same text, with a conflict's sides exchanged."""
    text, conflicts = merge_planning(name, base, ours, theirs, merge_lines)
    other, also = merge_planning(name, base, theirs, ours, merge_lines)
    assert conflicts == also
    assert conflicts or text == other
    assert sorted(text.split("\n")) == sorted(other.split("\n"))
    return text, conflicts


def edited(text: str, *changes: tuple[str, str]) -> str:
    """Return *text* with each change, which must find its place."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BOX = "- [ ] **Phase 1: Parse** - Lines become guests"
TICKED = "- [x] **Phase 1: Parse** - Lines become guests (completed 2026-01-02)"
ROW1, ROW2 = "| 1. Parse | 0/2 | Planned | - |", "| 2. Greet | 0/TBD | Not started | - |"
PLAN1, PLAN2 = "- [ ] 01-01-PLAN.md — Parse a line", "- [ ] 01-02-PLAN.md — Refuse a wrong one"
ONE = (PLAN1, PLAN1.replace("[ ]", "[x]"))
TWO = (PLAN2, PLAN2.replace("[ ]", "[x]"))
HALF = (("2 plans", "1/2 plans executed"), (ROW1, "| 1. Parse | 1/2 | In Progress | - |"))
DECISION = "- [Phase 1]: Names are kept as they are\n"
TODO = "### Pending Todos\n\nNone yet."
V11 = "## v1.1 More (Shipped: 2026-02-01)\n\n- More\n\n---\n\n"
V12 = "## v1.2 Most (Shipped: 2026-03-01)\n\n- Most\n\n---\n\n"

CASES = {
    "ticks of neighbors": (
        "ROADMAP.md",
        [(BOX, TICKED)],
        [("[ ] **Phase 2", "[x] **Phase 2")],
        [TICKED, "- [x] **Phase 2: Greet** - Guests are greeted"],
    ),
    "a tick and another text": (
        "ROADMAP.md",
        [(BOX, TICKED)],
        [(BOX, BOX.replace("Lines", "All lines"))],
        [TICKED.replace("Lines", "All lines")],
    ),
    "two dates of one completion": (
        "ROADMAP.md",
        [(BOX, TICKED)],
        [(BOX, TICKED.replace("02)", "03)"))],
        [TICKED.replace("02)", "03)")],
    ),
    "unticked wins over left alone": (
        "ROADMAP.md",
        [("[x] **Phase 3", "[ ] **Phase 3")],
        [(BOX, TICKED)],
        ["- [ ] **Phase 3: Store** - Guests are stored", TICKED],
    ),
    "plans are counted anew": (
        "ROADMAP.md",
        [ONE, *HALF],
        [TWO, *HALF],
        [ONE[1], TWO[1], "**Plans**: 2/2 plans executed", "| 1. Parse | 2/2 | In Progress | - |"],
    ),
    "a plan is added and another ticked": (
        "ROADMAP.md",
        [ONE, *HALF],
        [
            (PLAN2, f"{PLAN2}\n- [ ] 01-03-PLAN.md — Count"),
            ("2 plans", "3 plans"),
            (ROW1, ROW1.replace("/2", "/3")),
        ],
        [
            "- [ ] 01-03-PLAN.md — Count",
            "**Plans**: 1/3 plans executed",
            "| 1. Parse | 1/3 | In Progress | - |",
        ],
    ),
    "two plans are added in one place, in order": (
        "ROADMAP.md",
        [(PLAN2, f"{PLAN2}\n- [ ] 01-10-PLAN.md — Ten"), ("2 plans", "3 plans")],
        [(PLAN2, f"{PLAN2}\n- [ ] 01-03-PLAN.md — Three"), ("2 plans", "3 plans")],
        [f"{PLAN2}\n- [ ] 01-03-PLAN.md — Three\n- [ ] 01-10-PLAN.md — Ten\n", "**Plans**: 4 plans"],
    ),
    "one row further than the other": (
        "ROADMAP.md",
        [(ROW1, "| 1. Parse | 1/2 | In Progress | - |"), ONE],
        [(ROW1, "| 1. Parse | 2/2 | Complete | 2026-01-02 |"), ONE, TWO],
        ["| 1. Parse | 2/2 | Complete | 2026-01-02 |\n| 2."],
    ),
    "two phases are added": (
        "ROADMAP.md",
        [("\n## Progress", "\n### Phase 5: Five\n**Goal**: More\n\n## Progress")],
        [("\n## Progress", "\n### Phase 4: Four\n**Goal**: Most\n\n## Progress")],
        ["TBD\n\n### Phase 4: Four\n**Goal**: Most\n\n### Phase 5: Five\n**Goal**: More\n\n## Progress"],
    ),
    "plans of the last phase and a new one": (
        "ROADMAP.md",
        [("\n## Progress", "\nPlans:\n- [ ] 02-01-PLAN.md — Say it\n\n## Progress")],
        [("\n## Progress", "\n### Phase 4: Four\n**Goal**: Most\n\n## Progress")],
        ["Plans:\n- [ ] 02-01-PLAN.md — Say it\n\n### Phase 4: Four\n**Goal**: Most\n\n## Progress"],
    ),
    "requirements and their rows": (
        "REQUIREMENTS.md",
        [("[ ] **CORE-01", "[x] **CORE-01"), ("Phase 1 | Pending", "Phase 1 | Complete")],
        [("[ ] **CORE-02", "[x] **CORE-02"), ("Phase 2 | Pending", "Phase 2 | Complete")],
        [
            "[x] **CORE-01",
            "[x] **CORE-02",
            "| CORE-01 | Phase 1 | Complete |\n| CORE-02 | Phase 2 | Complete |",
        ],
    ),
    "the later date": (
        "REQUIREMENTS.md",
        [("2026-01-01 after the start", "2026-01-03 after phase 2")],
        [("2026-01-01 after the start", "2026-01-02 after phase 1")],
        ["*Last updated: 2026-01-03 after phase 2*"],
    ),
    "two columns of a row": (
        "REQUIREMENTS.md",
        [("Phase 1 | Pending", "Phase 1 | Complete")],
        [("Phase 1 | Pending", "Phase 2 | Pending")],
        ["| CORE-01 | Phase 2 | Complete |"],
    ),
    "decisions and todos of both": (
        "STATE.md",
        [(DECISION, f"{DECISION}- [Phase 2]: B\n"), (TODO, "### Pending Todos\n\n- two")],
        [(DECISION, f"{DECISION}- [Phase 1]: A\n"), (TODO, "### Pending Todos\n\n- one")],
        [f"{DECISION}- [Phase 1]: A\n- [Phase 2]: B\n", "### Pending Todos\n\n- one\n- two\n"],
    ),
    "the further position, the later activity, the sum of the counts": (
        "STATE.md",
        [
            ("Phase: 1 of 3 (Parse)", "Phase: 3 of 3 (Store)"),
            ("Plan: 1 of 2", "Plan: 0 of 1"),
            ("2026-01-01 — Planned", "2026-01-02 — Phase 2 complete"),
            ("completed_plans: 1", "completed_plans: 2"),
            ("percent: 25", "percent: 50"),
            ("[██░░░░░░░░] 25%", "[█████░░░░░] 50%"),
        ],
        [
            ("Phase: 1 of 3 (Parse)", "Phase: 2 of 4 (Greet)"),
            ("Plan: 1 of 2", "Plan: 2 of 2"),
            ("2026-01-01 — Planned", "2026-01-03 — Phase 1 complete"),
            ("completed_plans: 1", "completed_plans: 2"),
            ("percent: 25", "percent: 50"),
            ("[██░░░░░░░░] 25%", "[█████░░░░░] 50%"),
        ],
        [
            "Phase: 3 of 4 (Store)\nPlan: 0 of 1 in current phase\n",
            "Last activity: 2026-01-03 — Phase 1 complete",
            "  completed_plans: 3\n  percent: 75\n",
            "Progress: [████████░░] 75%",
        ],
    ),
    "a position is that of one side, as in a rebase": (
        "STATE.md",
        [("Phase: 1 of 3 (Parse)", "Phase: 3 of 3 (Store)"), ("Plan: 1 of 2", "Plan: 0 of 4")],
        [("Plan: 1 of 2", "Plan: 2 of 2"), ("Status: In progress", "Status: Verified"), ("] 25%", "] 50%")],
        ["Phase: 3 of 3 (Store)\nPlan: 0 of 4 in current phase\nStatus: In progress\n", "] 25%"],
    ),
    "what is planned lowers the percentage": (
        "STATE.md",
        [("completed_plans: 1", "completed_plans: 4"), ("percent: 25", "percent: 100")],
        [("total_plans: 4", "total_plans: 8"), ("percent: 25", "percent: 13")],
        ["  total_plans: 8\n  completed_plans: 4\n  percent: 50\n"],
    ),
    "items that look like fields or milestones": (
        "STATE.md",
        [(TODO, "### Pending Todos\n\n- **Key:** of v1.0")],
        [(TODO, "### Pending Todos\n\n- **Key:** of v1.0 also")],
        ["### Pending Todos\n\n- **Key:** of v1.0\n- **Key:** of v1.0 also\n"],
    ),
    "the newest milestone first": (
        "MILESTONES.md",
        [("## v1.0", f"{V11}## v1.0")],
        [("## v1.0", f"{V12}## v1.0")],
        [f"# Milestones\n\n{V12}{V11}## v1.0 MVP"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_both_sides_count(case: str) -> None:
    name, ours, theirs, wanted = CASES[case]
    base = TEXTS[name]

    text, conflicts = merged(name, base, edited(base, *ours), edited(base, *theirs))

    assert not conflicts
    for part in wanted:
        assert part in text
    for side in (ours, theirs):
        # The ends of the lines are part of a file's form.
        crlf = [one.replace("\n", "\r\n") for one in (base, edited(base, *side), base + "end\n")]
        assert merge_planning(name, *(crlf[0], crlf[1], crlf[2]), merge_lines)[0] == f"{crlf[1]}end\r\n"


CONFLICT = re.compile(r"<{7} ours\n(.*?)={7}\n(.*?)>{7} theirs\n", re.DOTALL)
CONFLICTS = {
    "a goal": ("ROADMAP.md", "**Goal**: Lines become guests", "**Goal**: %s"),
    "the text of a tick": ("ROADMAP.md", BOX, "- [ ] **Phase 1: Parse** - %s"),
    "a number in prose": ("REQUIREMENTS.md", "sees 100 guests", "sees %s guests"),
    "a cell": ("REQUIREMENTS.md", "| CORE-01 | Phase 1 |", "| CORE-01 | Phase %s |"),
    "one phase twice": ("ROADMAP.md", "\n## Progress", "\n### Phase 4: %s\n**Goal**: %s\n\n## Progress"),
    "parts of two levels": ("ROADMAP.md", "\n## Progress", "\n#%s Part\n\nAbout %s\n\n## Progress"),
    "a paragraph": ("STATE.md", "# Project State\n", "# Project State\n\nAbout %s.\n"),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_conflict_is_around_its_own_lines_only(case: str) -> None:
    name, old, new = CONFLICTS[case]
    base = TEXTS[name]
    ticked = base.replace("[ ] **Phase 2", "[x] **Phase 2").replace("Phase 2 | Pending", "Phase 2 | Complete")
    mine, others = ("# 200", "## 300") if case == "parts of two levels" else ("200", "300")
    ours, theirs = (
        edited(base, (old, new.replace("%s", mine))),
        edited(ticked, (old, new.replace("%s", others))),
    )

    text, conflicts = merged(name, base, ours, theirs)

    assert conflicts
    for side, number in ((1, mine), (2, others)):
        # Where the conflicts are resolved in favor of one side, the result is what that side alone has.
        assert CONFLICT.sub(rf"\{side}", text) == edited(ticked, (old, new.replace("%s", number)))
    assert max(len(found[0]) for found in CONFLICT.finditer(text)) < 150


def test_a_row_that_one_side_removed_and_the_other_changed_is_a_conflict() -> None:
    ours = edited(ROADMAP, (f"{ROW2}\n", ""))
    theirs = edited(ROADMAP, (ROW2, "| 2. Greet | 1/1 | Complete | 2026-01-02 |"))

    text, conflicts = merged("ROADMAP.md", ROADMAP, ours, theirs)

    assert conflicts
    assert "| 2. Greet | 1/1 | Complete | 2026-01-02 |" in text


def test_lines_that_are_something_else_on_one_side_only_stay_where_they_are() -> None:
    ours = edited(ROADMAP, ("## Phases\n", "## Phases\n\n```\n"))
    theirs = edited(ROADMAP, ("# Roadmap: Greeter", "# Roadmap: Greeter of guests"))

    assert merged("ROADMAP.md", ROADMAP, ours, theirs) == (
        edited(ours, ("# Roadmap: Greeter", "# Roadmap: Greeter of guests")),
        False,
    )


def test_a_file_that_is_not_understood_is_refused() -> None:
    many = "".join(f"- [ ] **Phase {n}: X** - y\n" for n in range(600))
    for base in (many, "one\r\ntwo\n"):
        with pytest.raises(PlanningError):
            merge_planning("ROADMAP.md", base, f"{base}a\n", f"{base}b\n", merge_lines)


few = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None, max_examples=15
)
FILES = sorted(
    path
    for project in (*TREES, *CORPUS_PROJECTS)
    for name in MERGED
    if (path := project / ".planning" / name).is_file()
)


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str, str]:
    """Return a file's name, its text, and the text after some of its lines were changed."""
    path = draw(st.sampled_from(FILES))
    base = path.read_bytes().decode()
    lines = base.split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(lines) - 5)))
        boxes = [n for n, line in enumerate(lines[:-4]) if "[ ]" in line or "[x]" in line]
        match draw(st.sampled_from(["tick", "tick", "add", "remove", "repeat"])):
            case "tick" if boxes:
                at = draw(st.sampled_from(boxes))
                lines[at] = lines[at].translate({ord(" "): " "}).replace("[ ]", "[-]")
                lines[at] = lines[at].replace("[x]", "[ ]").replace("[-]", "[x]")
            case "remove":
                del lines[at]
            case "repeat":
                lines.insert(at, lines[at])
            case _:
                lines.insert(at, draw(st.sampled_from(["", "new", "- new", "| 9 | new |", "## New", "```"])))
    return path.name, base, "\n".join(lines)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None, max_examples=15
)
@given(versions())
def test_what_one_side_changed_alone_is_in_the_result_byte_for_byte(made: tuple[str, str, str]) -> None:
    name, base, changed = made
    assert merge_planning(name, base, changed, base, merge_lines) == (changed, False)
    assert merge_planning(name, base, base, changed, merge_lines) == (changed, False)
    assert merge_planning(name, base, changed, changed, merge_lines) == (changed, False)

    # The same with a change far away, so that there is something to merge.
    end = "\r\n" if "\r\n" in base else "\n"
    assert merged(name, base, changed, f"{base}{end}The end.{end}") == (f"{changed}{end}The end.{end}", False)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None, max_examples=15
)
@given(versions(), st.data())
def test_ticks_are_united_in_any_two_versions(made: tuple[str, str, str], data: st.DataObject) -> None:
    name, base, ours = made
    theirs = data.draw(versions().filter(lambda other: other[:2] == (name, base)))[2]

    text, _ = merged(name, base, ours, theirs)

    was, mine, others, now = (
        {one.id: one.done for one in parse_requirements(one)}
        if name == "REQUIREMENTS.md"
        else {plan: tick for plans in plan_ticks(one).values() for plan, tick in plans.items()}
        if name == "ROADMAP.md"
        else {}
        for one in (base, ours, theirs, text)
    )
    for key in was.keys() & mine.keys() & others.keys() & now.keys():
        assert now[key] == (others[key] if mine[key] == was[key] else mine[key])
