"""``gsd progress``: the same numbers as GSD, and the state of a project in one view."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.views.schemas import schema_of
from tests.cli.bench import EVIL, Bench, call, said
from tests.planning.trees import each_corpus_project, gsd_report, make_project, plan_text

FILES: dict[str, str | bytes] = {
    "PROJECT.md": "# Night Bus\n",
    "ROADMAP.md": (
        "- [x] **Phase 1: Core** - a\n- [ ] **Phase 2: More** - b\n### Phase 1: Core\n### Phase 2: More\n"
    ),
    "STATE.md": (
        "### Decisions\n\nRecent decisions:\n- [Phase 1]: SQLite\n\n"
        "### Pending Todos\n\nNone yet.\n\n### Blockers/Concerns\n\n- The API is down\n"
    ),
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-01-SUMMARY.md": f"---\nphase: x\n---\n# Done\n\n**It stores {EVIL} buses**\n",
    "phases/01-core/01-VERIFICATION.md": "---\nstatus: passed\n---\n",
    "phases/02-more/02-CONTEXT.md": "c",
    "phases/02-more/02-01-PLAN.md": plan_text(),
}


@each_corpus_project
def test_the_percentage_is_that_of_gsd(project: Path) -> None:
    expected = gsd_report(project)["roadmap"]
    if "error" in expected or not expected.get("phases"):
        pytest.skip("GSD finds no phases")
    found = said("progress", "-C", project)
    numbers = {str(phase["number"]).lstrip("0") for phase in expected["phases"]}
    # GSD takes all phases of some roadmaps for those of the current milestone.
    if numbers == {phase["number"] for phase in found["phases"]}:
        # Without a milestone that is marked, GSD gives totals and no percentage.
        assert expected["progress_percent"] in (None, found["percent"])
        assert found["plans"] == {"total": expected["total_plans"], "done": expected["total_summaries"]}


def test_a_project_is_shown_with_its_work_decisions_blockers_and_todos(bench: Bench) -> None:
    make_project(bench.root, FILES)
    call("todo", "add", "-C", bench.root, "Say hello")
    found = said("progress", "-C", bench.root)
    shown = call("progress", "-C", bench.root)

    assert [*found] == schema_of("progress")["required"]
    assert (found["project"], found["percent"], found["phases_complete"]) == ("Night Bus", 50, 1)
    assert [summary["plan"] for summary in found["recent"]] == ["01-01"]
    assert (found["decisions"], found["blockers"]) == (["[Phase 1]: SQLite"], ["The API is down"])
    assert [todo["title"] for todo in found["todos"]] == ["Say hello"]
    assert found["next"]["step"] == said("next", "-C", bench.root)["step"] == "2/execute/02-01"
    for line in ("It stores", "blocker: The API is down", "1 pending todo: Say hello", "2/execute/02-01"):
        assert line in shown.stdout
    assert "\x1b" not in shown.stdout


def test_a_phase_whose_plans_are_all_executed_is_called_complete_only_once_it_is(bench: Bench) -> None:
    make_project(bench.root, {**FILES, "phases/02-more/02-01-SUMMARY.md": "done"})
    shown = {name: call(name, "-C", bench.root).stdout for name in ("progress", "phases")}

    assert "1 of 2 phases complete" in shown["progress"]
    assert "1  Core  (complete, 1/1 plan)" in shown["progress"]
    assert "2  More  (executed, 1/1 plan)" in shown["progress"]
    core, more = (row for row in shown["phases"].splitlines() if "Core" in row or "More" in row)
    assert ("complete" in core, "executed" in more) == (True, True)


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    assert "no project here" in call("progress", "-C", tmp_path).stderr


def test_the_executed_phases_of_a_shipped_milestone_count_without_ticks(tmp_path: Path) -> None:
    files = {
        "milestones/v1.0-ROADMAP.md": "# v1.0\n\n### Phase 1: A\n\n### Phase 2: B\n",
        "MILESTONES.md": "# Milestones\n\n## v1.0 One (Shipped: 2026-01-31)\n",
        "STATE.md": "## Current Position\n\nStatus: v1.0 shipped\n",
        "phases/01-a/01-01-PLAN.md": plan_text(),
        "phases/01-a/01-01-SUMMARY.md": "done",
        "phases/02-b/02-01-PLAN.md": plan_text(),
    }
    make_project(tmp_path, files)

    found = said("progress", "-C", tmp_path)

    assert [one["complete"] for one in found["phases"]] == [True, False]
