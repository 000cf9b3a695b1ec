"""The progress of a plan's tasks: the agent calls ``task_done``, which checks, commits or asks a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import attrs

from gsd_core import DeferredTask, Permanent, Plan, ReplacedCheck, StepHost, StepRequest, Task, TaskCommit
from gsd_core.planning.changed_files import is_output
from gsd_core.planning.plan_tasks import is_test_file

from .answers import AskArchitecture, NeedAuthentication, TaskDone
from .check_revision import revise_check
from .checkpoints import (
    ARCHITECTURE,
    DONE,
    KEEP,
    architecture_inquiry,
    authentication_inquiry,
    decision_of,
    inquiry_for,
    is_postponed,
    is_satisfied,
)

MAX_ATTEMPTS = 3
MAX_LOGINS = 5
MAX_RULINGS = 5
MAX_SUBJECT = 100
MAX_DIAGNOSIS = 1000
MAX_PROBLEM = 800
DOCUMENTS = (".md", ".rst", ".txt", ".adoc")


@attrs.frozen(kw_only=True)
class FinishedTask:
    """A task and its commit; the commit is empty for a checkpoint that changed nothing."""

    task: Task
    commit: TaskCommit

    @property
    def what(self) -> str:
        """What was done: the agent's note, else the task's name."""
        return self.commit.note or self.task.name


@attrs.define(kw_only=True)
class TaskLog:
    """The tasks of one plan during one attempt.

    *failure* is why the plan cannot continue, if so, and *hint* what a person can do. *decisions* are those
    of the planner about checks, by task; the PLAN itself still has the old ones. *logins* are what a person
    was asked to log in to, and *postponed* the checkpoints that a person sees at the end of the phase.
    *deferred* are the tasks that the plan goes on without, by number.
    """

    step: StepRequest
    plan: Plan
    host: StepHost
    failure: str = attrs.field(default="", init=False)
    hint: str = attrs.field(default="", init=False)
    logins: list[str] = attrs.field(factory=list[str], init=False)
    deferred: dict[int, DeferredTask] = attrs.field(factory=dict[int, DeferredTask], init=False)
    decisions: dict[int, ReplacedCheck] = attrs.field(factory=dict[int, ReplacedCheck], init=False)
    _done: set[int] = attrs.field(factory=set[int], init=False)
    _failed_checks: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    _rejections: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    _files: dict[int, tuple[str, ...]] = attrs.field(factory=dict[int, tuple[str, ...]], init=False)
    _disputed: set[int] = attrs.field(factory=set[int], init=False)
    _last_note: str = attrs.field(default="", init=False)
    _asked_for_diagnosis: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.decisions.update({decision.task: decision for decision in self.step.replaced_checks})
        self._disputed.update(each.task for each in self.step.replaced_checks if each.because == "disputed")
        self.deferred.update({one.task: one for one in self.step.deferred})

    async def look_ahead(self) -> None:
        """Run the check of the next task before anything is done for it; one that proves nothing is revised.

        Call it before the executor begins. After that, each commit does it for the task that follows.
        """
        task = next(iter(self._open_tasks()), None)
        if task is None or task.type != "auto" or not task.check:
            return
        # The commit of the tests has shown that the check fails before the implementation.
        if task.cycle in ("green", "refactor"):
            return
        decided = self.decisions.get(task.number)
        if decided and decided.because == "cannot run":
            # The repaired check did not exist before the task was done.
            return
        result = await self.host.check_before(self.with_check(task))
        # Planning files are the core's.
        changes_files = any(not path.removeprefix("./").startswith(".planning/") for path in task.files)
        if result.unusable:
            if not await self._repaired(task, TaskCommit(check=result)):
                return
        # A task without files only verifies something: its check may pass at any time. If the task changes
        # tests that are there, only their result afterwards says something.
        elif result.ok and not decided and not task.cycle and changes_files and not self._changes_tests(task):
            decided = await revise_check(self.step, self.plan, task, result, "passes before", self.host)
            self.decisions[task.number] = decided
        else:
            return
        if self.with_check(task).check != result.command:
            await self.host.check_before(self.with_check(task))

    def _changes_tests(self, task: Task) -> bool:
        return any(is_test_file(path) and (self.step.tree / path).is_file() for path in task.files)

    def with_check(self, task: Task) -> Task:
        """Return the task with the check that counts: the planner's decision, else the plan's."""
        decision = self.decisions.get(task.number)
        if task.cycle and not decision:
            # The tasks of a feature have one check, so that a repaired one is that of all of them.
            first = task.number - ("red", "green", "refactor").index(task.cycle)
            numbers = range(first, first + 3)
            decision = next((self.decisions[n] for n in numbers if n in self.decisions), None)
        return attrs.evolve(task, check=decision.check) if decision else task

    async def task_done(self, call: TaskDone) -> str:
        """Check and commit a task, or ask the question of a checkpoint; return the reply to the agent."""
        if self.failure:
            return self._stop()
        task = next((task for task in self.plan.tasks if task.number == call.task), None)
        if task is None:
            return f"The plan has no task {call.task}; its tasks are 1 to {len(self.plan.tasks)}."
        if task.number in self.deferred:
            return f"Task {task.number} is deferred: leave it alone. {self._next()}"
        if self._is_done(task):
            state = "committed" if task.type == "auto" else "done"
            return f"Task {task.number} is already {state}. {self._next()}"
        if first := next((other for other in self._open_tasks() if other.number < task.number), None):
            return f"Task {first.number} ({first.name}) comes first."
        self._last_note = call.note
        reply = await (self._commit(task, call) if task.type == "auto" else self._ask(task, call))
        if self._is_done(task) or task.number in self.deferred:
            await self.look_ahead()
        return f"{reply} {self._stop()}".strip()

    async def need_authentication(self, call: NeedAuthentication) -> str:
        """Have a person log in, and return the reply to the agent. It costs no attempt at any task."""
        if self.failure:
            return self._stop()
        if not call.service.strip() or not call.action.strip():
            return "Not valid: say in `service` what refused, and in `action` what the person has to do."
        if len(self.logins) >= MAX_LOGINS:
            return f"A person was asked {MAX_LOGINS} times already: report what is missing in `issues`."
        number = len(self.logins) + 1
        [answer] = await self.host.ask(authentication_inquiry(self.step, self.plan, call, number))
        is_done = answer.chosen == (DONE.label,)
        self.logins.append(f"{call.service}: {call.action} ({'done' if is_done else answer.words})")
        if is_done:
            return "The human has done it. Repeat the command that was refused."
        return f"The human says: {answer.words}\nDo without it if you can; else say so in `issues`."

    async def ask_architecture(self, call: AskArchitecture) -> str:
        """Have a person decide about a change of the architecture, and return the reply to the agent."""
        if self.failure:
            return self._stop()
        if not call.change.strip():
            return "Not valid: say in `change` what would change, and why the plan needs it."
        if sum(question.header == ARCHITECTURE for question, _ in self.host.answered()) >= MAX_RULINGS:
            return f"A person was asked {MAX_RULINGS} times already: keep to the plan, and use `issues`."
        [answer] = await self.host.ask(architecture_inquiry(self.step, self.plan, call))
        if answer.chosen == (KEEP.label,):
            return f"The human says: {answer.words}\nDo not make this change; do without it."
        return f"The human says: {answer.words}\nDo that, and nothing beyond it."

    @property
    def decided(self) -> tuple[str, ...]:
        """What was asked and answered while the plan was executed; of the same question, the last answer."""
        asked = [each for each in self.host.answered() if not (each[0].human_only or each[0].inspection)]
        return tuple({question.text: decision_of(question, answer) for question, answer in asked}.values())

    def complaints(self, issues: Sequence[str] = ()) -> tuple[str, ...]:
        """Return what is missing from the agent's work, or once, after a failure, from its diagnosis.

        *issues* are those of its answer.
        """
        if self.failure:
            # Once a task has failed for good, a better answer would not help, except to explain it.
            if self._asked_for_diagnosis or any(issue.strip() for issue in issues):
                return ()
            self._asked_for_diagnosis = True
            return ("issues is empty: say why the task failed, and what a person should look at or change",)
        # The agent may be a new one that does not know what the one before was told.
        numbers = ", ".join(map(str, sorted(self.deferred)))
        aside = f". Deferred: {numbers}. Leave that alone" if numbers else ""
        return tuple(
            f"task {task.number} ({task.name}) is not done: do it and call task_done for it{aside}"
            for task in self._open_tasks()
        )

    def raise_if_unfinished(self, issues: Sequence[str] = ()) -> None:
        """Raise ``Permanent`` if a task failed for good or was not committed.

        The message contains the executor's own diagnosis: its *issues*, else its last note.
        """
        deferred = [*self.deferred_lines]
        if not self.failure and deferred and not any(map(self._is_committed, self.plan.tasks)):
            # Nothing of the plan is done, so there is nothing to verify.
            self._fail(min(self.deferred), deferred.pop(0))
        if self.failure:
            failures = "\n".join([self.failure, *deferred])
            raise Permanent(f"plan {self.plan.id}: {failures}{self.diagnosis(issues)}", hint=self.hint)
        # Only commits count: a recorded answer passes without calling `task_done` in this attempt.
        if missing := [task for task in self._open_tasks() if task.type == "auto"]:
            names = ", ".join(f"{task.number} ({task.name})" for task in missing)
            raise Permanent(f"plan {self.plan.id}: the executor did not commit task {names}")

    def diagnosis(self, issues: Sequence[str]) -> str:
        """Return a line with what the executor says about a failure: its issues, else its last note."""
        said = " ".join(" ".join(issues).split()) or " ".join(self._last_note.split())
        return f"\nThe executor says: {said[:MAX_DIAGNOSIS]}" if said else ""

    async def finished(self) -> tuple[FinishedTask, ...]:
        """Return each task with its commit, including the commits of earlier attempts; not the deferred."""
        tasks = [task for task in self.plan.tasks if task.number not in self.deferred]
        return tuple([await self._finished(self.with_check(task)) for task in tasks])

    @property
    def deferred_lines(self) -> tuple[str, ...]:
        """A line for each deferred task: why, and where its work is kept."""
        lines = [self.deferred[number] for number in sorted(self.deferred)]
        return tuple(
            f"Task {one.task} was not done: {' '.join(one.reason.split())}"
            + (f" (its changes are kept in {one.ref})" if one.ref else "")
            for one in lines
        )

    @property
    def postponed(self) -> tuple[Task, ...]:
        """The checkpoints that wait for the end of the phase, where all checks by people are one batch."""
        return tuple(task for task in self.plan.tasks if is_postponed(self.step, task))

    def _is_committed(self, task: Task) -> bool:
        return task.type == "auto" and task.number in {*self._done, *self.step.tasks_done}

    async def _finished(self, task: Task) -> FinishedTask:
        if task.type != "auto" and task.number not in {*self._files, *self.step.tasks_done}:
            return FinishedTask(task=task, commit=TaskCommit())
        # For a committed task, the host returns the existing commit.
        files = self._files.get(task.number, task.files)
        commit = await self.host.commit_task(task, commit_subject(self.plan, task, files), files)
        return FinishedTask(task=task, commit=commit)

    async def _commit(self, task: Task, call: TaskDone) -> str:
        commit = await self._try_to_commit(task, call)
        if commit.check and commit.check.unusable and await self._repaired(task, commit):
            commit = await self._try_to_commit(task, call)
        decided = await self._reconsidered(task, call, commit)
        is_replaced = bool(decided and commit.check and decided.check != commit.check.command)
        if is_replaced:
            commit = await self._try_to_commit(task, call)
        if not commit.problem:
            self._done.add(task.number)
            self._files[task.number] = call.files
            left = self._left_note(commit)
            return f"Task {task.number} is committed ({commit.commit[:7]}). {left}{self._next()}"
        if commit.check and commit.check.unusable:
            self._fail_for_check(task, commit.check.unusable)
        if self.failure:
            return f"Task {task.number} is not committed."
        if decided and (is_replaced or call.dispute.strip()):
            how = f"replaced the check by `{decided.check}`" if is_replaced else "keeps the check"
            return (
                f"Task {task.number} is not committed, which costs no attempt. The planner {how}: "
                f"{decided.reason}\n{commit.problem}"
            )
        failures = self._failed_checks[task.number] = self._failed_checks.get(task.number, 0) + 1
        if failures >= MAX_ATTEMPTS:
            problem = commit.problem if len(commit.problem) <= MAX_PROBLEM else _shortened(commit.problem)
            failure = f"task {task.number} ({task.name}) failed {failures} times: {problem}"
            if decided:
                failure += f"\nThe planner keeps the check: {decided.reason}"
            if self._can_continue_without(task):
                return await self._defer(task, failure, call.files)
            self._fail(task.number, failure)
            return f"Task {task.number} is not committed."
        return (
            f"Task {task.number} is not committed: {commit.problem}\n"
            f"Fix the cause and call task_done again; this was attempt {failures} of {MAX_ATTEMPTS}."
        )

    async def _reconsidered(self, task: Task, call: TaskDone, commit: TaskCommit) -> ReplacedCheck | None:
        """Return the planner's decision about a check that failed, if it has to decide now.

        It is asked once for each task: when the executor disputes the check, or at the last attempt, before
        any work is taken back.
        """
        check = commit.check
        if check is None or check.ok or check.unusable:
            return None
        if task.cycle == "red" or task.number in self._disputed:
            return None
        if not call.dispute.strip() and self._failed_checks.get(task.number, 0) + 1 < MAX_ATTEMPTS:
            return None
        self._disputed.add(task.number)
        said = call.dispute or call.note
        decided = await revise_check(self.step, self.plan, task, check, "disputed", self.host, said)
        self.decisions[task.number] = decided
        return decided

    def _fail(self, task: int, failure: str) -> None:
        self.failure = failure
        self.hint = f"if the task or its check is wrong, edit task {task} in {self.plan.path}; then resume"

    def _can_continue_without(self, task: Task) -> bool:
        """Whether the plan has other work, done or to do, that does not build on *task*.

        Without a verification after it, a plan with a task left out would look complete.
        """
        if not self.step.will_be_verified:
            return False
        rest = [other for other in self._open_tasks() if other.type == "auto" and other.number != task.number]
        independent = [other for other in rest if not _builds_on(other, task)]
        return bool(independent) or any(map(self._is_committed, self.plan.tasks))

    async def _defer(self, task: Task, failure: str, files: Sequence[str]) -> str:
        """Defer the task, and with it the later ones that build on it."""
        given_up = [task]
        self.deferred[task.number] = deferred = await self.host.defer_task(task, failure, files)
        for later in self._open_tasks():
            before = next((one for one in given_up if _builds_on(later, one)), None)
            if before is None or later.number < task.number:
                continue
            reason = f"task {later.number} ({later.name}) builds on task {before.number}, which is deferred"
            self.deferred[later.number] = await self.host.defer_task(later, reason)
            given_up.append(later)
        numbers = ", ".join(str(one.number) for one in given_up)
        undone = "What it changed was taken back. " if deferred.paths else ""
        return (
            f"Task {task.number} is not committed, and this was the last attempt. Deferred: {numbers}. "
            f"{undone}Do not work on that any more. {self._next()}"
        )

    async def _try_to_commit(self, task: Task, call: TaskDone) -> TaskCommit:
        subject = commit_subject(self.plan, task, call.files)
        return await self.host.commit_task(self.with_check(task), subject, call.files, call.note)

    async def _repaired(self, task: Task, commit: TaskCommit) -> bool:
        """Have the planner repair a check that cannot run; return whether there is another one now.

        It is asked once for each task. A check that cannot run is the plan's fault, so this costs the
        executor no attempt, and without another check the plan fails.
        """
        assert commit.check is not None
        decided = self.decisions.get(task.number)
        if not (decided and decided.because == "cannot run"):
            decided = await revise_check(self.step, self.plan, task, commit.check, "cannot run", self.host)
            self.decisions[task.number] = decided
            if decided.check != commit.check.command:
                return True
        self._fail_for_check(task, f"{commit.check.unusable}. The planner says: {decided.reason}")
        return False

    def _fail_for_check(self, task: Task, why: str) -> None:
        if not self.failure:
            check = self.with_check(task).check
            self.failure = f"the check of task {task.number} ({task.name}) cannot run: {why}\n`{check}`"
            self.hint = f"install what is missing, or edit the check of task {task.number} in "
            self.hint += f"{self.plan.path} (its <automated> element); then resume"

    async def _ask(self, task: Task, call: TaskDone) -> str:
        if is_postponed(self.step, task):
            self._done.add(task.number)
            return f"A person checks that at the end of the phase, with everything else. {self._next()}"
        rejections = self._rejections.get(task.number, 0)
        answer = (await self.host.ask(inquiry_for(self.step, self.plan, task, rejections)))[0]
        if not is_satisfied(task, answer):
            rejections = self._rejections[task.number] = rejections + 1
            if rejections >= MAX_ATTEMPTS:
                why = f"the human rejected it {rejections} times: {answer.words}"
                self.failure = f"task {task.number} ({task.name}): {why}"
                return ""
            again = f"Fix that, then call task_done for task {task.number} again."
            return f"The human says: {answer.words}\n{again}"
        # A checkpoint changes no files, unless they were changed to fix what the person rejected.
        if rejections and call.files:
            return await self._commit(task, call)
        self._done.add(task.number)
        return f"The human says: {answer.words}\n{self._next()}"

    def _is_done(self, task: Task) -> bool:
        # Only commits outlast an attempt, and a checkpoint has none. Tasks are done in order, so it was
        # done if a later task is.
        known = {*self._done, *self.step.tasks_done}
        return task.number in known or (task.type != "auto" and any(n > task.number for n in known))

    def _open_tasks(self) -> list[Task]:
        left = [task for task in self.plan.tasks if task.number not in self.deferred]
        return [task for task in left if not self._is_done(task)]

    def _stop(self) -> str:
        """Return what the agent is told once the plan cannot continue; empty before that."""
        if not self.failure:
            return ""
        return (
            f"Stop here and give your final answer: {self.failure}\n"
            "In `issues`, say first what you think the cause is, and what a person should change."
        )

    def _left_note(self, commit: TaskCommit) -> str:
        """Return a sentence about files that changed too, and that no task has named; not about output."""
        names = [path for path in commit.left if not is_output(self.step.tree, path)]
        if not names:
            return ""
        later = "If they belong to a later task, name them in its `files`."
        return f"These files changed too and are in no commit: {', '.join(names[:10])}. {later} "

    def _next(self) -> str:
        left = self._open_tasks()
        return f"Continue with task {left[0].number}." if left else "That was the last task: answer now."


def _builds_on(later: Task, task: Task) -> bool:
    """Whether *later* needs what *task* makes: it is of the same test-driven cycle, or changes its files."""
    if task.cycle and later.cycle:
        # Without the cleanup, everything is there.
        first = task.number - ("red", "green", "refactor").index(task.cycle)
        return task.cycle != "refactor" and first <= later.number < first + 3
    return not {*map(_normal, task.files)}.isdisjoint(map(_normal, later.files))


def _normal(path: str) -> str:
    return path.removeprefix("./")


def _shortened(problem: str) -> str:
    """Return the first line of a problem (what failed) and the end of the output, where errors are."""
    first, _, rest = problem.partition("\n")
    room = max(MAX_PROBLEM - len(first), MAX_PROBLEM // 2)
    return f"{first[:MAX_PROBLEM]}\n…{rest[-room:]}"


def commit_subject(plan: Plan, task: Task, files: Sequence[str]) -> str:
    """Return the first line of a task's commit message: ``feat(01-02): Store notes in a file``."""
    name = " ".join(task.name.split())
    subject = f"{_commit_type(plan, task, files)}({plan.id}): {name}"
    return subject if len(subject) <= MAX_SUBJECT else subject[: MAX_SUBJECT - 1].rstrip() + "…"


def _commit_type(plan: Plan, task: Task, files: Sequence[str]) -> str:
    if task.cycle:
        green = "fix" if plan.gap_closure else "feat"
        return {"red": "test", "green": green, "refactor": "refactor"}[task.cycle]
    paths = [PurePosixPath(path) for path in files or task.files]
    if paths and all(is_test_file(str(path)) for path in paths):
        return "test"
    if paths and all(path.suffix.lower() in DOCUMENTS or path.parts[0] == "docs" for path in paths):
        return "docs"
    # A commit for a checkpoint is always the fix of something that a person rejected.
    is_fix = plan.gap_closure or task.type != "auto" or task.name.lower().startswith("fix")
    return "fix" if is_fix else "feat"
