"""A task that fails three times: the plan goes on without it, and the verification finds what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.exit_codes import ExitCode
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.run.runtime import RunEnd

from . import harness as h
from .test_task_checks import PHASE, SUMMARY, Scripted, do, task

pytestmark = pytest.mark.slow
FIRST = task("grep -q right first.txt", files=("first.txt",), name="Make the first")
SECOND = task("test -s second.txt", files=("second.txt",), name="Make the second")
THIRD = task("test -s third.txt", files=("third.txt",), name="Make the third")
UPON = task("test -s both.txt", files=("first.txt", "both.txt"), name="Build on the first")


class Builder:
    """Writes the wrong first file three times, and then what else there is to do; keeps the replies."""

    def __init__(self, *then: int) -> None:
        self.then = then
        self.replies: list[str] = []

    async def __call__(self, work: AgentTask, host: AgentHost) -> dict[str, Any]:
        if self.replies or "01-01" not in work.step:
            return {"issues": ["it does not work"]}
        for attempt in range(3):
            await h.write(work, host, "first.txt", f"wrong {attempt}\n")
            call = {"task": 1, "files": ["first.txt"], "note": "tried"}
            self.replies.append(await host.call("task_done", call))
        for number in self.then:
            await h.write(work, host, "second.txt", "done\n")
            call = {"task": number, "files": ["second.txt"], "note": "done"}
            self.replies.append(await host.call("task_done", call))
        return {"issues": ["it does not work"]}


def run(root: Path, builder: Builder, *tasks: dict[str, Any], **settings: Any) -> RunEnd:
    return do(root, Scripted(list(tasks), builder), options=Options(gap_rounds=0, **settings))


def test_the_plan_goes_on_and_the_missing_task_is_a_gap_and_not_a_success(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    builder = Builder(2)

    end = run(root, builder, FIRST, SECOND, UPON)

    assert end.exit != ExitCode.OK, end
    assert any("2 tasks were deferred (01-01/1, 01-01/3" in note for note in end.notes), end
    assert "Deferred: 1, 3." in builder.replies[2]
    # What failed is in no commit and not in the tree, and nothing of it is lost.
    assert not (root / "first.txt").exists()
    assert h.git(root, "ls-files", "second.txt", "first.txt").split() == ["second.txt"]
    ref = h.facts(root, "task.deferred")[0].data["ref"]
    assert h.git(root, "show", f"{ref}:first.txt") == "wrong 2\n"
    summary = (root / SUMMARY).read_text()
    assert "- Task 1 was not done: task 1 (Make the first) failed 3 times" in summary
    assert "- Task 3 was not done" in summary
    assert "failed 3 times" in (root / PHASE / "deferred-items.md").read_text()
    gaps = next(fact.data["gaps"] for fact in h.facts(root, "step.completed") if "/verify" in fact.step)
    assert {"01-01/1", "01-01/3"} <= set(gaps)
    assert f"git show {ref}" in (root / PHASE / "01-VERIFICATION.md").read_text()


def test_a_wrong_check_is_replaced_before_good_work_is_taken_back(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    builder = Builder(2)
    better = {"check": "grep -q wrong first.txt", "reason": "The plan has the wrong word."}
    agent = Scripted([FIRST, SECOND], builder, [better])

    do(root, agent, options=Options(gap_rounds=0))

    assert "is committed" in builder.replies[2]
    assert h.facts(root, "task.deferred") == []
    assert (root / "first.txt").read_text() == "wrong 2\n"
    assert better["check"] in h.git(root, "show", f"HEAD:{PHASE}/01-01-PLAN.md")


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [({"skip_verify": True}, (FIRST, SECOND)), ({}, (FIRST, UPON))],
    ids=["nothing verifies it", "all the rest builds on it"],
)
def test_a_plan_that_cannot_go_on_fails(
    tmp_path: Path, settings: dict[str, Any], tasks: tuple[dict[str, Any], ...]
) -> None:
    root = h.repository(tmp_path / "project")
    builder = Builder()

    end = run(root, builder, *tasks, **settings)

    assert end.exit == ExitCode.FAILED
    assert "failed 3 times" in end.reason
    assert "Stop here" in builder.replies[2]
    assert h.facts(root, "task.deferred", "task.committed") == []


def test_what_builds_on_a_plan_with_a_deferred_task_waits_for_its_gaps(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = Foundation([FIRST, SECOND], Builder(2))

    end = do(root, agent, options=Options(gap_rounds=0))

    assert end.exit == ExitCode.GAPS, end
    steps = [fact.step for fact in h.facts(root, "step.completed")]
    assert steps[-2:] == ["1/execute/01-01", "1/verify"]


class Foundation(Scripted):
    """Plans something else that builds on the first plan."""

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        result = await super().run_agent(task, host)
        if result is None or task.role != "planner" or "execute" in task.step:
            return result
        [plan] = result.value["plans"]
        upon = {**plan, "tasks": [THIRD], "files_modified": THIRD["files"], "depends_on": [1]}
        return evolve(result, value={"plans": [plan, upon]})
