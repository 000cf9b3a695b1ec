"""SUMMARY.md: decisions and issues are read back as they were written, and a damaged file does no harm."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import Artifact, MustHaves, PhaseView, Plan, Planning, Verdict
from gsd_core.planning.milestone_close import milestones_entry, shipped
from gsd_core.planning.plan import parse_plan
from gsd_core.planning.summary import render_summary, with_notes

PLAN = Plan(id="01-01", phase="1", name="Store", path=".planning/phases/01-x/01-01-PLAN.md", summary="S.md")


def noted(root: Path, text: str | bytes) -> Plan:
    (root / "S.md").write_bytes(text.encode() if isinstance(text, str) else text)
    phase = PhaseView(number="1", name="x", project=root, plans=(PLAN,))
    return with_notes(Planning(phases=(phase,)), root).phases[0].plans[0]


def test_decisions_and_issues_are_read_as_they_were_written(tmp_path: Path) -> None:
    text = render_summary(
        PLAN,
        date="2026-01-31",
        duration=timedelta(minutes=3),
        commits=[],
        created=[],
        modified=[],
        accomplishments=["Store"],
        decisions=["UTF-8: always", "<b>Tabs</b>"],
        deviations=["None of these"],
        issues=["Slow | on <NFS>"],
    )
    plan = noted(tmp_path, text)

    assert plan.decisions == ("UTF-8: always", "<b>Tabs</b>")
    assert plan.issues == ("Slow | on <NFS>",)


def deviations(plan: Plan, **more: Any) -> str:
    text = render_summary(
        plan,
        date="2026-01-31",
        duration=None,
        commits=[],
        modified=[],
        accomplishments=["Store"],
        decisions=[],
        deviations=[],
        issues=[],
        **more,
    )
    return text.partition("## Deviations from Plan\n\n")[2].partition("\n##")[0]


def test_files_and_tasks_that_are_not_those_of_the_plan_are_deviations() -> None:
    artifact = Artifact(path="api.py", provides="The API")
    plan = evolve(
        PLAN,
        files_modified=("./store.py", "docs/", "tests/*.py", "list.py"),
        must_haves=MustHaves(artifacts=(artifact,)),
    )
    planned = ["store.py", "docs/a/b.md", "tests/test_store.py", "list.py", "api.py"]

    assert deviations(plan, created=planned).startswith("None")
    found = deviations(plan, created=["store.py", "trial.py"], undone=["Task 2 was not done: it failed"])
    assert found.splitlines() == [
        "- Task 2 was not done",
        "- Changed, although the plan does not list them: trial.py",
        "- Not changed, although the plan lists them: docs/, tests/*.py, list.py",
    ]


def test_a_plan_provides_only_what_its_commits_contain() -> None:
    listed = tuple(Artifact(path=path, provides="It") for path in ("store.py", "list.py"))
    plan = evolve(PLAN, must_haves=MustHaves(artifacts=listed))
    text = render_summary(
        plan,
        date="2026-01-31",
        duration=None,
        commits=[],
        created=["store.py"],
        modified=[],
        accomplishments=["Store"],
        decisions=[],
        deviations=[],
        issues=[],
    )

    assert "store.py: It" in text
    assert "list.py: It" not in text


@pytest.mark.parametrize("undone", [(), ("Task 2 was not done: it failed",)])
@pytest.mark.parametrize("verdict", [None, Verdict(status="gaps_found"), Verdict(status="passed")])
def test_the_issues_of_a_deferred_task_are_resolved_once_the_phase_passes(
    tmp_path: Path, undone: tuple[str, ...], verdict: Verdict | None
) -> None:
    text = render_summary(
        PLAN,
        date="2026-01-31",
        duration=None,
        commits=[],
        created=[],
        modified=[],
        accomplishments=["Store"],
        decisions=[],
        deviations=[],
        issues=["The library is too old"],
        undone=undone,
    )
    (tmp_path / "S.md").write_text(text)
    phase = PhaseView(number="1", name="x", project=tmp_path, plans=(PLAN,), verdict=verdict)
    [plan] = with_notes(Planning(phases=(phase,)), tmp_path).phases[0].plans

    is_resolved = bool(undone) and verdict is not None and verdict.status == "passed"
    assert plan.issues == (() if is_resolved else ("The library is too old",))


def test_a_summary_of_thousands_of_files_is_read_back(tmp_path: Path) -> None:
    files = [f"src/some/long/folder/of/the/project/module_{n}/index.py" for n in range(4000)]
    text = render_summary(
        PLAN,
        date="2026-01-31",
        duration=None,
        commits=[],
        created=files,
        modified=files,
        accomplishments=["Store"],
        decisions=["UTF-8"],
        deviations=[],
        issues=[],
    )

    assert noted(tmp_path, text).decisions == ("UTF-8",)
    assert f"`{files[-1]}`" in text


TEST_DRIVEN = """---
phase: 01-x
plan: 01
type: execute
---
<tasks>
<task type="auto">
  <name>Set up</name>
  <files>app.py</files>
  <action>Write it</action>
</task>
<task type="auto" tdd="true">
  <name>Parse durations</name>
  <files>duration.py, test_duration.py</files>
  <behavior>1h30m is 5400 seconds</behavior>
  <implementation>One pass</implementation>
</task>
</tasks>
"""


@pytest.mark.parametrize(("committed", "tasks"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2)])
def test_the_commits_of_a_test_driven_feature_are_one_task(committed: int, tasks: int) -> None:
    plan = parse_plan(TEST_DRIVEN, path=PLAN.path, phase="1")
    assert len(plan.tasks) == 4
    text = render_summary(
        plan,
        date="2026-01-31",
        duration=None,
        commits=[(task.name, "abcdef0") for task in plan.tasks[:committed]],
        created=[],
        modified=[],
        accomplishments=[],
        decisions=[],
        deviations=[],
        issues=[],
    )

    assert f"- **Tasks:** {tasks}\n" in text
    phase = PhaseView(number="1", name="x", project=Path(), plans=(plan,))
    about = shipped(Planning(phases=(phase,), milestone="v1.0"), Path(), "2026-01-31")
    assert "(1 phases, 1 plans, 2 tasks)" in milestones_entry("", about)


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("---\nkey-decisions: []\n---\n## Issues Encountered\nNone\n", ()),
        ("## Issues Encountered\r\n\r\n- None.\r\n- One\r\n\r\n## Next\r\n- two\r\n", ("One",)),
        ("done", ()),
        (b"\xff\xfe", ()),
        ("---\nnever: closed\n", ()),
    ],
)
def test_summaries_of_other_tools_do_no_harm(
    tmp_path: Path, text: str | bytes, issues: tuple[str, ...]
) -> None:
    plan = noted(tmp_path, text)

    assert (plan.decisions, plan.issues) == ((), issues)


def test_a_missing_summary_does_no_harm(tmp_path: Path) -> None:
    phase = PhaseView(number="1", name="x", project=tmp_path, plans=(PLAN,))
    planning = Planning(phases=(phase,))

    assert with_notes(planning, tmp_path) == planning
