"""Quick tasks: planned, executed and committed in one step beside the roadmap, and verified if asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.exit_codes import ExitCode
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.planning.plan import parse_plan
from gsd_core.planning.verification import parse_verdict
from gsd_core.run.runtime import RunRequest
from gsd_plugins.rehearsal import Scenario

from . import harness as h
from .test_crash import Crash, Fuse, with_crash

STEP = "quick/001-note-it"
FOLDER = Path(".planning/quick/001-note-it")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a roadmap and nothing else."""
    root = h.repository(tmp_path_factory.mktemp("quick") / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea(), options=Options(phases=())))
    return root


@pytest.fixture
def root(started: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(started, tmp_path / "project"))


def quick(root: Path, agent: object, text: str = "Note it", step: str = STEP, **more: bool) -> RunRequest:
    """Return the request of ``gsd quick TEXT``."""
    request = h.request(root, agent, options=Options(only_asked=True), **more)  # type: ignore[arg-type]
    return evolve(request, asked={step: text})


@pytest.mark.slow
def test_a_quick_task_is_planned_committed_and_listed_in_state(root: Path) -> None:
    agent = h.Watched(h.one_phase())
    first = h.do(quick(root, agent))
    second = h.do(quick(root, agent, "Another | one", "quick/002-another-one"))

    assert (first.outcome, first.exit, first.reason) == ("done", 0, f"{STEP} complete")
    assert second.exit == 0, second.reason
    assert [task.role for task in agent.tasks] == ["planner", "executor"] * 2
    assert h.trailed(root)[-4:-2] == [(STEP, "001/1"), (STEP, "")]
    plan = parse_plan((root / FOLDER / "001-PLAN.md").read_text(), path="001-PLAN.md", phase="001")
    assert [task.check for task in plan.tasks] == ['grep -q "Quick task 001 is done" NOTES.md']
    assert "Quick task 001 is done" in (root / FOLDER / "001-SUMMARY.md").read_text()
    table = (root / ".planning/STATE.md").read_text().partition("### Quick Tasks Completed\n")[2]
    commit = h.git(root, "log", "-1", "--format=%h", "--abbrev=7", "--grep=GSD-Task: 001/1").strip()
    head, _, row, other = table.strip().splitlines()[:4]
    assert head == "| # | Description | Date | Commit | Directory |"
    assert row.endswith(f" | {commit} | [001-note-it](./quick/001-note-it/) |")
    assert other.startswith("| 002 | Another \\| one |")
    assert h.git(root, "status", "--porcelain") == ""
    assert not (root / FOLDER / "001-VERIFICATION.md").exists()


@pytest.mark.parametrize("lies", [False, True], ids=["true", "false"])
def test_full_verifies_it_and_gaps_have_the_usual_exit_code(root: Path, lies: bool) -> None:
    async def promise(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if not lies or task.role != "planner":
            return None
        answer = Scenario(h.IDEA).plans("001-note-it")
        answer["plans"][0]["artifacts"][0]["contains"] = "what nobody writes"
        return AgentResult(value=answer)

    end = h.do(quick(root, h.Watched(h.one_phase(), before=promise), "--full Note it"))

    verdict = parse_verdict((root / FOLDER / "001-VERIFICATION.md").read_text(), path="001-VERIFICATION.md")
    state = (root / ".planning/STATE.md").read_text()
    if lies:
        assert (end.outcome, end.exit, verdict.status) == ("gaps", ExitCode.GAPS, "gaps_found")
        assert "| Gaps | [001-note-it]" in state
    else:
        assert (end.outcome, end.exit, verdict.status) == ("done", 0, "passed"), verdict.gaps
        assert "| Verified | [001-note-it]" in state


def test_a_plan_that_does_not_pass_the_checks_is_revised(root: Path) -> None:
    async def trivial(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "planner" or "proves nothing" in task.prompt:
            return None
        answer = Scenario(h.IDEA).plans("001-note-it")
        answer["plans"][0]["tasks"][0]["check"] = "true"
        return AgentResult(value=answer)

    agent = h.Watched(h.one_phase(), before=trivial)
    end = h.do(quick(root, agent))

    assert end.exit == 0, end.reason
    assert [task.role for task in agent.tasks] == ["planner", "planner", "executor"]


@pytest.mark.slow
def test_a_crash_anywhere_commits_nothing_twice_and_plans_once(started: Path, tmp_path: Path) -> None:
    whole = Fuse()
    root = Path(shutil.copytree(started, tmp_path / "whole"))
    h.do(with_crash(quick(root, h.one_phase()), whole))
    begins = next(n for n, point in enumerate(whole.points) if "plan.made" in point)
    ends = next(n for n, point in enumerate(whole.points) if point.startswith("after step.completed"))

    # Every third is enough: the points between them differ in what is recorded about agents.
    for number in range(begins, ends, 3):
        root = Path(shutil.copytree(started, tmp_path / str(number)))
        with pytest.raises(Crash):
            h.do(with_crash(quick(root, h.one_phase()), Fuse(limit=number)))
        end = h.do(with_crash(quick(root, h.one_phase()), Fuse()))

        point = whole.points[number]
        assert end.exit == 0, point
        assert h.trailed(root)[1:] == [(STEP, "001/1"), (STEP, "")], point
        assert len(h.facts(root, "plan.made")) == 1, point
        assert h.git(root, "status", "--porcelain") == "", point
        assert (root / "NOTES.md").read_text() == "- Quick task 001 is done.\n", point
