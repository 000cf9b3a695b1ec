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
import uuid
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import attrs

from gsd_core.errors import ConfigError, Exhausted, Permanent, PluginError, RejectedAnswer
from gsd_core.hookspecs import gsd_check_budget, gsd_run_agent
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.model.agent import Activity, AgentResult, AgentTask, Conversation, Permission, ToolUse
from gsd_core.model.question import Answer, Inquiry, Option, Question
from gsd_core.model.usage import Pause, Stop, Usage
from gsd_core.plugins.isolation import in_core
from gsd_core.plugins.validation import validate_storable
from gsd_core.processes import start_time
from gsd_core.sanitize import clip, redact, sanitize

from .callbacks import Callbacks
from .permission import POLICY_LIMIT, StepGate
from .questions import ask
from .runtime import Run
from .timeouts import AgentTimeouts

T = TypeVar("T")

MAX_COMPLAINTS = 2
MAX_ACTIVITY_LENGTH = 400
_BUDGET_HINT = "raise --max-budget-usd and resume"


@attrs.define(kw_only=True)
class AgentCall:
    """The state of one call; also the agent's host (:class:`gsd_core.AgentHost`).

    *timeouts* and *used* are those of the current exchange. *failure* is set by a host method that failed.
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
    failure: asyncio.Future[Exception] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future(), init=False
    )

    async def permit(self, use: ToolUse) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        return await self._while_agent_waits(self.gate.permit(use))

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        return await self._while_agent_waits(self.gate.confirm(use, reason))

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """See :class:`gsd_core.AgentHost`."""
        inquiry = Inquiry(questions=tuple(questions), reason=f"the agent of {self.step} asks")
        return await self._while_agent_waits(
            ask(self.run, inquiry, step=self.step, key=self.key, agent_waits=True)
        )

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """See :class:`gsd_core.AgentHost`."""
        return await self._while_agent_waits(self.callbacks.call(self.task, function, arguments))

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """See :class:`gsd_core.AgentHost`."""
        with in_core():
            self.timeouts.beat()
            text = clip(redact(sanitize(activity.text)), MAX_ACTIVITY_LENGTH)
            data: dict[str, Any] = {
                "key": self.key,
                "kind": activity.kind,
                "tool": activity.tool,
                "text": text,
            }
            if usage is not None:
                self.used = self.used + usage
                data["usage"] = unstructure(usage)
            self.run.note(data, step=self.step, attempt=self.attempt)
        if usage is not None:
            await self._while_agent_waits(_check_budget(self.run, self.step, None, self.used))

    def started(self, pid: int) -> None:
        """See :class:`gsd_core.AgentHost`."""
        data = {"key": self.key, "pid": pid, "start": start_time(pid)}
        self.run.record("agent.process", data, step=self.step, attempt=self.attempt)

    @property
    def environment(self) -> Mapping[str, str]:
        """See :class:`gsd_core.AgentHost`."""
        return {"GSD_RUN": self.run.id, "GSD_STEP": self.step}

    async def _while_agent_waits(self, work: Awaitable[T]) -> T:
        """Return the result of *work* with the timeouts paused; its failure ends the whole call.

        Raising it into the agent is not enough: an agent's library may turn an exception in a tool into a
        message for the model, which then continues.
        """
        with in_core(), self.timeouts.paused():
            try:
                return await work
            except Exception as exc:
                if not self.failure.done():
                    self.failure.set_result(exc)
                await asyncio.Event().wait()
                raise AssertionError("the agent's task is cancelled here") from exc


async def run_agent(call: AgentCall) -> AgentResult:
    """Return a valid answer: the recorded one, or that of a conversation with at most two complaints."""
    complaints: Sequence[str] = ()
    value: Any = None
    known = _recorded_answer(call)
    for conversation in _conversations(call):
        task = attrs.evolve(call.task, conversation=conversation, run=call.run.id)
        task = attrs.evolve(task, prompt=_with_answers(call, task))
        for _ in range(1 + MAX_COMPLAINTS):
            result, known = known or await _exchange(call, task), None
            complaints = call.callbacks.complaints(task, result)
            if not complaints:
                return result
            value = result.value
            listed = "\n".join(f"- {complaint}" for complaint in complaints)
            prompt = f"Your answer cannot be used yet:\n{listed}\nFix this and answer again, in full."
            task = attrs.evolve(task, prompt=prompt, conversation=attrs.evolve(conversation, resume=True))
    raise RejectedAnswer(f"the agent's answer is still invalid: {'; '.join(complaints)}", value)


def _recorded_answer(call: AgentCall) -> AgentResult | None:
    """Return the last answer under the call's key, unless the agent was asked again after it."""
    last = next(reversed(_recorded_exchanges(call)), None)
    value = last.data.get("value") if last and last.kind == "agent.closed" else None
    return structure(value, AgentResult) if value else None


def _recorded_exchanges(call: AgentCall) -> list[Record]:
    # Not those before the step's last failure: a step that is retried starts from scratch.
    base = call.run.step(call.step).base
    facts = call.run.journal.events(after=base, run=call.run.id, kinds=["agent.opened", "agent.closed"])
    return [fact for fact in facts if fact.step == call.step and fact.data["key"] == call.key]


def _conversations(call: AgentCall) -> Iterator[Conversation]:
    """Yield the conversation to use (given, interrupted or new), then a second, new one.

    There is only one if the executor chose the conversation: a new one would not contain what the prompt
    refers to.
    """
    if call.task.conversation is not None:
        yield call.task.conversation
        return
    opened = [fact for fact in _recorded_exchanges(call) if fact.kind == "agent.opened"]
    if opened:
        yield attrs.evolve(structure(opened[-1].data["conversation"], Conversation), resume=True)
    else:
        yield _new_conversation(call.task)
    yield _new_conversation(call.task)


def _new_conversation(task: AgentTask) -> Conversation:
    return Conversation(id=str(uuid.uuid4()), cwd=str(task.tree))


def _with_answers(call: AgentCall, task: AgentTask) -> str:
    """Return the prompt; that of a resumed conversation begins with the answers to the agent's questions.

    The agent's process was ended while a human was asked, so the agent has not seen them.
    """
    if task.conversation is None or not task.conversation.resume:
        return task.prompt
    answered = [
        f"- {question.text}\n  Answer: {record.answers[question.id].words}"
        for record in call.run.state.inquiries.values()
        if record.inquiry.step == call.step and record.key == call.key and not record.withdrawn
        for question in record.inquiry.questions
        if question.id in record.answers
    ]
    if not answered:
        return task.prompt
    listed = "\n".join(answered)
    return f"Your earlier questions have been answered; follow these answers:\n{listed}\n\n{task.prompt}"


async def _exchange(call: AgentCall, task: AgentTask) -> AgentResult:
    """Ask the agent once; its cost is recorded however the exchange ends."""
    await _check_budget(call.run, call.step, task.limits.dollars)
    _record_opened(call, task)
    names = " or ".join(map(repr, call.run.settings.agent))
    # New ones for each exchange: an agent that ignores its cancellation may leave a pause behind.
    call.timeouts = AgentTimeouts(idle=task.limits.idle, hard=task.limits.hard, who=f"the agent {names}")
    call.used = Usage()
    try:
        async with call.timeouts.running():
            result = await _ask_agent(call, task)
    except BaseException as exc:
        _record_closed(call, "lost" if isinstance(exc, asyncio.CancelledError) else "failed", call.used)
        raise
    usage = result.usage if result.usage.turns else call.used
    _record_closed(call, result.ended, usage, result if result.ended == "done" else None)
    if result.ended in ("turns", "dollars"):
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
        raise ConfigError(
            f"no agent takes the task: {', '.join(names)} declined",
            hint="'gsd plugins' lists the installed plugins",
        )
    if why := validate_storable(outcome.value, AgentResult):
        raise PluginError(outcome.plugin, "gsd_run_agent", why)
    return outcome.value


async def _check_budget(run: Run, step: str, reserve: Decimal | None, running: Usage | None = None) -> None:
    """Return if the run may spend more; raise ``Exhausted`` if not. ``Stop`` beats ``Pause``.

    *reserve* is what the next call may use, *running* is what the call under way has used. A policy that
    fails stops the run: spending cannot be undone.
    """
    spend = run.ledger.spend(run.id, step, reserve, running or Usage())
    outcomes = await run.hooks.fan_out(gsd_check_budget, POLICY_LIMIT, spend)
    for outcome in outcomes:
        if outcome.error is not None:
            raise Exhausted(f"the budget policy {outcome.plugin!r} failed: {outcome.error}")
        if isinstance(outcome.value, Stop):
            raise Exhausted(outcome.value.reason, hint=_BUDGET_HINT)
    for outcome in outcomes:
        if isinstance(outcome.value, Pause):
            reason = outcome.value.reason
            options = (Option(label="Stop", recommended=True), Option(label="Continue"))
            question = Question(
                text=f"{reason}. Continue spending?", header="Budget", options=options, free_text=False
            )
            inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
            # The number of calls is part of the key: each pause is a new question.
            [answer] = await ask(run, inquiry, step=step, key=f"budget {run.ledger.calls}")
            if answer.chosen != ("Continue",):
                raise Exhausted(reason, hint=_BUDGET_HINT)


def _record_opened(call: AgentCall, task: AgentTask) -> None:
    reserved = task.limits.dollars
    data = {
        "key": call.key,
        "conversation": unstructure(task.conversation),
        "model": task.model,
        "role": task.role,
        "prompt_sha256": hashlib.sha256(task.prompt.encode("utf-8", "replace")).hexdigest(),
        "reserved": str(reserved) if reserved else None,
    }
    call.run.record("agent.opened", data, step=call.step, attempt=call.attempt)


def _record_closed(call: AgentCall, ended: str, usage: Usage, value: AgentResult | None = None) -> None:
    data = {"key": call.key, "ended": ended, "usage": unstructure(usage)}
    if value is not None:
        data["value"] = unstructure(value)
    call.run.record("agent.closed", data, step=call.step, attempt=call.attempt)
