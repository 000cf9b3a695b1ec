"""What became of a plan's tasks: ``task_done`` checks, commits and asks, and this remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from gsd_core import Answer, Permanent, Plan, StepHost, StepRequest, Task, TaskCommit

from .checkpoint import inquiry_for, satisfied
from .schemas import TaskDone
from .shape import Unreadable, read
from .subject import subject_of

MAX_TRIES = 3


@frozen(kw_only=True)
class Record:
    """A task that is done, and its commit; none for a checkpoint that changed nothing."""

    task: Task
    landed: TaskCommit


@define(kw_only=True)
class Worklog:
    """The tasks of one plan during one attempt; *failure* says why the plan cannot go on."""

    step: StepRequest
    plan: Plan
    host: StepHost
    failure: str = field(default="", init=False)
    _done: set[int] = field(factory=set[int], init=False)
    _tries: dict[int, int] = field(factory=dict[int, int], init=False)
    _refusals: dict[int, int] = field(factory=dict[int, int], init=False)
    _files: dict[int, tuple[str, ...]] = field(factory=dict[int, tuple[str, ...]], init=False)

    async def task_done(self, arguments: Mapping[str, Any]) -> str:
        """Check and commit a task, or ask the human of a checkpoint; return what to tell the agent."""
        if self.failure:
            return f"Stop here: {self.failure}"
        try:
            call = read(TaskDone, arguments)
        except Unreadable as error:
            return f"Not understood: {error}"
        task = next((task for task in self.plan.tasks if task.number == call.task), None)
        if task is None:
            return f"The plan has no task {call.task}; its tasks are 1 to {len(self.plan.tasks)}."
        if self._is_done(task):
            return self._known(task)
        if first := self._before(task):
            return f"Task {first.number} ({first.name}) comes first."
        return await (self._commit(task, call) if task.type == "auto" else self._ask(task, call))

    def left(self) -> tuple[str, ...]:
        """Return a complaint for each task that is not done."""
        return tuple(
            f"task {task.number} ({task.name}) is not done: do it and call task_done for it"
            for task in self.plan.tasks
            if not self._is_done(task)
        )

    def raise_if_unfinished(self) -> None:
        """Raise ``Permanent`` unless every task that has to be committed is."""
        if self.failure:
            raise Permanent(f"plan {self.plan.id}: {self.failure}")
        if left := [task for task in self.plan.tasks if task.type == "auto" and not self._is_done(task)]:
            names = ", ".join(f"{task.number} ({task.name})" for task in left)
            raise Permanent(f"plan {self.plan.id}: not committed by its executor: task {names}")

    async def records(self) -> tuple[Record, ...]:
        """Return what became of each task; the host knows the commits, also those of earlier attempts."""
        return tuple([await self._record(task) for task in self.plan.tasks])

    async def _record(self, task: Task) -> Record:
        if task.type != "auto" and task.number not in {*self._files, *self.step.tasks_done}:
            return Record(task=task, landed=TaskCommit())
        files = self._files.get(task.number, task.files)
        landed = await self.host.commit_task(task, subject_of(self.plan, task, files), files)
        return Record(task=task, landed=landed)

    async def _commit(self, task: Task, call: TaskDone) -> str:
        landed = await self.host.commit_task(task, subject_of(self.plan, task, call.files), call.files)
        if landed.problem:
            return self._refused(task, landed.problem)
        self._done.add(task.number)
        self._files[task.number] = call.files
        return f"Task {task.number} is committed ({landed.commit[:7]}). {self._next()}"

    def _refused(self, task: Task, problem: str) -> str:
        tries = self._tries[task.number] = self._tries.get(task.number, 0) + 1
        if tries >= MAX_TRIES:
            self.failure = f"task {task.number} ({task.name}) failed {tries} times: {problem}"
            return f"Task {task.number} is not committed. Stop here, and answer now: {self.failure}"
        return (
            f"Task {task.number} is not committed: {problem}\n"
            f"Fix the cause and call task_done again; this was try {tries} of {MAX_TRIES}."
        )

    async def _ask(self, task: Task, call: TaskDone) -> str:
        refusals = self._refusals.get(task.number, 0)
        answer = (await self.host.ask(inquiry_for(self.step, self.plan, task, refusals)))[0]
        if not satisfied(task, answer):
            return self._objected(task, answer)
        if refusals and call.files:
            return await self._commit(task, call)
        self._done.add(task.number)
        return f"The human says: {answer.words}\n{self._next()}"

    def _objected(self, task: Task, answer: Answer) -> str:
        refusals = self._refusals[task.number] = self._refusals.get(task.number, 0) + 1
        if refusals >= MAX_TRIES:
            self.failure = (
                f"task {task.number} ({task.name}): the human said {refusals} times: {answer.words}"
            )
            return f"Stop here, and answer now: {self.failure}"
        return f"The human says: {answer.words}\nMend that, then call task_done for task {task.number} again."

    def _is_done(self, task: Task) -> bool:
        """A checkpoint is never committed: it is done too once a later task is."""
        known = {*self._done, *self.step.tasks_done}
        return task.number in known or (task.type != "auto" and any(n > task.number for n in known))

    def _before(self, task: Task) -> Task | None:
        earlier = (other for other in self.plan.tasks if other.number < task.number)
        return next((other for other in earlier if not self._is_done(other)), None)

    def _known(self, task: Task) -> str:
        state = "committed" if task.type == "auto" else "done"
        return f"Task {task.number} is {state} already. {self._next()}"

    def _next(self) -> str:
        left = next((task for task in self.plan.tasks if not self._is_done(task)), None)
        return f"Go on with task {left.number}." if left else "That was the last one: answer now."
