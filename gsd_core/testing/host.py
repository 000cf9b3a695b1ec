"""A step host in memory: scripted agents, scripted people, no processes, no git, no journal.

It keeps the promises of :class:`gsd_core.StepHost` that an executor leans on: calls are keyed, and
asked again the answer is the record; complaints go back into the same conversation twice; a task
that is committed stays committed. So a step can be run, broken off and run again on one host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from attrs import define, evolve, field, frozen

from gsd_core.errors import Permanent
from gsd_core.model.agent import AgentResult, AgentTask
from gsd_core.model.checks import CheckResult
from gsd_core.model.ids import question_id
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.model.step import Accept, Effect, Functions, TaskCommit
from gsd_core.planning.model import Task

MAX_COMPLAINTS = 2


@frozen(kw_only=True)
class Turn:
    """One turn of a scripted agent: its *task*, and what was wrong with its last answer."""

    key: str
    task: AgentTask
    complaints: tuple[str, ...] = ()
    functions: Functions = field(factory=dict[str, Callable[[Mapping[str, Any]], Awaitable[str]]])

    async def call(self, function: str, /, **arguments: object) -> str:
        """Call one of the task's functions, as the model would."""
        if function not in {known.name for known in self.task.functions}:
            raise AssertionError(f"the task {self.key!r} has no function {function!r}")
        return await self.functions[function](arguments)


class Script(Protocol):
    """A scripted agent: returns its value (or an ``AgentResult``) for a turn, now or awaited."""

    def __call__(self, turn: Turn, /) -> Any: ...


class Parked(Exception):
    """A question that nobody answers; the step would be parked and entered again later."""


Agent: TypeAlias = Script | Mapping[str, Any]
"""A script, or by key: a script, a value, or a list of them, one for each turn (the last again)."""

Answers: TypeAlias = Callable[[Question], "Answer | str | None"] | Sequence[str] | Mapping[str, str]
"""A function, or answers in the order of the questions, or by a part of the question's text."""

Checks: TypeAlias = Callable[[str], CheckResult] | Mapping[str, Sequence[int]]
"""A function, or exit codes for each run of a command, the last again; what is not there passes."""


@frozen(kw_only=True)
class Commit:
    """A task that was committed."""

    task: int
    subject: str
    paths: tuple[str, ...]
    created: tuple[str, ...] = ()
    at: datetime | None = None


@define(kw_only=True)
class FakeHost:
    """A :class:`gsd_core.StepHost`; look at *tasks*, *inquiries*, *commits*, *commands* afterwards.

    *agent* plays the model, *answers* the human (without them the recommended option, never for a
    human action), *checks* the commands. With *root*, a path that is not under it cannot be
    committed, as in a tree where nothing changed. A path is new in the first commit that has it,
    unless it is *there* before; *clock* says when commits are made.
    """

    agent: Agent = field(factory=dict[str, Any])
    answers: Answers | None = None
    checks: Checks = field(factory=dict[str, Sequence[int]])
    root: Path | None = None
    there: Collection[str] = ()
    clock: Callable[[], datetime] | None = None
    run: str = "r-test"
    tasks: list[tuple[str, AgentTask]] = field(factory=list[tuple[str, AgentTask]], init=False)
    complaints: list[tuple[str, ...]] = field(factory=list[tuple[str, ...]], init=False)
    inquiries: list[Inquiry] = field(factory=list[Inquiry], init=False)
    commits: list[Commit] = field(factory=list[Commit], init=False)
    commands: list[str] = field(factory=list[str], init=False)
    effects: list[Effect] = field(factory=list[Effect], init=False)
    _results: dict[str, AgentResult] = field(factory=dict[str, AgentResult], init=False)
    _answered: dict[str, Answer] = field(factory=dict[str, Answer], init=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the agent calls that were made, in their order."""
        return tuple(key for key, _ in self.tasks)

    def task(self, key: str) -> AgentTask:
        """Return the task of the first agent call with that key."""
        return next(task for known, task in self.tasks if known == key)

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """Have the scripted agent take turns until there are no complaints, at most three."""
        if key in self._results:
            return self._results[key]
        self.tasks.append((key, task))
        complaints: tuple[str, ...] = ()
        for number in range(MAX_COMPLAINTS + 1):
            turn = Turn(key=key, task=task, complaints=complaints, functions=functions or {})
            result = await self._play(turn, number)
            complaints = tuple(accept(result)) if accept else ()
            if not complaints:
                self._results[key] = result
                return result
            self.complaints.append(complaints)
        raise Permanent(f"the answer of {key!r} was rejected: {'; '.join(complaints)}")

    async def _play(self, turn: Turn, number: int) -> AgentResult:
        said: Any = _scripted(self.agent, turn.key, number)
        said = said(turn) if callable(said) else said
        said = await said if isawaitable(said) else said
        result = said if isinstance(said, AgentResult) else AgentResult(value=said)
        return evolve(result, conversation=result.conversation or _conversation(turn))

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """Have the scripted human answer; what was answered before is not asked again."""
        stamped = [self._stamped(question, inquiry) for question in inquiry.questions]
        if any(question.id not in self._answered for question in stamped):
            self.inquiries.append(evolve(inquiry, questions=tuple(stamped)))
        for question in stamped:
            if question.id not in self._answered:
                self._answered[question.id] = self._answer(question)
        return [self._answered[question.id] for question in stamped]

    def _stamped(self, question: Question, inquiry: Inquiry) -> Question:
        options = [option.label for option in question.options]
        return evolve(question, id=question_id(self.run, inquiry.step, "", question.text, options))

    def _answer(self, question: Question) -> Answer:
        said = self._said(question)
        if said is None:
            raise Parked(question.text)
        if isinstance(said, Answer):
            return evolve(said, question=question.id)
        labels = {option.label for option in question.options}
        if said in labels:
            return Answer(question=question.id, chosen=(said,))
        return Answer(question=question.id, text=said)

    def _said(self, question: Question) -> Answer | str | None:
        if callable(self.answers):
            return self.answers(question)
        if isinstance(self.answers, Mapping):
            by_text = self.answers
            return next((by_text[part] for part in by_text if part in question.text), None)
        if self.answers is not None:
            return self.answers[len(self._answered)] if len(self._answered) < len(self.answers) else None
        return _recommended(question)

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str]) -> TaskCommit:
        """Run the task's check and note the commit; a task that is committed returns its commit."""
        if known := next((commit for commit in self.commits if commit.task == task.number), None):
            return _landed(known)
        check = await self.check(task.check) if task.check else None
        if check is not None and not check.ok:
            return TaskCommit(check=check, problem=f"`{check.command}` exits {check.exit}:\n{check.output}")
        changed = tuple(path for path in paths if self.root is None or (self.root / path).exists())
        if not changed:
            return TaskCommit(check=check, problem="nothing has changed")
        self.commits.append(self._commit(task, subject, changed))
        return evolve(_landed(self.commits[-1]), check=check)

    def _commit(self, task: Task, subject: str, paths: tuple[str, ...]) -> Commit:
        known = {*self.there, *(path for commit in self.commits for path in commit.paths)}
        created = tuple(path for path in paths if path not in known)
        at = self.clock() if self.clock else None
        return Commit(task=task.number, subject=subject, paths=paths, created=created, at=at)

    async def check(self, command: str) -> CheckResult:
        """Return what the scripted command does."""
        self.commands.append(command)
        if callable(self.checks):
            return self.checks(command)
        exits = self.checks.get(command, (0,))
        exit_code = exits[min(self.commands.count(command), len(exits)) - 1]
        return CheckResult(command=command, exit=exit_code, output="" if exit_code == 0 else "it failed")

    async def declare(self, effect: Effect) -> None:
        """Note the effect."""
        self.effects.append(effect)


def _scripted(agent: Agent, key: str, number: int) -> Any:
    if not isinstance(agent, Mapping):
        return agent
    if key not in agent:
        raise AssertionError(f"no agent is scripted for {key!r}; scripted: {', '.join(agent) or 'none'}")
    said: Any = agent[key]
    if not isinstance(said, list):
        return said
    turns = cast("Sequence[Any]", said)
    return turns[min(number, len(turns) - 1)]


def _conversation(turn: Turn) -> str:
    return turn.task.conversation.id if turn.task.conversation else f"conversation-{turn.key}"


def _recommended(question: Question) -> str | None:
    if question.human_only:
        return None
    ordered = sorted(question.options, key=lambda option: not option.recommended)
    return ordered[0].label if ordered else None


def _landed(commit: Commit) -> TaskCommit:
    digest = hashlib.sha256(f"{commit.task} {commit.subject}".encode()).hexdigest()
    return TaskCommit(commit=digest[:40], paths=commit.paths, created=commit.created, at=commit.at)
