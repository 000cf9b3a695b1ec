"""ROADMAP.md after a milestone, for roadmaps of people and of older versions; and what stays open."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.planning.milestone_close import (
    Shipped,
    collapse_roadmap,
    evolve_project,
    milestones_entry,
    one_liner,
    shipped,
    still_active,
)
from gsd_core.planning.model import PlannedPhase, Requirement
from gsd_core.planning.next_milestone import begin_milestone, next_phase_number, next_version
from gsd_core.planning.open_items import open_items
from gsd_core.planning.roadmap import parse_roadmap
from gsd_core.planning.survey import read_planning, survey
from tests.planning.trees import make_project

DATE = "2026-01-02"
PHASES = "### Phase 1: Core\n**Goal**: It works\n\n### Phase 2: More\n**Goal**: It does more\n"
STATE = "---\nmilestone: {version}\n---\n\n# Project State\n"
BACKLOG = "## Backlog\n\n### Phase 999.1: Dark mode (BACKLOG)\n\n**Goal:** It is dark\n"
OLD = (
    "<details>\n<summary>✅ v0.9 Trial (Phases 1-2) — SHIPPED 2025-12-01</summary>\n\nPhases 1 and 2.\n\n"
    "</details>"
)
ROADMAPS = {
    "no list of phases": (f"# Roadmap: Tool\n\n## Phase Details\n\n{PHASES}", "v1.0", {"1", "2"}),
    "Windows line ends": (f"# Roadmap: Tool\n\n## Phases\n\n{PHASES}\n{BACKLOG}", "v1.0", {"1", "2"}),
    "decimal phases": (
        f"# Roadmap: Tool\n\n- [x] **Phase 1: Core**\n- [x] **Phase 1.1: Fix** (INSERTED)\n\n{PHASES}"
        "### Phase 1.1: Fix\n**Goal**: Fixed\n",
        "v1.0",
        {"1", "1.1", "2"},
    ),
    "emoji and details": (
        f"# Roadmap: Tool\n\n## Milestones\n\n- ✅ **v0.9 Trial** — Phases 1-2 (shipped 2025-12-01)\n"
        f"- 🚧 **v1.0 🚀 Launch** — Phases 3-4 (in progress)\n\n## Phases\n\n{OLD}\n\n"
        "### 🚧 v1.0 🚀 Launch (In Progress)\n\n#### Phase 3: Core\n**Goal**: x\n\n"
        "<details>\n<summary>Notes</summary>\n\nNot a milestone.\n\n</details>\n\n"
        "#### Phase 4: More\n**Goal**: y\n",
        "v1.0",
        {"3", "4"},
    ),
    "a planned milestone and a backlog": (
        f"# Roadmap: Tool\n\n## Milestones\n\n- 🚧 **v1.0 First** — Phases 1-2 (in progress)\n"
        f"- 📋 **v2.0 Second** — Phases 5-6 (planned)\n\n## 🚧 v1.0 First (In Progress)\n\n{PHASES}\n"
        f"## 📋 v2.0 Second (Planned)\n\n### Phase 5: Later\n**Goal**: z\n\n{BACKLOG}",
        "v1.0",
        {"1", "2"},
    ),
    "names instead of versions": (
        f"# Roadmap: Tool\n\n## Milestones\n\n- 🚧 **M1 Launch** — Phases 1-2 (in progress)\n- Ada decides\n"
        f"\n{OLD.replace('v0.9 ', '')}\n\n## Milestone M1: Launch\n\n{PHASES}",
        "M1",
        {"1", "2"},
    ),
    "an unclosed details block": (
        f"# Roadmap: Tool\n\n## Phases\n\n{PHASES}\n<details>\n<summary>Old notes</summary>\n\ntext\n",
        "v1.0",
        {"1", "2"},
    ),
}


@pytest.mark.parametrize("name", ROADMAPS)
def test_a_collapsed_roadmap_has_the_milestone_as_shipped_and_keeps_the_rest(
    tmp_path: Path, name: str
) -> None:
    text, version, numbers = ROADMAPS[name]
    root = make_project(tmp_path, {"ROADMAP.md": text, "STATE.md": STATE.format(version=version)})
    path = root / ".planning" / "ROADMAP.md"
    if name == "Windows line ends":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    planning = read_planning(root)
    assert {phase.number for phase in planning.phases} == numbers
    about = shipped(planning, root, DATE)

    collapsed = collapse_roadmap(path.read_bytes().decode(), about)

    path.write_text(collapsed)
    archive = root / ".planning" / "milestones" / f"{version}-ROADMAP.md"
    archive.parent.mkdir()
    archive.write_text(text)
    mentions = parse_roadmap(collapsed).mentions()
    assert not {one.number for one in mentions if not one.shipped} & numbers
    assert collapsed.count(about.label) == 2, "once in the list of milestones, once above its phases"
    for number in numbers:
        assert f"Phase {number}: " in collapsed, "each phase has a line"
    found = {one.version: one.shipped for one in survey(root).milestones}
    assert found[version] is True
    if name == "emoji and details":
        assert found == {"v0.9": True, "v1.0": True}
        assert "Phases 1 and 2." in collapsed
    if version == "M1":
        assert ("- Ada decides" in collapsed, "Trial (Phases 1-2)" in collapsed) == (True, True)
    if "Backlog" in text:
        assert "Dark mode" in collapsed
    if "v2.0" in text:
        assert found["v2.0"] is False
        assert "### Phase 5: Later" in collapsed
        return
    assert read_planning(root).idle

    # And the next milestone begins after it.
    first = next_phase_number(root)
    assert int(first) > max(int(number.split(".")[0]) for number in numbers)
    new = PlannedPhase(
        number=first, name="Next", goal="It goes on", requirements=(), criteria=("a",), depends_on=()
    )
    path.write_text(begin_milestone(collapsed, next_version(root), "Next", "It goes on", [new]))
    again = read_planning(root)
    following = "M2" if version == "M1" else "v1.1"
    assert (again.milestone, [phase.number for phase in again.phases]) == (following, [first])
    assert {one.version: one.shipped for one in survey(root).milestones}[version] is True


def test_what_is_open_is_named_and_what_is_done_is_not(tmp_path: Path) -> None:
    root = make_project(
        tmp_path,
        {
            "ROADMAP.md": f"# Roadmap: Tool\n\n{PHASES}",
            "phases/01-core/01-UAT.md": "---\nstatus: testing\n---\n\n### 1. It starts\nresult: [pending]\n",
            "phases/02-more/02-UAT.md": "---\nstatus: complete\n---\n",
            "debug/slow-start.md": "---\nstatus: investigating\n---\n",
            "debug/old.md": "---\nstatus: resolved\n---\n",
            "debug/broken.md": "---\nstatus: [\n",
            "quick/260101-abc-fix/260101-abc-PLAN.md": "# Plan\n",
            "quick/260101-abd-fix/260101-abd-SUMMARY.md": "---\nstatus: complete\n---\n",
            "quick/1-older/1-SUMMARY.md": "# Done\n",
            "todos/pending/2026-01-01-docs.md": "---\ntitle: Write the docs\n---\n",
            "todos/completed/2026-01-01-done.md": "---\ntitle: Done\n---\n",
        },
    )

    found = open_items(read_planning(root), root)

    assert found == (
        "Acceptance tests of phase 1: testing, 1 without a result (01-UAT.md)",
        "Debug session broken: unreadable",
        "Debug session slow-start: investigating",
        "Quick task 260101-abc-fix: no summary",
        "Todo: Write the docs",
    )
    about = shipped(read_planning(root), root, DATE)
    entry = milestones_entry("", about, ["A-1: it works (unsatisfied)"], found)
    assert entry.index("### Known Gaps") < entry.index("### Open Items")
    assert "- Debug session slow-start: investigating" in entry
    assert milestones_entry(entry, about, [], found) == entry, "closing twice adds no second entry"


def test_the_beginning_of_a_section_is_no_accomplishment() -> None:
    assert one_liner("# Summary\n\n**It greets**\n") == "It greets"
    assert one_liner("# Summary\n\n**Decisions:**\n\n## Done\n\n**It greets**\n") == "It greets"
    assert one_liner("# Summary\n\n**One-liner:** It greets\n\n## How\n\n**Roles:**\n") == "It greets"


@pytest.mark.parametrize(
    ("item", "is_validated"),
    [
        ("Users can list all of their entries", True),
        ("User lists all entries", True),
        ("**LIST-01**: Something else entirely", True),
        ("Show everything (LIST-01)", True),
        ("Export reports as CSV, UTF-8", True),
        ("LIST-01 and LIST-02: lists", False),
        ("LIST-02: User can list all entries", False),
        ("User can list all tags", False),
        ("User can not list all entries", False),
        ("User can list all 5 entries", False),
        ("Export reports as PDF", False),
        ("Reports are exported with the names of their authors and dates", False),
        ("Sort entries by name", False),
        ("Überschriften", False),
    ],
)
def test_an_active_item_is_validated_by_its_id_or_by_nearly_the_same_words(
    item: str, is_validated: bool
) -> None:
    met = [
        Requirement(id="LIST-01", text="User can list all entries"),
        Requirement(id="CSV-01", text="Export the reports as CSV (UTF-8)"),
        Requirement(id="SORT-01", text="Sort all entries by name"),
    ]
    unmet = [
        Requirement(id="LIST-02", text="User can sort"),
        Requirement(id="SORT-02", text="Sorts entries by name"),
    ]
    head = "# Tool\n\n## Requirements\n\n### Validated\n\n(None yet)\n\n### Active\n\n"
    text = f"{head}- [ ] {item}\n\n## Context\n"
    about = Shipped(version="v1.0", name="First", date=DATE, phases=())

    evolved = evolve_project(text, about, met, unmet)

    assert (f"— {about.version}" in evolved) is is_validated
    assert (f"- [ ] {item}" in evolved) is not is_validated
    left = still_active(text, met, unmet)
    assert bool(left) is not is_validated
    assert ("### Still Active" in milestones_entry("", about, active=left)) is not is_validated
