"""Changes to ROADMAP.md, REQUIREMENTS.md and STATE.md: the lines they touch, and no others."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gsd_core import (
    AddDecisions,
    Change,
    ListPlans,
    MapRequirement,
    PlannedPhase,
    PlanningError,
    Requirement,
    SetPosition,
    TickPhase,
    TickPlan,
)
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.frontmatter import read_frontmatter
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state

PHASES = (
    PlannedPhase(number="1", name="First", goal="Begin", requirements=("A-01",), criteria=("It is",)),
    PlannedPhase(number="1.1", name="Fix", goal="Repair", depends_on=("1",), criteria=("It holds",)),
    PlannedPhase(number="10", name="Last", goal="End", requirements=("A-02",), criteria=("It was",)),
)
REQUIREMENTS = tuple(Requirement(id=i, text="something", category="A") for i in ("A-01", "A-02"))
TEXTS = {
    "ROADMAP.md": render_roadmap("Name", "All of it.", PHASES, "2026-01-01"),
    "REQUIREMENTS.md": render_requirements("Name", "Value", REQUIREMENTS, (), (), PHASES, "2026-01-01"),
    "STATE.md": render_state(core_value="Value", phases=PHASES, date="2026-01-01"),
}
BOLD_STATE = """\
# State

**Current Phase:** 01
**Current Phase Name:** First
**Total Phases:** 3
**Current Plan:** 0
**Total Plans in Phase:** 2
**Status:** Ready
**Progress:** [░░░░░░░░░░] 0%
**Last Activity:** 2026-01-01
**Last Activity Description:** none

## Accumulated Context

### Decisions

- [Phase 1]: kept
"""

numbers = st.sampled_from([phase.number for phase in PHASES])
dates = st.sampled_from(["2026-01-31", "2026-02-01"])
awkward_text = st.one_of(
    st.text(max_size=30), st.sampled_from(["TBD", "- [x] 01-01: x", "\n## Progress\n", "| a | b |", "**x**"])
)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(
        ListPlans,
        phase=numbers,
        plans=st.lists(st.tuples(st.sampled_from(["01", "2"]), awkward_text), max_size=3).map(tuple),
    ),
    st.builds(TickPlan, phase=numbers, plan=st.sampled_from(["1", "02"])),
    st.just(ListPlans(phase="1.1", plans=(("01.1-01", "in full"),))),
    st.builds(TickPhase, phase=numbers, date=dates),
    st.builds(
        MapRequirement,
        requirement=st.sampled_from(["A-01", "A-02"]),
        phase=numbers,
        status=st.sampled_from(["Pending", "In Progress", "Complete", "Blocked"]),
    ),
    st.builds(
        SetPosition,
        phase=numbers,
        phases=st.integers(1, 20),
        name=awkward_text,
        plan=st.integers(0, 9),
        plans=st.integers(0, 9),
        status=awkward_text,
        percent=st.integers(0, 100),
        date=dates,
        activity=awkward_text,
    ),
    st.builds(AddDecisions, phase=numbers, decisions=st.lists(awkward_text, max_size=3).map(tuple)),
)


@given(st.lists(changes, max_size=4), changes, st.booleans(), st.booleans())
def test_applying_a_change_twice_is_the_same_as_once(
    before: list[Change], change: Change, windows: bool, bold: bool
) -> None:
    texts = TEXTS | ({"STATE.md": BOLD_STATE} if bold else {})
    if windows:
        texts = {name: text.replace("\n", "\r\n") for name, text in texts.items()}
    texts |= apply_changes(texts, before)

    once = texts | apply_changes(texts, [change])

    assert apply_changes(once, [change]) == {}


@given(st.lists(changes, max_size=4))
def test_the_line_ends_of_a_file_are_kept(applied: list[Change]) -> None:
    windows = {name: text.replace("\n", "\r\n") for name, text in TEXTS.items()}

    edited = windows | apply_changes(windows, applied)

    plain = TEXTS | apply_changes(TEXTS, applied)
    assert {name: text.replace("\r\n", "\n") for name, text in edited.items()} == plain
    assert all("\n" not in text.replace("\r\n", "") for text in edited.values())


def changed_lines(name: str, *applied: Change, texts: dict[str, str] = TEXTS) -> list[str]:
    """Return the lines of a file that the changes added."""
    after = apply_changes(texts, applied).get(name, texts[name])
    before = texts[name].splitlines()
    return [line for line in after.splitlines() if line not in before]


def test_plans_are_listed_and_counted() -> None:
    listed = ListPlans(phase="1", plans=(("01-01", "begin"), ("01-02", "continue")))

    assert changed_lines("ROADMAP.md", listed) == [
        "**Plans**: 2 plans",
        "Plans:",
        "- [ ] 01-01-PLAN.md — begin",
        "- [ ] 01-02-PLAN.md — continue",
        "| 1. First | 0/2   | Planned     | - |",
    ]


def test_plans_of_a_later_round_are_appended() -> None:
    first = ListPlans(phase="1", plans=(("01-01", "begin"),))
    later = ListPlans(phase="1", plans=(("01-02", "close a gap"),))

    lines = changed_lines("ROADMAP.md", first, TickPlan(phase="1", plan="01-01"), later)

    assert lines == [
        "**Plans**: 1/2 plans executed",
        "Plans:",
        "- [x] 01-01-PLAN.md — begin",
        "- [ ] 01-02-PLAN.md — close a gap",
        "| 1. First | 1/2   | In Progress | - |",
    ]


def test_a_placeholder_of_the_template_is_replaced() -> None:
    text = "### Phase 3: X\n**Goal**: y\n**Plans**: TBD\n\nPlans:\n- [ ] 03-01: TBD\n\n## Progress\n"

    after = apply_changes({"ROADMAP.md": text}, [ListPlans(phase="3", plans=(("03-01", "it"),))])

    assert after["ROADMAP.md"] == text.replace("TBD\n\nP", "1 plan\n\nP").replace(
        "- [ ] 03-01: TBD", "- [ ] 03-01-PLAN.md — it"
    )


def test_phase_1_is_not_mistaken_for_1_1_or_10() -> None:
    assert changed_lines("ROADMAP.md", TickPhase(phase="1", date="2026-01-31")) == [
        "- [x] **Phase 1: First** - Begin (completed 2026-01-31)",
        "| 1. First | 0/TBD | Complete    | 2026-01-31 |",
    ]


def test_the_progress_table_may_have_a_milestone_column() -> None:
    text = (
        "### Phase 5: A\n\nPlans:\n- [ ] 05-01: a\n- [ ] 05-02: b\n\n"
        "| Phase | Milestone | Plans Complete | Status | Completed |\n|---|---|---|---|---|\n"
        "| 5. A | v1.1 | 0/2 | Not started | - |\n"
    )

    after = apply_changes({"ROADMAP.md": text}, [TickPlan(phase="5", plan="05-02")])["ROADMAP.md"]

    assert after.splitlines()[-1] == "| 5. A | v1.1 | 1/2 | In Progress | - |"
    assert "- [x] 05-02: b" in after


def test_without_a_list_of_plans_only_the_status_changes() -> None:
    assert changed_lines("ROADMAP.md", TickPlan(phase="1", plan="01-01")) == [
        "| 1. First | 0/TBD | In Progress | - |"
    ]


def after_listing(roadmap: str, phase: str, plan: str = "01") -> str:
    """Return a roadmap after one plan was listed and ticked, and its phase too."""
    applied: list[Change] = [
        ListPlans(phase=phase, plans=((plan, "begin"),)),
        TickPlan(phase=phase, plan=plan),
        TickPhase(phase=phase, date="2026-01-31"),
    ]
    return apply_changes({"ROADMAP.md": roadmap}, applied)["ROADMAP.md"]


def test_a_phase_that_is_only_in_the_checklist_gets_a_section_for_its_plans() -> None:
    text = "# R\n\n## Phases\n\n- [ ] **Phase 1: A** - do a\n- [ ] **Phase 2: B** - do b\n\n## Progress\n"

    assert after_listing(text, "2") == (
        "# R\n\n## Phases\n\n- [ ] **Phase 1: A** - do a\n"
        "- [x] **Phase 2: B** - do b (completed 2026-01-31)\n\n"
        "### Phase 2: B\n**Goal**: do b\n**Plans**: 1/1 plans executed\n\n"
        "Plans:\n- [x] 02-01-PLAN.md — begin\n\n"
        "## Progress\n"
    )


def test_a_phase_that_is_only_in_a_table_gets_a_section_for_its_plans() -> None:
    table = "| Phase | Name | Status |\n|---|---|---|\n| 1 | A | Not started |\n| **2** | B | Not started |\n"

    assert after_listing(table, "1") == table.replace("A | Not started", "A | Complete   ") + (
        "\n### Phase 1: A\n**Plans**: 1/1 plans executed\n\nPlans:\n- [x] 01-01-PLAN.md — begin\n"
    )


def test_a_phase_in_a_table_without_a_status_is_complete_by_its_new_heading() -> None:
    text = "| Phase | Name |\n|---|---|\n| 1 | A |\n"

    after = apply_changes({"ROADMAP.md": text}, [TickPhase(phase="1", date="2026-01-31")])["ROADMAP.md"]

    assert "### Phase 1: A ✓ COMPLETE (2026-01-31)\n" in after


def test_a_new_section_is_put_between_those_of_the_same_milestone() -> None:
    text = (
        "## v1.0 Old\n\n### Phase 1: A\n\n## v1.1 New\n\n- [ ] **Phase 3: C** - do c\n\n"
        "#### Phase 2: B\n**Goal**: b\n\n#### Phase 4: D\n"
    )

    headings = [line for line in after_listing(text, "3").splitlines() if line.startswith("#")]

    assert headings == [
        "## v1.0 Old",
        "### Phase 1: A",
        "## v1.1 New",
        "#### Phase 2: B",
        "#### Phase 3: C",
        "#### Phase 4: D",
    ]


def test_plans_are_not_listed_under_a_shipped_phase_of_the_same_number() -> None:
    shipped = "<details>\n<summary>✅ v1.0 Old</summary>\n\n### Phase 1: Old\n**Goal**: o\n\n</details>\n"
    text = f"{shipped}\n## 🚧 v2.0 New\n\n- [ ] **Phase 1: New** - do it\n"

    after = after_listing(text, "1")

    assert after.startswith(shipped)
    assert "### Phase 1: New\n**Goal**: do it\n" in after


def test_ticking_a_plan_adds_no_section() -> None:
    text = "- [ ] **Phase 1: A** - do a\n"

    assert apply_changes({"ROADMAP.md": text}, [TickPlan(phase="1", plan="01-01")]) == {}


def test_without_a_checklist_or_table_the_heading_is_marked() -> None:
    text = "## Phase 1: A\n**Goal:** a\n\n## Phase 2: B\n**Goal:** b\n"

    after = apply_changes({"ROADMAP.md": text}, [TickPhase(phase="2", date="2026-01-31")])

    assert after == {"ROADMAP.md": text.replace("2: B", "2: B ✓ COMPLETE (2026-01-31)")}


def test_a_requirement_is_ticked_and_its_row_updated() -> None:
    done = MapRequirement(requirement="A-02", phase="10", status="Complete")

    assert changed_lines("REQUIREMENTS.md", done) == [
        "- [x] **A-02**: something",
        "| A-02 | Phase 10 | Complete |",
    ]


def test_a_requirement_without_a_row_gets_one() -> None:
    texts = {"REQUIREMENTS.md": TEXTS["REQUIREMENTS.md"].replace("| A-02 | Phase 10 | Pending |\n", "")}
    started = MapRequirement(requirement="A-02", phase="10", status="In Progress")

    assert changed_lines("REQUIREMENTS.md", started, texts=texts) == ["| A-02 | Phase 10 | In Progress |"]


POSITION = SetPosition(
    phase="1.1",
    phases=3,
    name="Fix",
    plan=1,
    plans=2,
    status="In progress",
    percent=40,
    date="2026-01-31",
    activity="Did it",
)


def test_the_position_is_set_in_plain_fields() -> None:
    assert changed_lines("STATE.md", POSITION) == [
        "**Current focus:** Phase 1.1 — Fix",
        "Phase: 1.1 of 3 (Fix)",
        "Plan: 1 of 2 in current phase",
        "Status: In progress",
        "Last activity: 2026-01-31 — Did it",
        "Progress: [████░░░░░░] 40%",
        "Last session: 2026-01-31",
        "Stopped at: Did it",
    ]


def test_a_new_state_has_no_durations() -> None:
    lines = TEXTS["STATE.md"].splitlines()

    assert {"- Average duration: -", "- Total execution time: -"} <= set(lines)


def test_the_position_is_set_in_bold_fields() -> None:
    assert changed_lines("STATE.md", POSITION, texts={"STATE.md": BOLD_STATE}) == [
        "**Current Phase:** 01.1",
        "**Current Phase Name:** Fix",
        "**Current Plan:** 1",
        "**Status:** In progress",
        "**Progress:** [████░░░░░░] 40%",
        "**Last Activity:** 2026-01-31",
        "**Last Activity Description:** Did it",
    ]


METRICS = """\
# Project State

## Current Position

Stopped at: the traffic lights

## Performance Metrics

- Total plans completed: 2
- Average duration: -

## Session Continuity

Last session: 2026-01-01
Stopped at: Project initialized
Resume file: None
"""


def test_the_session_and_the_number_of_plans_are_set_in_plain_fields() -> None:
    done = evolve(POSITION, done=3)

    assert changed_lines("STATE.md", done, texts={"STATE.md": METRICS}) == [
        "- Total plans completed: 3",
        "Last session: 2026-01-31",
        "Stopped at: Did it",
    ]


def test_the_session_and_the_number_of_plans_are_set_in_bold_fields() -> None:
    bold = (
        "## Performance Metrics\n\n- **Total plans completed:** 2\n\n## Session\n\n"
        "**Last Date:** 2026-01-01\n**Stopped At:** nowhere\n**Resume File:** None\n"
    )

    assert changed_lines("STATE.md", evolve(POSITION, done=3), texts={"STATE.md": bold}) == [
        "- **Total plans completed:** 3",
        "**Last Date:** 2026-01-31",
        "**Stopped At:** Did it",
    ]


@pytest.mark.parametrize(
    "text", [METRICS, METRICS.replace("Total plans completed: 2", "**Total plans completed:** 2")]
)
def test_setting_the_same_position_twice_changes_nothing(text: str) -> None:
    done = evolve(POSITION, done=3)
    once = apply_changes({"STATE.md": text}, [done])

    assert once != {}
    assert apply_changes(once, [done]) == {}


@pytest.mark.parametrize("count", ["26", "8 (v1.1)"])
def test_a_count_that_may_include_earlier_milestones_is_left_alone(count: str) -> None:
    texts = {"STATE.md": f"## Performance Metrics\n\n- Total plans completed: {count}\n"}

    assert apply_changes(texts, [evolve(POSITION, done=3)]) == {}


def test_a_decision_is_not_added_again() -> None:
    change = AddDecisions(phase="1", decisions=("kept", "use\nJSON", "use JSON"))

    assert changed_lines("STATE.md", change, texts={"STATE.md": BOLD_STATE}) == ["- [Phase 1]: use JSON"]


@pytest.mark.parametrize(
    ("change", "mentioned"),
    [
        (ListPlans(phase="7", plans=(("07-01", "x"),)), ("ROADMAP.md", "phase 7")),
        (TickPlan(phase="1", plan="10-01"), ("ROADMAP.md", "10-01", "phase 1")),
        (TickPlan(phase="7", plan="07-01"), ("ROADMAP.md", "phase 7")),
        (TickPhase(phase="7", date="2026-01-31"), ("ROADMAP.md", "phase 7")),
        (
            MapRequirement(requirement="B-01", phase="1", status="Complete"),
            ("REQUIREMENTS.md", "B-01"),
        ),
    ],
)
def test_a_change_to_something_that_does_not_exist_is_an_error(
    change: Change, mentioned: tuple[str, ...]
) -> None:
    with pytest.raises(PlanningError) as error:
        apply_changes(TEXTS, [change])

    assert [word for word in mentioned if word not in str(error.value)] == []


def test_a_missing_roadmap_is_an_error_but_a_missing_state_is_not() -> None:
    assert apply_changes({}, [POSITION]) == {}
    with pytest.raises(PlanningError, match=r"\.planning/ROADMAP\.md: "):
        apply_changes({}, [TickPhase(phase="1", date="2026-01-31")])


FRONTMATTER = """---
gsd_state_version: 1.0
milestone: v1.2
status: planning  # by hand
current_phase: 1
current_phase_name: First
stopped_at: >-
  a text on
  several lines
last_updated: "2026-01-01T00:00:00.000Z"
progress:
  total_phases: 9
  completed_phases: 0
  total_plans: 1
  completed_plans: 0
  percent: 0
custom: kept
---

# State

Status: Planning
"""


def test_the_frontmatter_of_the_state_agrees_with_its_body() -> None:
    change = evolve(
        POSITION, status="In progress", done=3, all_plans=5, phases_done=1, at="2026-01-31T10:00:00+00:00"
    )
    once = apply_changes({"STATE.md": FRONTMATTER}, [change])["STATE.md"]
    head = read_frontmatter(once, path="STATE.md")

    assert head.text("status") == "executing"
    assert (head.text("current_phase"), head.text("current_phase_name")) == (change.phase, change.name)
    assert head.text("last_updated") == "2026-01-31T10:00:00+00:00"
    assert head.get("progress") == {
        "total_phases": str(change.phases),
        "completed_phases": "1",
        "total_plans": "5",
        "completed_plans": "3",
        "percent": str(change.percent),
    }
    assert head.text("stopped_at") == "a text on several lines"
    assert (head.text("milestone"), head.text("custom")) == ("v1.2", "kept")
    assert "active_phase" not in head.values
    assert apply_changes({"STATE.md": once}, [change]) == {}


def test_a_phase_number_in_the_frontmatter_stays_what_it_is() -> None:
    change = evolve(POSITION, phase="2.10")
    text = apply_changes({"STATE.md": FRONTMATTER}, [change])["STATE.md"]

    assert read_frontmatter(text, path="STATE.md").text("current_phase") == "2.10"
    assert 'current_phase: "2.10"' in text
