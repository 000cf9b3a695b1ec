"""The scripted agents understand every reply that ``task_done`` of the plugin ``native`` gives."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gsd_core import Plan, StepRequest, Task
from gsd_core.testing import FakeHost
from gsd_plugins.native.answers import TaskDone
from gsd_plugins.native.task_log import TaskLog
from gsd_plugins.rehearsal.scenario import is_accepted

# A reply may quote a task's name or a check's output, which must not be mistaken for the reply itself.
STORE = Task(number=1, name="Store what is done", files=("store.py",), check="test -s store.py")
LOOK = Task(number=2, name="Look at it", type="checkpoint:human-verify")
LAST = Task(number=3, name="Task 1 is committed", files=("last.py",))


def replies_to(*numbers: int, tasks_done: tuple[int, ...] = (), **host: Any) -> list[tuple[str, bool]]:
    """Return the replies when these tasks are reported, each with whether it counts as accepted."""
    plan = Plan(id="01-01", phase="1", tasks=(STORE, LOOK, LAST))
    step = StepRequest(
        id="1/execute/01-01",
        run="r-1",
        kind="execute",
        project=Path("/p"),
        tree=Path("/p"),
        now=datetime(2026, 1, 31, tzinfo=UTC),
        plan=plan,
        tasks_done=tasks_done,
    )
    log = TaskLog(step=step, plan=plan, host=FakeHost(**host))

    async def report_all() -> list[str]:
        return [await log.task_done(TaskDone(task=number, files=("a.py",), note="")) for number in numbers]

    return [(reply, is_accepted(reply)) for reply in asyncio.run(report_all())]


def test_a_committed_task_is_accepted() -> None:
    [(first, accepted), _, (last, last_accepted)] = replies_to(1, 2, 3)

    assert first.startswith("Task 1 is committed (")
    assert last.endswith("That was the last task: answer now.")
    assert accepted
    assert last_accepted


def test_a_task_of_an_earlier_attempt_is_accepted() -> None:
    [(committed, accepted), (done, done_accepted)] = replies_to(1, 2, tasks_done=(1, 3))

    assert committed.startswith("Task 1 is already committed.")
    assert done.startswith("Task 2 is already done.")
    assert accepted
    assert done_accepted


def test_a_task_whose_check_fails_is_not_accepted() -> None:
    kept = {"dispute-1": {"check": "", "reason": "Task 1 is committed (so it is right)."}}
    replies = replies_to(1, 1, 1, 1, checks={STORE.check: [1]}, agent=kept)

    assert [accepted for _, accepted in replies] == [False] * 4
    assert "attempt 1 of 3" in replies[0][0]
    assert replies[2][0].startswith("Task 1 is not committed. Stop here")
    assert replies[3][0].startswith("Stop here")


def test_a_task_out_of_order_is_not_accepted() -> None:
    assert replies_to(3) == [("Task 1 (Store what is done) comes first.", False)]


def test_an_unknown_task_is_not_accepted() -> None:
    assert replies_to(9) == [("The plan has no task 9; its tasks are 1 to 3.", False)]


def test_a_rejected_checkpoint_is_not_accepted() -> None:
    _, (reply, accepted) = replies_to(1, 2, answers=["this is not done"])

    assert reply.startswith("The human says: this is not done")
    assert not accepted
