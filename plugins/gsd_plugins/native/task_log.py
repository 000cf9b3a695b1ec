"""The progress of a plan's tasks: the agent calls ``task_done``, which checks, commits or asks a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import attrs

from gsd_core import Answer, Permanent, Plan, StepHost, StepRequest, Task, TaskCommit

from .answers import InvalidAnswer, TaskDone, parse_answer
from .checkpoints import inquiry_for, is_satisfied

MAX_ATTEMPTS = 3
MAX_SUBJECT = 100


@attrs.frozen(kw_only=True)
class FinishedTask:
    """A task and its commit; the commit is empty for a checkpoint that changed nothing."""

    task: Task
    commit: TaskCommit


@attrs.define(kw_only=True)
class TaskLog:
    """The tasks of one plan during one attempt; *failure* is why the plan cannot continue, if so."""

    step: StepRequest
    plan: Plan
    host: StepHost
    failure: str = attrs.field(default="", init=False)
    _done: set[int] = attrs.field(factory=set[int], init=False)
    _failed_checks: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    _rejections: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    _files: dict[int, tuple[str, ...]] = attrs.field(factory=dict[int, tuple[str, ...]], init=False)

    async def task_done(self, arguments: Mapping[str, Any]) -> str:
        """Check and commit a task, or ask the question of a checkpoint; return the reply to the agent."""
        if self.failure:
            return f"Stop here: {self.failure}"
        try:
            call = parse_answer(TaskDone, arguments)
        except InvalidAnswer as error:
            return f"Not valid: {error}"
        task = next((task for task in self.plan.tasks if task.number == call.task), None)
        if task is None:
            return f"The plan has no task {call.task}; its tasks are 1 to {len(self.plan.tasks)}."
        if self._is_done(task):
            state = "committed" if task.type == "auto" else "done"
            return f"Task {task.number} is already {state}. {self._next()}"
        if first := next((other for other in self._open_tasks() if other.number < task.number), None):
            return f"Task {first.number} ({first.name}) comes first."
        return await (self._commit(task, call) if task.type == "auto" else self._ask(task, call))

    def complaints(self) -> tuple[str, ...]:
        """Return a complaint for each task that is not done."""
        return tuple(
            f"task {task.number} ({task.name}) is not done: do it and call task_done for it"
            for task in self._open_tasks()
        )

    def raise_if_unfinished(self) -> None:
        """Raise ``Permanent`` if a task failed for good or was not committed."""
        if self.failure:
            raise Permanent(f"plan {self.plan.id}: {self.failure}")
        # Only commits count: a recorded answer passes without calling `task_done` in this attempt.
        if missing := [task for task in self._open_tasks() if task.type == "auto"]:
            names = ", ".join(f"{task.number} ({task.name})" for task in missing)
            raise Permanent(f"plan {self.plan.id}: the executor did not commit task {names}")

    async def finished(self) -> tuple[FinishedTask, ...]:
        """Return each task with its commit, including the commits of earlier attempts."""
        return tuple([await self._finished(task) for task in self.plan.tasks])

    async def _finished(self, task: Task) -> FinishedTask:
        if task.type != "auto" and task.number not in {*self._files, *self.step.tasks_done}:
            return FinishedTask(task=task, commit=TaskCommit())
        # For a committed task, the host returns the existing commit.
        files = self._files.get(task.number, task.files)
        commit = await self.host.commit_task(task, commit_subject(self.plan, task, files), files)
        return FinishedTask(task=task, commit=commit)

    async def _commit(self, task: Task, call: TaskDone) -> str:
        commit = await self.host.commit_task(task, commit_subject(self.plan, task, call.files), call.files)
        if not commit.problem:
            self._done.add(task.number)
            self._files[task.number] = call.files
            return f"Task {task.number} is committed ({commit.commit[:7]}). {self._next()}"
        failures = self._failed_checks[task.number] = self._failed_checks.get(task.number, 0) + 1
        if failures >= MAX_ATTEMPTS:
            self.failure = f"task {task.number} ({task.name}) failed {failures} times: {commit.problem}"
            return (
                f"Task {task.number} is not committed. Stop here and give your final answer: {self.failure}"
            )
        return (
            f"Task {task.number} is not committed: {commit.problem}\n"
            f"Fix the cause and call task_done again; this was attempt {failures} of {MAX_ATTEMPTS}."
        )

    async def _ask(self, task: Task, call: TaskDone) -> str:
        rejections = self._rejections.get(task.number, 0)
        answer = (await self.host.ask(inquiry_for(self.step, self.plan, task, rejections)))[0]
        if not is_satisfied(task, answer):
            return self._reject(task, answer)
        # A checkpoint changes no files, unless they were changed to fix what the person rejected.
        if rejections and call.files:
            return await self._commit(task, call)
        self._done.add(task.number)
        return f"The human says: {answer.words}\n{self._next()}"

    def _reject(self, task: Task, answer: Answer) -> str:
        rejections = self._rejections[task.number] = self._rejections.get(task.number, 0) + 1
        if rejections >= MAX_ATTEMPTS:
            self.failure = (
                f"task {task.number} ({task.name}): the human rejected it {rejections} times: {answer.words}"
            )
            return f"Stop here and give your final answer: {self.failure}"
        return f"The human says: {answer.words}\nFix that, then call task_done for task {task.number} again."

    def _is_done(self, task: Task) -> bool:
        # Only commits outlast an attempt, and a checkpoint has none. Tasks are done in order, so it was
        # done if a later task is.
        known = {*self._done, *self.step.tasks_done}
        return task.number in known or (task.type != "auto" and any(n > task.number for n in known))

    def _open_tasks(self) -> list[Task]:
        return [task for task in self.plan.tasks if not self._is_done(task)]

    def _next(self) -> str:
        left = self._open_tasks()
        return f"Continue with task {left[0].number}." if left else "That was the last task: answer now."


def commit_subject(plan: Plan, task: Task, files: Sequence[str]) -> str:
    """Return the first line of a task's commit message: ``feat(01-02): Store notes in a file``."""
    name = " ".join(task.name.split())
    subject = f"{_commit_type(plan, task, files)}({plan.id}): {name}"
    return subject if len(subject) <= MAX_SUBJECT else subject[: MAX_SUBJECT - 1].rstrip() + "…"


def _commit_type(plan: Plan, task: Task, files: Sequence[str]) -> str:
    paths = [PurePosixPath(path) for path in files or task.files]
    if paths and all(map(_is_test, paths)):
        return "test"
    if paths and all(map(_is_document, paths)):
        return "docs"
    # A commit for a checkpoint is always the fix of something that a person rejected.
    is_fix = plan.gap_closure or task.type != "auto" or task.name.lower().startswith("fix")
    return "fix" if is_fix else "feat"


def _is_test(path: PurePosixPath) -> bool:
    stem = path.name.partition(".")[0].lower()
    if stem.startswith("test_") or stem.endswith(("_test", "-test")):
        return True
    in_test_folder = not {"test", "tests", "__tests__"}.isdisjoint(path.parts[:-1])
    return in_test_folder or ".test." in path.name or ".spec." in path.name


def _is_document(path: PurePosixPath) -> bool:
    return path.suffix.lower() in (".md", ".rst", ".txt", ".adoc") or path.parts[0] == "docs"
