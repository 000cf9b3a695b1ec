"""Reading ``.planning/`` in the variants of its format that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core import PhaseView, Planning, PlanningError, phase_order
from gsd_core.planning.frontmatter import read_frontmatter
from gsd_core.planning.plan import parse_plan
from gsd_core.planning.survey import read_planning
from gsd_core.planning.verification import parse_verdict
from tests.planning.trees import make_project


def planning_of(root: Path, files: dict[str, str]) -> Planning:
    """Read a project with these files in its ``.planning/``."""
    return read_planning(make_project(root, files))


def only_phase(root: Path, section: str) -> PhaseView:
    """Read the only phase of a roadmap that consists of this section."""
    (phase,) = planning_of(root, {"ROADMAP.md": section}).phases
    return phase


def test_a_project_without_planning_has_no_phases(tmp_path: Path) -> None:
    assert read_planning(tmp_path) == Planning()


@pytest.mark.parametrize("hashes", ["##", "###", "####"])
@pytest.mark.parametrize("colon", ["**{}**:", "**{}:**"])
def test_a_phase_is_read_at_every_heading_level_and_with_colons_in_or_after_the_bold_text(
    tmp_path: Path, hashes: str, colon: str
) -> None:
    def label(name: str) -> str:
        return colon.format(name)

    phase = only_phase(
        tmp_path,
        f"{hashes} Phase 02.1: Hot fix (INSERTED)\n\n{label('Goal')} Fix it\nquickly\n"
        f"{label('Depends on')} Phases 1-2 (both) and 10\n{label('Requirements')} [AUTH-01, API-02..04]\n"
        f"{label('Success Criteria')}\n  1. It holds\n     for long\n  2. **Fast**: yes\n"
        f"{label('Plans')} 2 plans\n\nPlans:\n- [x] 02.1-01: one\n- [ ] 02.1-02-PLAN.md — two\n"
        "- [ ] 02.1-03: TBD\n",
    )

    assert (phase.number, phase.name, phase.goal) == ("2.1", "Hot fix", "Fix it quickly")
    assert phase.depends_on == ("1", "2", "10")
    assert phase.requirements == ("AUTH-01", "API-02", "API-03", "API-04")
    assert phase.criteria == ("It holds for long", "**Fast**: yes")
    assert phase.listed == ("02.1-01", "02.1-02")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Nothing (first phase)", ()),
        ("None", ()),
        ("—", ()),
        ("Phase 1", ("1",)),
        ("Phase 3, Phase 4", ("3", "4")),
        ("Phase 12A and Phase 2.10 (needs CI of phase 9)", ("12A", "2.10")),
        ("v2.0 complete", ()),
        ("1, 2", ("1", "2")),
    ],
)
def test_dependencies_are_the_named_phases(tmp_path: Path, text: str, numbers: tuple[str, ...]) -> None:
    assert only_phase(tmp_path, f"### Phase 20: X\n**Depends on**: {text}\n").depends_on == numbers


@pytest.mark.parametrize(
    "numbers",
    [
        ["2.1", "2.2", "2.10", "3"],
        ["12", "12A", "13"],
        ["1-02", "2-01"],
        ["0", "999", "A1", "A2", "A10", "B1"],
        ["1", "A1", "A1.2", "PROJ-9", "PROJ-42"],
    ],
)
def test_phases_are_in_numeric_order_and_those_with_letters_come_last(numbers: list[str]) -> None:
    assert sorted(numbers[1:] + numbers[:1], key=phase_order) == numbers


def test_phases_with_letters_come_after_the_others_in_any_order_of_the_roadmap(tmp_path: Path) -> None:
    sections = "".join(f"### Phase {number}: X\n" for number in ("PROJ-42", "A1", "2", "1"))

    assert [phase.number for phase in planning_of(tmp_path, {"ROADMAP.md": sections}).phases] == [
        *("1", "2", "A1", "PROJ-42")
    ]


def test_depends_on_may_be_called_dependencies(tmp_path: Path) -> None:
    assert only_phase(tmp_path, "### Phase 2: X\n**Dependencies**: Phase 1 complete\n").depends_on == ("1",)


def test_folders_are_matched_to_phases_by_number_and_not_by_prefix(tmp_path: Path) -> None:
    numbers = ("1", "1.1", "10", "11", "1.10")
    folders = {"1": "01-a", "1.1": "01.1-b", "10": "10-c", "1.10": "01.10-d"}
    files = {f"phases/{folder}/x.md": "" for folder in folders.values()}
    files["ROADMAP.md"] = "".join(f"### Phase {number}: N\n" for number in numbers)

    planning = planning_of(tmp_path, files)

    assert [phase.number for phase in planning.phases] == ["1", "1.1", "1.10", "10", "11"]
    assert {phase.number: phase.directory for phase in planning.phases} == {
        **{number: f".planning/phases/{folder}" for number, folder in folders.items()},
        "11": "",
    }


PLAN = """\
---
phase: 01-x
plan: 02
type: execute
wave: 2
depends_on: [01]
files-modified: [a.py, b.py]
autonomous: false
requirements: [CORE-01]
must_haves:
  truths:
    - It works: always
    - truth: "It lasts"
      verification: backstop
  artifacts:
    - path: a.py
      min_lines: 10
      exports: [run]
    - b.py
  key_links:
    - {from: a.py, to: b.py, via: import, pattern: "import\\.b"}
---

<objective>
Do it
</objective>

<tasks>
<task type="auto" tdd="true">
  <name>Task 1: Write</name>
  <files>`a.py` (new), b.py</files>
  <action>
    Write <div> first.
      Then more.
  </action>
  <verify>Look at it
    <automated>pytest -q && true</automated>
  </verify>
  <done>It is</done>
</task>
<task type="checkpoint:human-verify" gate="blocking">
  <what-built>A page</what-built>
  <how-to-verify>Open it</how-to-verify>
</task>
</tasks>
"""


def test_a_plan_is_read_with_its_tasks_and_must_haves() -> None:
    plan = parse_plan(PLAN, path=".planning/phases/01-x/01-02-PLAN.md", phase="1")

    assert (plan.id, plan.wave, plan.autonomous, plan.depends_on) == ("01-02", 2, False, ("01-01",))
    assert (plan.objective, plan.files_modified) == ("Do it", ("a.py", "b.py"))
    assert [(truth.id, truth.text) for truth in plan.must_haves.truths] == [
        ("01-02:T1", "It works: always"),
        ("01-02:T2", "It lasts"),
    ]
    assert [(one.path, one.min_lines, one.exports) for one in plan.must_haves.artifacts] == [
        ("a.py", 10, ("run",)),
        ("b.py", 0, ()),
    ]
    assert plan.must_haves.key_links[0].pattern == r"import\.b"


def test_a_task_is_read_with_its_fields_and_its_check() -> None:
    first, second = parse_plan(PLAN, path="01-02-PLAN.md", phase="1").tasks

    assert (first.name, first.files) == ("Write", ("a.py", "b.py"))
    assert first.action == "Write <div> first.\n  Then more."
    assert (first.verify, first.check, first.done) == ("Look at it", "pytest -q && true", "It is")
    assert second.type == "checkpoint:human-verify"
    assert second.details == {"what-built": "A page", "how-to-verify": "Open it"}


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("01-02-PLAN.md", "01-02"),
        ("1-2-PLAN.md", "01-02"),
        ("01-02a-PLAN.md", "01-02a"),
        ("01-B-PLAN.md", "01-B"),
        ("01-setup-PLAN.md", "01-setup"),
        ("PLAN.md", "01-07"),
        ("plans/PLAN-03-names.md", "01-03"),
    ],
)
def test_the_id_of_a_plan_comes_from_its_file_name(name: str, identity: str) -> None:
    assert parse_plan("---\nplan: 07\n---\n", path=name, phase="1").id == identity


def test_summaries_context_and_verdict_are_read_from_the_phase_folder(tmp_path: Path) -> None:
    folder = "phases/01-x"
    planning = planning_of(
        tmp_path,
        {
            "ROADMAP.md": "### Phase 1: X\n\n- [ ] 01-01: The first\n",
            f"{folder}/01-01-PLAN.md": "---\nwave: 1\n---\n",
            f"{folder}/01-01-SUMMARY.md": "",
            f"{folder}/01-02-PLAN.md": PLAN,
            f"{folder}/01-03-PLAN.md": "---\nstatus: superseded\n---\n",
            f"{folder}/01-PLAN-OUTLINE.md": "",
            f"{folder}/01-CONTEXT.md": "decided",
            f"{folder}/01-VERIFICATION.md": "---\nstatus: passed\nscore: 1/1\n---\n",
            f"{folder}/01-01-VERIFICATION.md": "---\nstatus: gaps_found\n---\n",
        },
    )

    (phase,) = planning.phases
    assert [(plan.id, plan.name, plan.summary) for plan in phase.plans] == [
        ("01-01", "The first", f".planning/{folder}/01-01-SUMMARY.md"),
        ("01-02", "", ""),
    ]
    assert phase.context == "decided"
    assert phase.verdict
    assert (phase.verdict.status, phase.verdict.stale) == ("passed", False)


def test_a_bare_plan_has_a_bare_summary(tmp_path: Path) -> None:
    files = {"ROADMAP.md": "### Phase 1: X\n", "phases/01-x/PLAN.md": "", "phases/01-x/SUMMARY.md": ""}

    (phase,) = planning_of(tmp_path, files).phases

    assert [plan.summary for plan in phase.plans] == [".planning/phases/01-x/SUMMARY.md"]


def test_only_the_milestone_in_progress_is_read(tmp_path: Path) -> None:
    planning = planning_of(
        tmp_path,
        {
            "ROADMAP.md": "## Phases\n\n<details>\n<summary>✅ v1.0 MVP (Phases 1-2)</summary>\n\n"
            "- [x] Phase 1: Old (2/2 plans) — completed 2026-01-01\n\n### Phase 2: Older\n**Goal**: x\n\n"
            "</details>\n\n### 🚧 v1.1 More (In Progress)\n\n#### Phase 3: New\n**Depends on**: Phase 2\n\n"
            "#### Phase 4: Next\n**Depends on**: Phase 3\n\n"
            "### 📋 v2.0 Later (Planned)\n\n#### Phase 5: Far\n",
        },
    )

    assert (planning.milestone, planning.milestone_name) == ("v1.1", "More")
    assert [(phase.number, phase.depends_on) for phase in planning.phases] == [("3", ()), ("4", ("3",))]


def test_a_phase_may_be_in_the_checklist_only(tmp_path: Path) -> None:
    planning = planning_of(
        tmp_path, {"ROADMAP.md": "- [ ] **Phase 1: A** - do a\n- [x] **Phase 2 — B** - do b\n"}
    )

    assert [(phase.number, phase.name, phase.goal, phase.ticked) for phase in planning.phases] == [
        ("1", "A", "do a", False),
        ("2", "B", "do b", True),
    ]


def test_a_heading_in_a_code_fence_is_not_a_phase(tmp_path: Path) -> None:
    assert only_phase(tmp_path, "```\n### Phase 1: No\n```\n### Phase 2: Yes\n").number == "2"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("---\nstatus: passed\nre_verification:\n  previous_status: gaps_found\n---\n", "passed"),
        ("---\nstatus: gaps_found\n---\n", "gaps_found"),
        ("---\nstatus: human_needed\n---\n", "human_needed"),
        ("---\nstatus: mostly passed\n---\n", "unknown"),
        ("---\nscore: 1/1\n---\n**Status:** passed\n", "unknown"),
        ("# Report\n\n**Status:** ✅ PASSED\n", "passed"),
        ("nothing", "unknown"),
        ("---\nstatus: passed\nstatus: gaps_found\n---\n", "unknown"),
        ("---\nstatus: passed\n", "unknown"),
    ],
)
def test_only_a_known_status_is_a_verdict(text: str, status: str) -> None:
    assert parse_verdict(text, path="v.md").status == status


def test_resolved_gaps_are_left_out() -> None:
    gaps = "gaps:\n  - truth: A\n    status: resolved\n  - truth: B\n    reason: r\n"
    text = f"---\nstatus: gaps_found\n{gaps}---\n"

    assert [(gap.truth, gap.status) for gap in parse_verdict(text, path="v.md").gaps] == [("B", "failed")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("---\nwave: 1\n", r"PLAN\.md:1: .*frontmatter"),
        ("---\na: &x [1]\nb: *x\n---\n", r"PLAN\.md:3: .*alias"),
        ("---\na: " + "[" * 30 + "]" * 30 + "\n---\n", r"PLAN\.md:2: .*nested"),
        ("---\na: '" + "x" * 1_000_001 + "'\n---\n", r"PLAN\.md:1: .*frontmatter.*120 kB"),
        ("---\njust words\n---\n", r"PLAN\.md:2: .*frontmatter"),
        ("---\na: 1\n- b\n---\n", r"PLAN\.md:3: .*frontmatter"),
    ],
)
def test_a_broken_plan_is_an_error_with_its_line(text: str, place: str) -> None:
    with pytest.raises(PlanningError, match=place):
        parse_plan(text, path="PLAN.md", phase="1")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (r'files_modified: ["a.py"] and more', '["a.py"] and more'),
        ("files_modified:\n  - @scope/name", "@scope/name"),
        (r'files_modified: "a\.py"', r"a\.py"),
    ],
)
def test_frontmatter_that_is_almost_yaml_is_read(line: str, value: str) -> None:
    assert parse_plan(f"---\n{line}\n---\n", path="PLAN.md", phase="1").files_modified == (value,)


@pytest.mark.parametrize("number", ["012", "1_2", "0o14", "1:30", "no", "2026-01-02", "1e3", "3.10"])
def test_a_scalar_is_the_text_that_the_file_has_and_no_number_date_or_truth(number: str) -> None:
    text = f"---\nphase: {number}\nfiles_modified:\n  - {number}\n  - b\n---\n"

    found = read_frontmatter(text, path="PLAN.md")

    assert found.text("phase") == number
    assert parse_plan(text, path="PLAN.md", phase="1").files_modified == (number, "b")


def test_a_file_that_is_not_utf_8_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / ".planning").mkdir()
    (tmp_path / ".planning/ROADMAP.md").write_bytes(b"# R\n\xff\n")

    with pytest.raises(PlanningError, match=r"\.planning/ROADMAP\.md:2: .*UTF-8"):
        read_planning(tmp_path)


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    plain = parse_plan(PLAN, path="01-02-PLAN.md", phase="1")
    windows = parse_plan("\ufeff" + PLAN.replace("\n", "\r\n"), path="01-02-PLAN.md", phase="1")

    assert (windows.tasks, windows.must_haves) == (plain.tasks, plain.must_haves)
