"""Files and journals that claim what the run has not done: they are checked, refused or counted."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import define

from gsd_core.errors import Permanent, ProjectError
from gsd_core.hookspecs import gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import RunStep, StepRequest, StepResult
from gsd_core.planning.survey import read_planning
from tests.run import harness as h

from .genuine import PLAN, problems

pytestmark = pytest.mark.slow

TICK = (
    "import pathlib, time; time.sleep({delay}); p = pathlib.Path({path!r}); "
    "p.write_text(p.read_text().replace('- [ ]', '- [x]'))"
)


def finished(root: Path) -> Path:
    """Return a project that another journal finished."""
    end = h.do(h.request(h.repository(root), h.one_phase(), given=h.idea()))
    assert end.exit == 0, end
    return root


def without_journal(root: Path) -> Path:
    shutil.rmtree(root / ".git" / "gsd")
    return root


def only(root: Path, name: str) -> Path:
    [found] = root.glob(f".planning/phases/*/{name}")
    return found


def commit(root: Path) -> None:
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "by hand")


async def refuses(task: AgentTask, host: AgentHost) -> AgentResult | None:
    raise Permanent(f"no {task.role} today")


def test_a_finished_project_that_is_started_again_has_nothing_to_do_and_nothing_to_say(
    tmp_path: Path,
) -> None:
    root = finished(tmp_path / "project")

    for options in (Options(), Options(phases=("1",))):
        end = h.do(h.request(root, h.Watched(h.one_phase(), refuses), options=options))

        assert (end.exit, end.notes) == (0, ("it ran without a sandbox",)), end


def test_a_ticked_phase_whose_verification_found_gaps_is_not_complete(tmp_path: Path) -> None:
    root = without_journal(finished(tmp_path / "project"))
    file = only(root, "01-VERIFICATION.md")
    file.write_text(file.read_text("utf-8").replace("status: passed", "status: gaps_found"), "utf-8")
    commit(root)
    agent = h.Watched(h.one_phase(), refuses)

    end = h.do(h.request(root, agent))

    assert end.exit == 1, end
    assert agent.tasks


def test_a_ticked_phase_without_a_verdict_is_verified_if_it_is_named(tmp_path: Path) -> None:
    root = without_journal(finished(tmp_path / "project"))
    only(root, "01-VERIFICATION.md").unlink()
    commit(root)
    agent = h.Watched(h.one_phase(), refuses)

    end = h.do(h.request(root, agent, options=Options(phases=("1",))))

    assert end.exit == 1, end
    assert [task.role for task in agent.tasks][:1] == ["verifier"]


def test_a_ticked_phase_without_a_verdict_is_counted_if_it_is_not_named(tmp_path: Path) -> None:
    root = without_journal(finished(tmp_path / "project"))
    only(root, "01-VERIFICATION.md").unlink()
    commit(root)

    end = h.do(h.request(root, h.Watched(h.one_phase(), refuses)))

    assert end.exit == 0, end
    assert any("not verified by this run (1)" in note for note in end.notes)


@pytest.mark.parametrize("reports", [False, True])
def test_a_plan_without_tasks_is_not_done_while_its_work_is_uncommitted(
    tmp_path: Path, reports: bool
) -> None:
    root = tmp_path / "project"

    async def writes_only(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "planner":
            raise Permanent("planned by hand")
        if task.role != "executor":
            return None
        scenario = h.one_phase().scenario
        assert scenario is not None
        for scripted in scenario.tasks("01-01"):
            for edit in scripted.edits:
                file = task.tree / edit.path
                text = edit.applied(file.read_text("utf-8") if file.exists() else None)
                await h.write(task, host, edit.path, text)
        if reports:
            await host.call("task_done", {"task": 1, "files": [], "note": "done"})
        return AgentResult(value={"summary": "done", "deviations": [], "decisions": [], "issues": []})

    elsewhere = finished(tmp_path / "elsewhere")
    h.repository(root)
    shutil.copytree(elsewhere / ".planning", root / ".planning")
    only(root, "01-01-SUMMARY.md").unlink()
    only(root, "01-VERIFICATION.md").unlink()
    roadmap = root / ".planning" / "ROADMAP.md"
    roadmap.write_text(roadmap.read_text("utf-8").replace("- [x]", "- [ ]"), "utf-8")
    plan = (root / PLAN).read_text("utf-8")
    prose = "Write the package, its tests and the README."
    (root / PLAN).write_text(re.sub(r"<tasks>.*</tasks>", prose, plan, flags=re.DOTALL), "utf-8")
    assert "<task" not in (root / PLAN).read_text("utf-8")
    commit(root)

    end = h.do(h.request(root, h.Watched(h.one_phase(), writes_only), options=Options(gap_rounds=0)))

    assert (end.exit == 0) == reports, end
    if reports:
        assert list(problems(root, tmp_path / "copy")) == []


def test_a_journal_of_another_project_is_refused(tmp_path: Path) -> None:
    other = finished(tmp_path / "other")
    root = h.repository(tmp_path / "project")
    shutil.copytree(other / ".planning", root / ".planning")
    shutil.copytree(other / ".git" / "gsd", root / ".git" / "gsd")
    commit(root)

    with pytest.raises(ProjectError) as caught:
        h.do(h.request(root, h.one_phase()))

    assert "journal" in str(caught.value)
    assert str(root / ".git" / "gsd") in caught.value.hint


# What happens later, without an agent's call


@define
class LeavesBehind:
    """An agent that leaves a process behind which ticks all boxes later; *marked*: with its call's mark."""

    marked: bool
    delay: float
    process: subprocess.Popen[bytes] | None = None

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "planner" and self.process is None:
            path = str(task.tree / ".planning" / "ROADMAP.md")
            env = {"PATH": os.environ["PATH"], **(host.environment if self.marked else {})}
            code = TICK.format(delay=self.delay, path=path)
            self.process = await asyncio.to_thread(
                subprocess.Popen, [sys.executable, "-c", code], env=env, start_new_session=True
            )
        return None


def test_a_process_that_an_agent_leaves_behind_ends_with_its_call(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    leaves = LeavesBehind(marked=True, delay=600)

    end = h.do(h.request(root, h.Watched(h.one_phase(), leaves), given=h.idea()))

    assert end.exit == 0, end
    assert leaves.process is not None
    assert leaves.process.wait(10) != 0
    assert list(problems(root, tmp_path / "copy")) == []


def test_a_check_mark_that_a_process_sets_after_the_call_does_not_end_the_phase(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    leaves = LeavesBehind(marked=False, delay=0.2)

    async def waits(step: StepRequest, call_next: RunStep) -> StepResult:
        result = await call_next(step)
        if step.kind == "plan" and leaves.process is not None:
            await asyncio.to_thread(leaves.process.wait)
            assert "- [x]" in (root / ".planning" / "ROADMAP.md").read_text("utf-8")
        return result

    agent = h.Watched(h.one_phase(), leaves)
    end = h.do(h.request(root, agent, given=h.idea(), own=h.plugin(gsd_wrap_step, waits)))

    assert end.exit == 0, end
    assert [task.role for task in agent.tasks] == [
        "roadmapper",
        "discusser",
        "planner",
        "executor",
        "verifier",
    ]
    assert list(problems(root, tmp_path / "copy")) == []
    assert read_planning(root).phases[0].verdict is not None
