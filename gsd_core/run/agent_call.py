"""One agent call: a conversation with an agent until its answer is valid.

A call is durable, and identified by its key within the step. Each exchange is recorded as
``agent.opened`` before the agent is asked and as ``agent.closed``, with its cost and its answer, before
the answer is used. Agents are slow and cost money: when a step runs again after a crash, a call whose answer
is in the journal returns it without asking, and one that was interrupted resumes its conversation.

The answer is checked by the schema and by the executor's ``accept``. Complaints go back into the
conversation; if they do not help, one new conversation is tried, because an agent rarely abandons a wrong
approach on its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from contextvars import ContextVar
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import attrs

from gsd_core.codec import structure, unstructure
from gsd_core.errors import ConfigError, Exhausted, Permanent, PluginError, Postponed, RejectedAnswer
from gsd_core.hookspecs import gsd_check_budget, gsd_run_agent
from gsd_core.machine.facts import (
    PROMPT,
    AgentActivity,
    AgentClosed,
    AgentOpened,
    AgentProcess,
    AgentUsed,
)
from gsd_core.model.agent import (
    Activity,
    AgentResult,
    AgentTask,
    Allow,
    Conversation,
    Permission,
    ToolRecord,
    ToolUse,
)
from gsd_core.model.checks import CheckResult
from gsd_core.model.counts import counted, dollars_text
from gsd_core.model.question import Answer, Inquiry, Option, Question
from gsd_core.model.sandbox import Place, SandboxedCommand
from gsd_core.model.usage import Cap, Pause, Postpone, Spend, Stop, Usage
from gsd_core.plugins.isolation import in_core
from gsd_core.plugins.validation import validate_storable
from gsd_core.processes import end_marked, start_time
from gsd_core.sanitize import clip, redact, safe_data, safe_text

from .callbacks import Callbacks
from .guard import check_seal, found_before, guarded, record_confinement
from .overlay import overlaid
from .permission import POLICY_LIMIT, StepGate
from .questions import answered, ask
from .runtime import Run
from .sandbox import Confinement
from .timeouts import AgentTimeouts

T = TypeVar("T")
N = TypeVar("N", int, Decimal)

MAX_COMPLAINTS = 2
CALL_MARK = "GSD_CALL"
"""The variable that the processes of one call have, so that those it leaves behind end with it."""
EVIDENCE_TOOLS: Mapping[str, tuple[str, ...]] = {
    "Read": ("file_path",),
    "Grep": ("path",),
    "Glob": ("path",),
    "Bash": ("command",),
    "WebFetch": ("url",),
}
"""The tools whose use is recorded, with the arguments that name their target."""
PARTS_OF_GREP = frozenset({"glob", "type", "head_limit", "offset"})
"""With one of these, a search shows only some of what its pattern matches."""
MAX_CASES = 200
"""Test cases of a command that are recorded."""
LINES_OF_READ = 2000
"""How many lines Claude Code's tool Read shows unless it is told a number."""
MAX_ACTIVITY_LENGTH = 400
_BUDGET_HINT = "raise the limit and resume"


@attrs.define(kw_only=True)
class AgentCall:
    """The state of one call; also the agent's host (:class:`gsd_core.AgentHost`).

    *timeouts* and *used* are those of the current exchange, *tools* those used in the whole conversation.
    *is_counted*: since the run began to stop, the agent has said what its last turn used.
    *notes* are what the guard has to tell the agent.
    *failure* is set by a host method that failed. *may_have_processes*: the agent asked for the environment
    that its processes get. *inside* is what the processes of the current *exchange* may see, once one was
    started.
    """

    run: Run
    step: str
    attempt: int
    key: str
    task: AgentTask
    gate: StepGate
    callbacks: Callbacks
    timeouts: AgentTimeouts = attrs.field(init=False)
    used: Usage = attrs.field(factory=Usage, init=False)
    is_counted: bool = attrs.field(default=False, init=False)
    tools: list[ToolRecord] = attrs.field(factory=list[ToolRecord], init=False)
    notes: list[str] = attrs.field(factory=list[str], init=False)
    may_have_processes: bool = attrs.field(default=False, init=False)
    inside: Confinement | None = attrs.field(default=None, init=False)
    exchange: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False)
    entering: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    failure: asyncio.Future[Exception] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future(), init=False
    )

    async def permit(self, use: ToolUse) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        return await self._decided(use, self.gate.permit)

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        return await self._decided(use, lambda known: self.gate.confirm(known, reason))

    async def _decided(self, use: ToolUse, decide: Callable[[ToolUse], Awaitable[Permission]]) -> Permission:
        use = attrs.evolve(use, confined=self.is_confined, owns_planning=self.task.owns_planning)
        permission = await self._while_agent_waits(decide(use), ends_turn=self.is_counted)
        if isinstance(permission, Allow):
            self.record_tool(use)
        return permission

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """See :class:`gsd_core.AgentHost`."""
        inquiry = Inquiry(questions=tuple(questions), reason=f"the agent of {self.step} asks")
        return await self._while_agent_waits(
            ask(self.run, inquiry, step=self.step, key=self.key, agent_waits=True), ends_turn=True
        )

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """See :class:`gsd_core.AgentHost`."""
        token = _in_function_of.set(self)
        try:
            return await self._while_agent_waits(self._call(function, arguments), ends_turn=True)
        finally:
            # Another context, if the coroutine is closed without having finished.
            with suppress(ValueError):
                _in_function_of.reset(token)

    async def _call(self, function: str, arguments: Mapping[str, Any]) -> str:
        await self.run.turns.begin()
        # Before the call, so that an agent that committed its work itself can still have it accepted.
        notes = await check_seal(self.run, step=self.step, attempt=self.attempt)
        reply = await self.callbacks.call(self.task, function, arguments)
        return "\n\n".join([*(f"Note: {note}." for note in notes), reply])

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """See :class:`gsd_core.AgentHost`."""
        with in_core():
            self.timeouts.beat()
            text = clip(safe_text(activity.text), MAX_ACTIVITY_LENGTH)
            if usage is not None:
                self.used = self.used + usage
            note = AgentActivity(key=self.key, kind=activity.kind, tool=activity.tool, text=text, usage=usage)
            self.run.note(note, step=self.step, attempt=self.attempt)
        if usage is not None:
            self.is_counted = self.run.turns.leaving
            # It may have been the last turn: then the answer comes next.
            budget = check_budget(self.run, self.step, key=self.key)
            await self._while_agent_waits(budget, ends_turn=False)

    async def confine(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """See :class:`gsd_core.AgentHost`."""
        inside = await self._while_agent_waits(self._entered(), ends_turn=False)
        started = inside.command(command, environment, places=places, descriptors=descriptors)
        return await self._while_agent_waits(started, ends_turn=False)

    async def _entered(self) -> Confinement:
        """Return what the processes may see; it is made for the first one, because some agents start none."""
        async with self.entering:
            if self.inside is None:
                around = self.run.sandbox.around(
                    self.task.tree, writable=self.task.writable, owns_planning=self.task.owns_planning
                )
                self.inside = await self.exchange.enter_async_context(around)
                record_confinement(self.run, step=self.step, attempt=self.attempt)
            return self.inside

    @property
    def is_confined(self) -> bool:
        """Whether the agent's processes are in a sandbox: one that started none that way is not."""
        return self.inside is not None and bool(self.run.sandbox.name)

    def started(self, pid: int) -> None:
        """See :class:`gsd_core.AgentHost`."""
        process = AgentProcess(key=self.key, pid=pid, start=start_time(pid))
        self.run.record(process, step=self.step, attempt=self.attempt)

    @property
    def environment(self) -> Mapping[str, str]:
        """See :class:`gsd_core.AgentHost`."""
        self.may_have_processes = True
        return {"GSD_RUN": self.run.mark, "GSD_STEP": self.step, CALL_MARK: self.mark}

    @property
    def mark(self) -> str:
        """The value that identifies the processes of this call."""
        return f"{self.run.mark} {self.step} {self.key}"

    def record_tool(self, use: ToolUse) -> None:
        """Remember that the agent may use a tool now, if that can count as evidence."""
        names = EVIDENCE_TOOLS.get(use.name)
        if names is None:
            return
        target = next((value for name in names if isinstance(value := use.input.get(name), str)), "")
        pattern = use.input.get("pattern") if use.name == "Grep" else ""
        if use.name not in ("Bash", "WebFetch"):
            # Relative to the tree if it is in it.
            full = Path(os.path.normpath(use.tree / Path(target or ".").expanduser()))
            target = (full.relative_to(use.tree) if full.is_relative_to(use.tree) else full).as_posix()
        self.record_use(
            ToolRecord(
                tool=use.name,
                target=target,
                pattern=pattern if isinstance(pattern, str) else "",
                shown=_shown(use),
            )
        )

    def record_use(self, use: ToolRecord) -> None:
        """Remember a use of a tool; in a read-only task, where it is evidence, as a separate fact.

        Otherwise a crash would lose what the agent has seen in this exchange, although its conversation,
        which is resumed, still contains it.
        """
        # As the answers are, which cite them.
        target, pattern = (redact(text, strict=True) for text in (use.target, use.pattern))
        use = attrs.evolve(use, target=target, pattern=pattern)
        if use in self.tools:
            return
        self.tools.append(use)
        if not self.task.writable:
            self.run.record(AgentUsed(key=self.key, use=use), step=self.step, attempt=self.attempt)

    async def _while_agent_waits(self, work: Awaitable[T], *, ends_turn: bool) -> T:
        """Return the result of *work* with the timeouts paused; its failure ends the whole call.

        *ends_turn*: if the run is leaving, this does not return, so that the agent begins no other turn.

        Raising the failure into the agent is not enough: an agent's library may turn an exception in a tool
        into a message for the model, which then continues.
        """
        with in_core(), self.timeouts.paused():
            try:
                result = await work
                if ends_turn:
                    await self.run.turns.begin()
                return result
            except Exception as exc:
                if not self.failure.done():
                    self.failure.set_result(exc)
                await asyncio.Event().wait()
                raise AssertionError("the agent's task is cancelled here") from exc


def _shown(use: ToolUse) -> tuple[int, int] | None:
    """Return the lines that a tool shows, as in ``ToolRecord.shown``."""

    def number(*names: str, otherwise: int) -> int:
        found = (use.input.get(name) for name in names)
        return next((max(0, one) for one in found if isinstance(one, int)), otherwise)

    match use.name:
        case "Read":
            first = max(1, number("offset", otherwise=1))
            return first, first + number("limit", otherwise=LINES_OF_READ) - 1
        case "Grep" if use.input.get("output_mode") == "content" and not PARTS_OF_GREP & {*use.input}:
            around = number("-C", "context", otherwise=0)
            return number("-B", otherwise=around), number("-A", otherwise=around)
        case _:
            return None


_in_function_of: ContextVar[AgentCall | None] = ContextVar("in_function_of", default=None)
"""The agent call whose function is running in this context, if any."""


def record_command(result: CheckResult) -> None:
    """Record a command that the core ran in the conversation of the agent that asked for it, if any."""
    if call := _in_function_of.get():
        # Those that prove something first.
        cases = sorted(result.cases, key=lambda case: case.passes_without is True)
        passed = tuple(case.name for case in cases if case.outcome == "passed")[:MAX_CASES]
        call.record_use(
            ToolRecord(
                tool="run_command",
                target=result.command,
                exit=result.exit,
                cases=passed,
                passes_without=result.passes_without,
                flaw=result.flaw,
            )
        )


async def run_agent(call: AgentCall) -> AgentResult:
    """Return a valid answer: the recorded one, or that of a conversation with at most two complaints."""
    complaints: Sequence[str] = ()
    value: Any = None
    # Not those before the step's last failure: a step that is retried starts from scratch.
    base = call.run.step(call.step).base
    facts = call.run.facts(AgentOpened, AgentClosed, step=call.step, after=base)
    exchanges: Iterator[Any] = (fact.data for fact in facts)
    recorded: list[AgentOpened | AgentClosed] = [one for one in exchanges if one.key == call.key]
    known = _last_answer(recorded)
    told = False
    # Counted in the journal: a judge that complains only so often has to take the same answer again.
    given = sum(isinstance(each, AgentClosed) and bool(each.value) for each in recorded)
    sent_back = given - (known is not None)
    for conversation in _conversations(call, recorded):
        task = attrs.evolve(call.task, conversation=conversation, run=call.run.id)
        task = attrs.evolve(task, prompt=_with_answers(call, task))
        call.tools = _recorded_tools(call, conversation)
        for _ in range(1 + MAX_COMPLAINTS):
            result, known = known or await _exchange(call, task), None
            result, sent_back = attrs.evolve(result, sent_back=sent_back), sent_back + 1
            # Once for each call: the change is undone, and must not be held against the next answer.
            notes, told = (() if told else tuple(call.notes)), told or bool(call.notes)
            call.notes.clear()
            complaints = (*notes, *call.callbacks.complaints(task, result))
            if not complaints:
                return result
            value = result.value
            listed = "\n".join(f"- {complaint}" for complaint in complaints)
            prompt = f"Your answer cannot be used yet:\n{listed}\nFix this and answer again, in full."
            task = attrs.evolve(task, prompt=prompt, conversation=attrs.evolve(conversation, resume=True))
    raise RejectedAnswer(f"the agent's answer is still invalid: {'; '.join(complaints)}", value)


def _last_answer(recorded: Sequence[AgentOpened | AgentClosed]) -> AgentResult | None:
    """Return the last answer in the conversation that was opened last; ``None`` if there is none.

    If the agent was asked again there without an answer, it was for complaints: they are made again.
    """
    asked, answer = "", None
    for one in recorded:
        match one:
            case AgentOpened(conversation=conversation):
                if (now := conversation.id if conversation else "") != asked:
                    asked, answer = now, None
            case AgentClosed(value=value) if value:
                answer = value
            case _:
                pass
    return structure(answer, AgentResult) if answer else None


def _recorded_tools(call: AgentCall, conversation: Conversation) -> list[ToolRecord]:
    """Return the tools that were used in *conversation* so far, in this process or an earlier one."""
    # By conversation, not by key: a revision continues the conversation of another key.
    base = call.run.step(call.step).base
    found: dict[ToolRecord, None] = {}
    open_in: dict[str, str] = {}
    for fact in call.run.facts(AgentOpened, AgentUsed, AgentClosed, step=call.step, after=base):
        match fact.data:
            case AgentOpened(key=key, conversation=Conversation(id=id_)):
                open_in[key] = id_
            case AgentUsed(key=key, use=use) if open_in.get(key) == conversation.id:
                found[use] = None
            case AgentClosed(key=key, value=value) if value and open_in.get(key) == conversation.id:
                found |= dict.fromkeys(structure(value, AgentResult).uses)
            case _:
                pass
    return list(found)


def _conversations(call: AgentCall, recorded: Sequence[AgentOpened | AgentClosed]) -> Iterator[Conversation]:
    """Yield the conversation to use (given, interrupted or new), then a second, new one.

    There is only one if the executor chose the conversation: a new one would not contain what the prompt
    refers to.
    """
    if call.task.conversation is not None:
        yield call.task.conversation
        return
    opened = [each.conversation for each in recorded if isinstance(each, AgentOpened)]
    if opened and opened[-1]:
        yield attrs.evolve(opened[-1], resume=True)
    else:
        yield _new_conversation(call.task)
    yield _new_conversation(call.task)


def _new_conversation(task: AgentTask) -> Conversation:
    return Conversation(id=str(uuid.uuid4()), cwd=str(task.tree))


def _with_answers(call: AgentCall, task: AgentTask) -> str:
    """Return the prompt; before it what was undone earlier, and in a resumed conversation a human's answers.

    The agent's process was ended while the human was asked, so the agent has not seen them.
    """
    prompt = task.prompt
    if undone := found_before(call.run, call.step):
        listed = "\n".join(f"- {text}" for text in undone)
        prompt = (
            "In an earlier attempt at this, the following was changed, which only the run may do. It was "
            f"undone; do not do it again, and let no script or test do it:\n{listed}\n\n{prompt}"
        )
    if task.conversation is None or not task.conversation.resume:
        return prompt
    asked = [
        (question, record.answers[question.id])
        for record in call.run.state.inquiries.values()
        if record.inquiry.step == call.step and record.key == call.key and not record.withdrawn
        for question in record.inquiry.questions
        if question.id in record.answers
    ]
    # Those of checkpoints too, if a function of the agent may have asked them: it ends with the agent. An
    # executor that chose the conversation passes on the answers itself.
    if task.functions and call.task.conversation is None:
        asked += answered(call.run, call.step)
    if not asked:
        return prompt
    listed = "\n".join(f"- {question.text}\n  Answer: {question.explain(said)}" for question, said in asked)
    return f"Your earlier questions have been answered; follow these answers:\n{listed}\n\n{prompt}"


async def _exchange(call: AgentCall, task: AgentTask) -> AgentResult:
    """Ask the agent once; its cost is recorded however the exchange ends."""
    # One at a time: of calls that begin at once, each would pass before another has reserved anything.
    async with call.run.opening:
        cap = await check_budget(call.run, call.step, limit=task.limits.dollars)
        if any(left is not None and left <= 0 for left in (cap.dollars, cap.turns)):
            raise Exhausted("a budget policy lets the next call spend nothing", hint=_BUDGET_HINT)
        await call.run.turns.begin()
        # The reserve is the task's own limit: with the cap in it, every turn would seem to exceed the budget.
        _record_opened(call, task)
    own = task.limits
    dollars, turns = _lowest((own.dollars, cap.dollars)), _lowest((own.turns, cap.turns))
    limits = attrs.evolve(own, dollars=dollars, turns=turns)
    task = attrs.evolve(task, limits=limits)
    names = " or ".join(map(repr, call.run.settings.agent))
    # New ones for each exchange: an agent that ignores its cancellation may leave a pause behind.
    call.timeouts = AgentTimeouts(idle=task.limits.idle, hard=task.limits.hard, who=f"the agent {names}")
    call.used = Usage()
    call.inside, call.exchange = None, AsyncExitStack()
    closing = ExitStack()
    # In config.json, other values could not be told from an agent's own changes.
    config: Mapping[str, Any] = task.config if task.owns_planning else {}
    try:
        # Recorded as closed only afterwards: an answer that was forged with is never used.
        async with (
            overlaid(call.run, config, step=call.step, attempt=call.attempt),
            call.exchange,
            guarded(
                call.run,
                step=call.step,
                attempt=call.attempt,
                inside=lambda: call.inside,
                owned=call.task.owns_planning,
            ) as notes,
        ):
            try:
                async with call.timeouts.running():
                    with call.run.turns.of(call.timeouts):
                        result = await _ask_agent(call, task)
                        closing.enter_context(call.run.turns.closes())
            finally:
                # Before the guard compares: it could not undo what they do later.
                if call.may_have_processes:
                    await asyncio.to_thread(end_marked, [call.mark], env_name=CALL_MARK)
        call.notes += notes
        # The plugin's own list does not count: only the core knows which tools it permitted.
        result = attrs.evolve(result, uses=tuple(call.tools))
        # What was counted while it worked is spent, whatever an agent says at the end.
        usage = result.usage.at_least(call.used)
    except BaseException as exc:
        _record_closed(call, "lost" if isinstance(exc, asyncio.CancelledError) else "failed", call.used)
        raise
    else:
        _record_closed(call, result.ended, usage, result if result.ended == "done" else None)
    finally:
        closing.close()
    if result.ended in ("turns", "dollars"):
        if getattr(limits, result.ended) != getattr(own, result.ended):
            left = dollars_text(limits.dollars or Decimal(0))
            left = left if result.ended == "dollars" else counted(limits.turns or 0, "turn")
            reason = f"the agent has used up the {left} that were left of the budget"
            raise Exhausted(reason, hint=_BUDGET_HINT)
        raise Permanent(f"the agent used up its {result.ended} before it was done")
    return result


async def _ask_agent(call: AgentCall, task: AgentTask) -> AgentResult:
    """Call the agent plugin, until it returns or a host method fails."""
    names = call.run.settings.agent
    agent = asyncio.ensure_future(call.run.hooks.pick(gsd_run_agent, names, AgentResult, task, call))
    waiting: set[asyncio.Future[Any]] = {agent, call.failure}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if call.failure.done():
            raise call.failure.result()
        outcome = await agent
    finally:
        # In every case the agent has ended when this returns. The hook's grace limits how long that takes.
        agent.cancel()
        await asyncio.wait({agent})
        if not agent.cancelled():
            agent.exception()
    if outcome is None or outcome.value is None:
        message = f"no agent takes the task: {', '.join(names)} declined"
        raise ConfigError(message, hint="'gsd plugins' lists the installed plugins")
    if why := validate_storable(outcome.value, AgentResult):
        # An agent that reports its usage only with the answer has spent it all the same.
        if not validate_storable(outcome.value.usage, Usage):
            call.used = outcome.value.usage.at_least(call.used)
        raise PluginError(outcome.plugin, "gsd_run_agent", why)
    # Once, before anything uses the answer: it goes into planning files, questions and commits.
    return attrs.evolve(outcome.value, value=safe_data(outcome.value.value, strict=True))


async def check_budget(run: Run, step: str, *, key: str = "", limit: Decimal | None = None) -> Cap:
    """Return the most that the next call may spend; raise ``Exhausted`` if the run may not go on.

    Raises ``Postponed`` if the call has to wait. ``Stop`` beats ``Postpone``, and that beats ``Pause``.
    *limit* is the next call's own; after a turn, *key* is that of its call. A policy that fails stops the
    run: spending cannot be undone.
    """
    spend = _spend(run, step, key=key, limit=limit)
    if not key:
        spend = attrs.evolve(spend, agents=run.settings.agent)
    outcomes = await run.hooks.fan_out(gsd_check_budget, POLICY_LIMIT, spend)
    for outcome in outcomes:
        if outcome.error is not None:
            raise Exhausted(f"the budget policy {outcome.plugin!r} failed: {outcome.error}")
        if isinstance(outcome.value, Stop):
            raise Exhausted(outcome.value.reason, hint=outcome.value.hint or _BUDGET_HINT)
    waits = [outcome.value for outcome in outcomes if isinstance(outcome.value, Postpone) and not key]
    if waits:
        last = max(waits, key=lambda wait: wait.until)
        raise Postponed(last.reason, last.until)
    for outcome in outcomes:
        if isinstance(outcome.value, Pause):
            reason = outcome.value.reason
            options = (Option(label="Stop", recommended=True), Option(label="Continue"))
            text = f"{reason}. Continue spending?"
            question = Question(text=text, header="Budget", options=options, free_text=False)
            inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
            # The number of calls is part of the key: each pause is a new question.
            [answer] = await ask(run, inquiry, step=step, key=f"budget {spend.calls}")
            if answer.chosen != ("Continue",):
                raise Exhausted(reason, hint=_BUDGET_HINT)
    caps = [outcome.value for outcome in outcomes if isinstance(outcome.value, Cap)]
    return Cap(dollars=_lowest(cap.dollars for cap in caps), turns=_lowest(cap.turns for cap in caps))


def _spend(run: Run, step: str, **about: Any) -> Spend:
    return run.ledger.spend(run.id, step, lambda scope: run.everywhere.used(scope, step), **about)


async def agents_cap(run: Run, step: str, *, working: int, wanted: int) -> Cap:
    """Return how many agents may execute plans, of so many *wanted*; *step* is one of those in question.

    A policy that fails allows no more than there are.
    """
    spend = attrs.evolve(_spend(run, step), working=working, wanted=wanted)
    caps = [Cap(agents=wanted)]
    for outcome in await run.hooks.fan_out(gsd_check_budget, POLICY_LIMIT, spend):
        if outcome.error is not None:
            why = f"the budget policy {outcome.plugin!r}, which failed: {outcome.error}"
            caps.append(Cap(agents=working, reason=why))
        elif isinstance(outcome.value, Cap):
            caps.append(outcome.value)
    return min(caps, key=lambda cap: wanted if cap.agents is None else cap.agents)


def _lowest(limits: Iterable[N | None]) -> N | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _record_opened(call: AgentCall, task: AgentTask) -> None:
    opened = AgentOpened(
        key=call.key,
        conversation=task.conversation,
        model=task.model,
        role=task.role,
        prompt_sha256=hashlib.sha256(task.prompt.encode("utf-8", "replace")).hexdigest(),
        reserved=task.limits.dollars or None,
        owns_planning=task.owns_planning or None,
    )
    call.run.record(opened, step=call.step, attempt=call.attempt)
    resumed = task.conversation is not None and task.conversation.resume
    parts = {"Prompt": task.prompt}
    if not resumed:
        functions = (f"{one.name}: {one.description}" for one in task.functions)
        answer = json.dumps(task.schema) if task.schema else ""
        parts = {"System": task.system, **parts, "Functions": "\n\n".join(functions), "Answer": answer}
    text = "\n\n".join(f"[{name}]\n{part}" for name, part in parts.items() if part)
    note = AgentActivity(key=call.key, kind=PROMPT, tool=task.role, text=text)
    call.run.note(note, step=call.step, attempt=call.attempt)


def _record_closed(call: AgentCall, ended: str, usage: Usage, value: AgentResult | None = None) -> None:
    closed = AgentClosed(key=call.key, ended=ended, usage=usage, value=unstructure(value))
    call.run.record(closed, step=call.step, attempt=call.attempt)
