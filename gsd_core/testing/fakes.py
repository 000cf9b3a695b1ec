"""Fakes for tests, instead of mocks: hosts, a human, a notification channel and a clock, all in memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import attrs

from gsd_core.errors import Permanent
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_answer, gsd_notify
from gsd_core.model.agent import (
    Activity,
    AgentResult,
    AgentTask,
    Allow,
    Deny,
    Permission,
    ToolRecord,
    ToolUse,
)
from gsd_core.model.checks import CheckResult, ReplacedBecause, ReplacedCheck
from gsd_core.model.gap import GapReport
from gsd_core.model.ids import question_id
from gsd_core.model.notice import Notice
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.model.sandbox import Place, SandboxedCommand
from gsd_core.model.step import Accept, DeferredTask, Functions, StepRequest, TaskCommit
from gsd_core.model.usage import Usage
from gsd_core.planning.model import PhaseView, Plan, Task

MAX_COMPLAINTS = 2
"""How often the core lets an agent correct its answer."""


@attrs.frozen(kw_only=True)
class Turn:
    """One turn of a scripted agent: its *task*, and the *complaints* about its previous answer."""

    key: str
    task: AgentTask
    complaints: tuple[str, ...] = ()
    functions: Functions = attrs.field(factory=dict[str, Callable[[Mapping[str, Any]], Awaitable[str]]])

    async def call(self, function: str, /, **arguments: object) -> str:
        """Call one of the task's functions, as a model would."""
        if function not in {known.name for known in self.task.functions}:
            raise AssertionError(f"the task {self.key!r} has no function {function!r}")
        return await self.functions[function](arguments)


class Script(Protocol):
    """A scripted agent: returns a value or an ``AgentResult`` for a turn; may be ``async``."""

    def __call__(self, turn: Turn, /) -> Any: ...


class Parked(Exception):
    """No one answered a question; a real run would park the step and resume it later."""


Agent: TypeAlias = Script | Mapping[str, Any]
"""A script, or for each key a script, a value, or a list with one for each turn (the last one repeats)."""

Answers: TypeAlias = Callable[[Question], "Answer | str | None"] | Sequence[str] | Mapping[str, str]
"""A function, answers in the order of the questions, or answers by a part of the question's text."""

Checks: TypeAlias = Callable[[str], CheckResult] | Mapping[str, Sequence[int]]
"""A function, or for each command its exit codes (the last one repeats); other commands succeed."""


@attrs.frozen(kw_only=True)
class Commit:
    """The commit of a task."""

    task: int
    subject: str
    paths: tuple[str, ...]
    created: tuple[str, ...] = ()
    at: datetime | None = None
    note: str = ""
    check: CheckResult | None = None

    def as_task_commit(self) -> TaskCommit:
        """Return the commit as the step receives it."""
        digest = hashlib.sha256(f"{self.task} {self.subject}".encode()).hexdigest()
        shared = attrs.asdict(self, recurse=False, filter=attrs.filters.exclude("task", "subject"))
        return TaskCommit(commit=digest[:40], **shared)


@attrs.define(kw_only=True)
class FakeHost:
    """A :class:`gsd_core.StepHost` in memory: no processes, no git, no journal.

    It keeps the promises that an executor relies on: a call with a known key returns the recorded result,
    complaints go back into the same conversation twice, and a committed task stays committed. So a test
    can run a step, interrupt it, and run it again on the same host.

    *agent* plays the model, *answers* the human (by default the recommended option, but never for a
    ``human_only`` question), *checks* the commands. With *root*, only paths that exist below it can be
    committed. A commit creates a path unless the path is *there* before or in an earlier commit; *clock*
    gives the time of commits. A check fails before its task unless it *passes_before*. *step* is needed for a
    step that makes its own plan, *report* is what the detectors find. Afterwards, look at
    *tasks*, *inquiries*, *commits*, *commands*, *replaced* and *deferred*.
    """

    agent: Agent = attrs.field(factory=dict[str, Any])
    answers: Answers | None = None
    checks: Checks = attrs.field(factory=dict[str, Sequence[int]])
    root: Path | None = None
    there: Collection[str] = ()
    clock: Callable[[], datetime] | None = None
    passes_before: Collection[str] = ()
    run: str = "r-test"
    step: StepRequest | None = None
    report: GapReport = attrs.field(factory=GapReport)
    plan: Plan | None = attrs.field(default=None, init=False)
    tasks: list[tuple[str, AgentTask]] = attrs.field(factory=list[tuple[str, AgentTask]], init=False)
    complaints: list[tuple[str, ...]] = attrs.field(factory=list[tuple[str, ...]], init=False)
    inquiries: list[Inquiry] = attrs.field(factory=list[Inquiry], init=False)
    commits: list[Commit] = attrs.field(factory=list[Commit], init=False)
    commands: list[str] = attrs.field(factory=list[str], init=False)
    replaced: list[ReplacedCheck] = attrs.field(factory=list[ReplacedCheck], init=False)
    deferred: list[DeferredTask] = attrs.field(factory=list[DeferredTask], init=False)
    _results: dict[str, AgentResult] = attrs.field(factory=dict[str, AgentResult], init=False)
    _answered: dict[str, Answer] = attrs.field(factory=dict[str, Answer], init=False)
    _uses: list[ToolRecord] = attrs.field(factory=list[ToolRecord], init=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the agent calls, in order."""
        return tuple(key for key, _ in self.tasks)

    def task(self, key: str) -> AgentTask:
        """Return the task of the first agent call with that key."""
        return next(task for known, task in self.tasks if known == key)

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """Let the scripted agent take turns until *accept* has no complaints, at most three."""
        if key in self._results:
            return self._results[key]
        self.tasks.append((key, task))
        self._uses.clear()
        complaints: tuple[str, ...] = ()
        for number in range(MAX_COMPLAINTS + 1):
            turn = Turn(key=key, task=task, complaints=complaints, functions=functions or {})
            result = attrs.evolve(await self._take_turn(turn, number), sent_back=number)
            complaints = tuple(accept(result)) if accept else ()
            if not complaints:
                self._results[key] = result
                return result
            self.complaints.append(complaints)
        raise Permanent(f"the answer of {key!r} was rejected: {'; '.join(complaints)}")

    async def _take_turn(self, turn: Turn, number: int) -> AgentResult:
        value: Any = self.agent
        if isinstance(value, Mapping):
            scripts = cast("Mapping[str, Any]", value)
            if turn.key not in scripts:
                known = ", ".join(scripts) or "none"
                raise AssertionError(f"no agent is scripted for {turn.key!r}; scripted: {known}")
            value = scripts[turn.key]
            if isinstance(value, list):
                turns = cast("Sequence[Any]", value)
                value = turns[min(number, len(turns) - 1)]
        value = value(turn) if callable(value) else value
        value = await value if isawaitable(value) else value
        result = value if isinstance(value, AgentResult) else AgentResult(value=value)
        resumed = turn.task.conversation.id if turn.task.conversation else f"conversation-{turn.key}"
        uses = (*self._uses, *result.uses)
        return attrs.evolve(result, conversation=result.conversation or resumed, uses=uses)

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """Let the scripted human answer; a question that was answered before is not asked again."""
        questions = [self._with_id(question, inquiry) for question in inquiry.questions]
        if any(question.id not in self._answered for question in questions):
            self.inquiries.append(attrs.evolve(inquiry, questions=tuple(questions)))
        for question in questions:
            if question.id not in self._answered:
                self._answered[question.id] = self._answer(question)
        return [self._answered[question.id] for question in questions]

    def answered(self) -> Sequence[tuple[Question, Answer]]:
        """Return the checkpoints' questions that the scripted human answered."""
        checkpoints = (inquiry for inquiry in self.inquiries if inquiry.kind == "checkpoint")
        asked = (question for inquiry in checkpoints for question in inquiry.questions)
        return [(one, self._answered[one.id]) for one in asked if one.id in self._answered]

    def _with_id(self, question: Question, inquiry: Inquiry) -> Question:
        options = [option.label for option in question.options]
        return attrs.evolve(question, id=question_id(self.run, inquiry.step, "", question.text, options))

    def _answer(self, question: Question) -> Answer:
        answer = self._scripted_answer(question)
        if answer is None:
            raise Parked(question.text)
        if isinstance(answer, Answer):
            return attrs.evolve(answer, question=question.id)
        return _as_answer(question, answer)

    def _scripted_answer(self, question: Question) -> Answer | str | None:
        answers = self.answers
        if callable(answers):
            return answers(question)
        if isinstance(answers, Mapping):
            return next((answer for part, answer in answers.items() if part in question.text), None)
        if answers is not None:
            return answers[len(self._answered)] if len(self._answered) < len(answers) else None
        if question.human_only or not question.options:
            return None
        return _recommended_label(question)

    async def check_before(self, task: Task) -> CheckResult:
        """Return a success for a check that passes before its task, else a failure."""
        exit_code = 0 if task.check in self.passes_before else 1
        return CheckResult(command=task.check, exit=exit_code)

    async def replace_check(self, task: Task, check: str, reason: str, because: ReplacedBecause) -> None:
        """Record the decision."""
        decision = ReplacedCheck(
            task=task.number, was=task.check, check=check, reason=reason, because=because
        )
        self.replaced.append(decision)

    async def begin_plan(self, plan: Plan) -> StepRequest:
        """Record the plan, and return *step* with the recorded one."""
        assert self.step is not None, "a host for a step that begins a plan needs the step"
        self.plan = self.plan or plan
        done = tuple(commit.task for commit in self.commits)
        return attrs.evolve(self.step, plan=self.plan, tasks_done=done)

    async def find_gaps(self, phase: PhaseView) -> tuple[PhaseView, GapReport]:
        """Return the phase, and *report*."""
        return phase, self.report

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str], note: str = "") -> TaskCommit:
        """Run the task's check and record the commit; return the earlier one if there is one."""
        if known := next((commit for commit in self.commits if commit.task == task.number), None):
            return known.as_task_commit()
        check = await self.check(task.check) if task.check else None
        if check is not None and check.ok == (task.cycle == "red"):
            return TaskCommit(check=check, problem=f"`{check.command}` exits {check.exit}:\n{check.output}")
        if check is not None:
            check = attrs.evolve(check, passed_before=task.check in self.passes_before)
        changed = tuple(path for path in paths if self.root is None or (self.root / path).exists())
        if not changed and (task.files or paths):
            return TaskCommit(check=check, problem="nothing has changed")
        existing = {*self.there, *(path for commit in self.commits for path in commit.paths)}
        commit = Commit(
            task=task.number,
            subject=subject,
            paths=changed,
            created=tuple(path for path in changed if path not in existing),
            at=self.clock() if self.clock else None,
            note=note,
            check=check,
        )
        self.commits.append(commit)
        return commit.as_task_commit()

    async def defer_task(self, task: Task, reason: str, paths: Sequence[str] = ()) -> DeferredTask:
        """Record the task as deferred; nothing is taken back."""
        known = next((one for one in self.deferred if one.task == task.number), None)
        if known is None:
            known = DeferredTask(task=task.number, name=task.name, reason=reason)
            self.deferred.append(known)
        return known

    async def check(self, command: str) -> CheckResult:
        """Return the scripted result of the command."""
        self.commands.append(command)
        if callable(self.checks):
            return self.checks(command)
        exits = self.checks.get(command, (0,))
        exit_code = exits[min(self.commands.count(command), len(exits)) - 1]
        return CheckResult(command=command, exit=exit_code, output="" if exit_code == 0 else "it failed")

    async def run_command(self, command: str) -> CheckResult:
        """Return the scripted result of the command, and record it in the conversation under way."""
        result = await self.check(command)
        self._uses.append(ToolRecord(tool="run_command", target=command, exit=result.exit))
        return result


def _as_answer(question: Question, reply: str, by: str = "") -> Answer:
    """Return *reply* as an answer: the option with that label, else free text."""
    if reply in {option.label for option in question.options}:
        return Answer(question=question.id, chosen=(reply,), by=by)
    return Answer(question=question.id, text=reply, by=by)


def _deny_unconfirmed(use: ToolUse, reason: str) -> Permission:
    return Deny(reason=f"no human is available to confirm: {reason}")


def _recommend(question: Question) -> Answer:
    if not question.options:
        return Answer(question=question.id, text="yes", by="test")
    return Answer(question=question.id, chosen=(_recommended_label(question),), by="test")


def _reply(function: str, arguments: Mapping[str, Any]) -> str:
    # Executors' agents read this text: it is the reply of the core to a task that it has committed.
    return f"Task {arguments['task']} is committed (abc1234)." if function == "task_done" else "ok"


def _recommended_label(question: Question) -> str:
    return min(question.options, key=lambda option: not option.recommended).label


@attrs.define(kw_only=True)
class FakeAgentHost:
    """A :class:`gsd_core.AgentHost` in memory.

    *policy* decides about tools (by default everything is allowed), *confirms* is the human who is asked
    about a tool (denies), *answers* the human who is asked a question (picks the recommended option, else
    the first, else says ``yes``), and *replies* stands for the task's functions. Afterwards, look at
    *uses*, *confirmed*, *questions*, *calls*, *activities*, *usages* and *pids*.
    """

    policy: Callable[[ToolUse], Permission] = lambda _: Allow()
    confirms: Callable[[ToolUse, str], Permission] = _deny_unconfirmed
    answers: Callable[[Question], Answer] = _recommend
    replies: Callable[[str, Mapping[str, Any]], str] = _reply
    environment: Mapping[str, str] = attrs.field(
        factory=lambda: {"GSD_RUN": "r-test", "GSD_STEP": "1/execute/01-01"}
    )
    uses: list[ToolUse] = attrs.field(factory=list[ToolUse], init=False)
    confirmed: list[tuple[ToolUse, str]] = attrs.field(factory=list[tuple[ToolUse, str]], init=False)
    questions: list[Question] = attrs.field(factory=list[Question], init=False)
    calls: list[tuple[str, Mapping[str, Any]]] = attrs.field(
        factory=list[tuple[str, Mapping[str, Any]]], init=False
    )
    activities: list[Activity] = attrs.field(factory=list[Activity], init=False)
    usages: list[Usage] = attrs.field(factory=list[Usage], init=False)
    pids: list[int] = attrs.field(factory=list[int], init=False)

    async def permit(self, use: ToolUse) -> Permission:
        """Return what *policy* decides."""
        self.uses.append(use)
        return self.policy(use)

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Return what *confirms* decides."""
        self.confirmed.append((use, reason))
        return self.confirms(use, reason)

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Answer each question."""
        self.questions.extend(questions)
        return [self.answers(question) for question in questions]

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Reply as the task's function would."""
        self.calls.append((function, arguments))
        return self.replies(function, arguments)

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """Record the activity and the usage of the turn."""
        self.activities.append(activity)
        if usage is not None:
            self.usages.append(usage)

    async def confine(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """Return the same command: nothing is confined here."""
        return SandboxedCommand(command=tuple(command), environment=environment)

    def started(self, pid: int) -> None:
        """Record the process."""
        self.pids.append(pid)


@attrs.define(eq=False)
class ScriptedHuman:
    """A plugin that answers a question by the first key found in its text, header or id.

    The value is the label of an option, several labels, or free text. Questions without a key are left
    open; *asked* has all questions, in order.
    """

    answers: Mapping[str, str | Sequence[str]]
    asked: list[Question] = attrs.field(init=False, factory=list[Question])

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Answer the questions that have a key."""
        self.asked.extend(inquiry.questions)
        answers = [self._answer(question) for question in inquiry.questions]
        return [answer for answer in answers if answer is not None] or None

    def _answer(self, question: Question) -> Answer | None:
        texts = (question.text, question.header, question.id)
        for key, reply in self.answers.items():
            if any(key in text for text in texts):
                if not isinstance(reply, str):
                    return Answer(question=question.id, chosen=tuple(reply), by="script")
                return _as_answer(question, reply, by="script")
        return None


@attrs.define(eq=False)
class RecordingNotifier:
    """A plugin that records every notification, in order."""

    notices: list[Notice] = attrs.field(init=False, factory=list[Notice])

    @implements(gsd_notify)
    async def notify(self, notice: Notice) -> None:
        """Record the notification."""
        self.notices.append(notice)


@attrs.define(eq=False)
class FakeClock:
    """A clock that moves only by :meth:`advance` and :meth:`sleep`.

    Pass ``clock.now``, ``clock.monotonic`` and ``clock.sleep`` in place of the real functions. *slept* has
    the seconds of each sleep, in order.
    """

    start: datetime = datetime(2030, 1, 1, tzinfo=UTC)
    passed: timedelta = timedelta()
    slept: list[float] = attrs.field(init=False, factory=list[float])

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return self.start + self.passed

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.passed.total_seconds()

    def advance(self, by: timedelta) -> None:
        """Move the clock forward."""
        self.passed += by

    async def sleep(self, seconds: float) -> None:
        """Move the clock forward without waiting, and give other tasks a turn."""
        self.slept.append(seconds)
        self.advance(timedelta(seconds=seconds))
        await asyncio.sleep(0)
