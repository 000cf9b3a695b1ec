"""Hand edits, other tools, a lost journal: files decide what is due, the history which tasks are done."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gsd_core.errors import Permanent
from gsd_core.hookspecs import gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import RunStep, StepRequest, StepResult
from gsd_core.planning.survey import read_planning

from . import harness as h

pytestmark = pytest.mark.slow


def done(root: Path, **scenario: object) -> Path:
    """Run a project to its end."""
    end = h.do(h.request(h.repository(root), h.one_phase(**scenario), given=h.idea()))
    assert end.outcome == "done", end
    return root


def changed(root: Path, path: str, old: str, new: str) -> None:
    file = root / path
    text = file.read_text()
    assert old in text, text
    file.write_text(text.replace(old, new))
    commit(root)


def commit(root: Path) -> None:
    h.git(root, "add", "-A", ".planning")
    h.git(root, "commit", "-qm", "by hand")


def tasks(root: Path) -> list[str]:
    return [task for _, task in h.trailed(root) if task]


def test_a_phase_inserted_by_hand_is_done_in_order(tmp_path: Path) -> None:
    root = done(tmp_path / "project", phases=2)
    details = "### Phase 1.1: Polish\n**Goal**: Polish it\n**Depends on**: Phase 1\n**Requirements**: None\n"
    details += "**Success Criteria** (what must be TRUE):\n  1. It shines\n**Plans**: TBD\n\n### Phase 2:"
    changed(root, ".planning/ROADMAP.md", "- [x] **Phase 2:", "- [ ] **Phase 1.1: Polish**\n- [x] **Phase 2:")
    changed(root, ".planning/ROADMAP.md", "### Phase 2:", details)
    before = h.trailed(root)

    end = h.do(h.request(root, h.one_phase(phases=2)))

    new = [step for step, _ in h.trailed(root)[len(before) :]]
    assert (end.outcome, end.reason) == ("done", "3 phases complete")
    assert new[0] == "1.1/discuss"
    assert new[-2:] == ["1.1/complete", "audit/v1.0/r1"]
    assert {step.split("/")[0] for step in new} == {"1.1", "audit"}


def only(root: Path, name: str) -> Path:
    [found] = root.glob(f".planning/phases/*/{name}")
    return found


def reopened(root: Path, name: str) -> None:
    """Delete a file of a completed phase, and take its completion back in all places."""
    h.git(root, "rm", "-q", str(only(root, name)))
    changed(root, ".planning/ROADMAP.md", "| Complete    |", "| In Progress |")
    changed(root, ".planning/ROADMAP.md", "- [x] **Phase 1", "- [ ] **Phase 1")


def test_a_deleted_summary_is_written_again_without_a_second_commit_of_a_task(tmp_path: Path) -> None:
    root = done(tmp_path / "project")
    reopened(root, "01-01-SUMMARY.md")

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done"
    assert only(root, "01-01-SUMMARY.md").exists()
    assert tasks(root) == ["01-01/1", "01-01/2"]


def test_after_its_verdict_is_deleted_a_phase_is_verified_again_but_not_planned(tmp_path: Path) -> None:
    root = done(tmp_path / "project")
    before = len(h.trailed(root))
    reopened(root, "01-VERIFICATION.md")

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done"
    assert [step for step, _ in h.trailed(root)[before:]] == ["1/verify/r1", "1/complete", "audit/v1.0/r1"]
    assert "status: passed" in only(root, "01-VERIFICATION.md").read_text()


def lost(root: Path) -> None:
    """Delete the journal."""
    shutil.rmtree(root / ".git" / "gsd")


async def stops_at_second(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Do only the first task of the plan."""
    if task.role != "executor":
        return None
    scenario = h.one_phase().scenario
    assert scenario is not None
    for edit in scenario.tasks("01-01")[0].edits:
        path = task.tree / edit.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(edit.applied(None))
    reply = await host.call("task_done", {"task": 1, "files": [], "note": "there"})
    raise Permanent(reply)


def midway(root: Path) -> Path:
    """Leave a project between the two tasks of its only plan."""
    end = h.do(h.request(h.repository(root), h.Watched(h.one_phase(), stops_at_second), given=h.idea()))
    assert "is committed" in end.reason
    assert tasks(root) == ["01-01/1"]
    return root


def test_without_its_journal_a_run_continues_without_committing_a_task_twice(
    tmp_path: Path,
) -> None:
    root = midway(tmp_path / "project")
    lost(root)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(root, agent))

    assert end.outcome == "done", end
    assert tasks(root) == ["01-01/1", "01-01/2"]
    assert [task.role for task in agent.tasks] == ["executor", "verifier"]
    (committed,) = [line for line in agent.tasks[0].prompt.splitlines() if "already committed" in line]
    assert committed.endswith(": 1.")


def test_without_its_journal_a_completed_project_is_still_complete(tmp_path: Path) -> None:
    root = done(tmp_path / "project")
    lost(root)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(root, agent))

    assert (end.outcome, agent.tasks) == ("done", [])
    notes = "; ".join(end.notes)
    assert "1 phase was complete before and not verified by this run (1)" in notes
    assert "the journal of an earlier run is missing" in notes


def test_a_plan_that_a_person_edited_is_named_at_the_end(tmp_path: Path) -> None:
    root = done(tmp_path / "project")
    changed(root, only(root, "01-01-PLAN.md").relative_to(root).as_posix(), "<done>", "<done>Also: ")

    end = h.do(h.request(root, h.one_phase()))

    assert (end.outcome, end.reason) == ("done", "1 phase complete")
    assert end.notes == ("plan 01-01 was edited by hand", "it ran without a sandbox")
    assert h.facts(root, "run.closed")[-1].data["notes"] == list(end.notes)


def test_a_new_plan_starts_from_its_first_task_regardless_of_the_history(tmp_path: Path) -> None:
    root = midway(tmp_path / "project")
    lost(root)
    plan = only(root, "01-01-PLAN.md")
    plan.write_text(plan.read_text().replace("<done>", "<done>Again: ", 1))
    (root / "changed.txt").write_text("something to commit\n")
    h.git(root, "rm", "-rqf", "--ignore-unmatch", "greeter")
    commit(root)

    end = h.do(h.request(root, h.one_phase(), run={"allow_dirty": True}))

    assert end.outcome == "done", end
    assert tasks(root) == ["01-01/1", "01-01/1", "01-01/2"]


def test_a_project_that_another_tool_started_is_continued(tmp_path: Path) -> None:
    root = done(tmp_path / "elsewhere")
    there = h.repository(tmp_path / "project")
    shutil.copytree(root / ".planning", there / ".planning")
    for name in ("01-01-SUMMARY.md", "01-VERIFICATION.md"):
        only(there, name).unlink()
    roadmap = there / ".planning" / "ROADMAP.md"
    roadmap.write_text(roadmap.read_text().replace("- [x]", "- [ ]"))
    commit(there)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(there, agent))

    assert end.outcome == "done", end
    assert [task.role for task in agent.tasks] == ["executor", "verifier"]
    assert tasks(there) == ["01-01/1", "01-01/2"]


def test_a_range_does_only_its_own_phases(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=Options(phases=("1",))))

    first, second = read_planning(root).phases
    assert (end.exit, end.reason) == (0, "1 phase complete")
    assert (first.ticked, second.ticked, second.plans) == (True, False, ())
    assert {step.split("/")[0] for step, _ in h.trailed(root)} == {"init", "1"}


def test_a_range_without_a_phase_that_it_depends_on_is_refused(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=Options(phases=("2",))))

    assert (end.outcome, end.exit) == ("blocked", 2)
    assert "phase 2 depends on 1: not complete" in end.reason


def test_a_range_without_a_phase_is_refused(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), options=Options(phases=("7",))))

    assert end.exit == 2
    assert "requested range" in end.reason


@pytest.mark.parametrize("text", ["mine\n", pytest.param("", marks=pytest.mark.slow)])
def test_the_user_s_untracked_files_are_neither_committed_nor_lost(tmp_path: Path, text: str) -> None:
    root = h.repository(tmp_path / "project")
    (root / "todo.txt").write_text(text)
    (root / "drafts").mkdir()
    (root / "drafts" / "one.md").write_text(text)

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert end.outcome == "done"
    assert (root / "todo.txt").read_text() == text
    assert (root / "drafts" / "one.md").read_text() == text
    assert h.git(root, "status", "--porcelain").split("\n") == ["?? drafts/", "?? todo.txt", ""]


def test_the_user_s_untracked_files_survive_a_failure_and_a_retry(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    (root / "todo.txt").write_text("mine\n")
    h.do(h.request(root, h.Watched(h.one_phase(), stops_at_second), given=h.idea()))

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done", end
    assert h.git(root, "status", "--porcelain") == "?? todo.txt\n"


def test_a_shared_file_that_is_broken_by_hand_fails_the_step_naming_the_line_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    root = h.repository(tmp_path / "project")
    state = root / ".planning" / "STATE.md"

    async def break_file(step: StepRequest, call_next: RunStep) -> StepResult:
        result = await call_next(step)
        if step.kind == "plan":
            state.write_bytes(b"# State\nPhase: \xff\n")
        return result

    editor = h.plugin(gsd_wrap_step, break_file)
    first = h.do(h.request(root, h.one_phase(), given=h.idea(), editor=editor))
    spoilt = state.read_bytes()
    h.git(root, "checkout", "--", ".planning/STATE.md")
    second = h.do(h.request(root, h.one_phase()))

    assert (first.outcome, first.exit) == ("failed", 2)
    assert ".planning/STATE.md:2: not UTF-8" in first.reason
    assert spoilt == b"# State\nPhase: \xff\n"
    assert second.outcome == "done", second
