"""One agent call: opened, watched, settled and closed; asked again it is the record."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, evolve, field

from gsd_core.errors import ConfigError, Permanent, PluginError
from gsd_core.hookspecs import gsd_run_agent
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.model.agent import Activity, AgentResult, AgentTask, Conversation, Permission, ToolUse
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.model.step import Accept, Functions
from gsd_core.model.usage import Usage
from gsd_core.plugins.isolation import in_core
from gsd_core.plugins.validation import validate_storable
from gsd_core.processes import start_time
from gsd_core.sanitize import clip, redact, sanitize

from .budget import check_budget
from .permission import Gate
from .questions import ask_for_a_while
from .runtime import Run
from .timeouts import AgentTimeouts

T = TypeVar("T")

COMPLAINTS = 2
SHOWN = 400


@define(kw_only=True)
class AgentCall:
    """One call of an agent within an attempt; it is the agent's host as well."""

    run: Run
    step: str
    attempt: int
    key: str
    gate: Gate
    functions: Functions
    clocks: AgentTimeouts
    stopped: asyncio.Future[Exception] = field(factory=lambda: asyncio.get_running_loop().create_future())
    turns: Usage = field(factory=Usage)

    async def permit(self, use: ToolUse) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        with in_core(), self.clocks.paused():
            return await self._or_stop(self.gate.permit(use))

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """See :class:`gsd_core.AgentHost`."""
        with in_core(), self.clocks.paused():
            return await self._or_stop(self.gate.confirm(use, reason))

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """See :class:`gsd_core.AgentHost`."""
        inquiry = Inquiry(questions=tuple(questions), reason=f"the agent of {self.step} asks")
        with in_core(), self.clocks.paused():
            return await self._or_stop(ask_for_a_while(self.run, inquiry, step=self.step, occasion=self.key))

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """See :class:`gsd_core.AgentHost`."""
        implementation = self.functions.get(function)
        if implementation is None:
            return f"there is no function {function!r}"
        with in_core(), self.clocks.paused():
            return await self._or_stop(implementation(arguments))

    async def _or_stop(self, work: Awaitable[T]) -> T:
        """Await *work*; what it raises ends the whole call, whatever the agent's library makes of it."""
        try:
            return await work
        except Exception as exc:
            if not self.stopped.done():
                self.stopped.set_result(exc)
            await asyncio.Event().wait()
            raise AssertionError("the call is cancelled here") from exc

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """See :class:`gsd_core.AgentHost`."""
        with in_core():
            self._note(activity, usage)
            if usage is not None:
                await self._or_stop(check_budget(self.run, self.step, None, self.turns))

    def _note(self, activity: Activity, usage: Usage | None) -> None:
        self.clocks.beat()
        text = clip(redact(sanitize(activity.text)), SHOWN)
        data: dict[str, Any] = {"key": self.key, "kind": activity.kind, "tool": activity.tool, "text": text}
        if usage is not None:
            self.turns = self.turns + usage
            data["usage"] = unstructure(usage)
        self.run.note(data, step=self.step, attempt=self.attempt)

    def started(self, pid: int) -> None:
        """See :class:`gsd_core.AgentHost`."""
        data = {"key": self.key, "pid": pid, "start": start_time(pid)}
        self.run.record("agent.process", data, step=self.step, attempt=self.attempt)

    @property
    def environment(self) -> Mapping[str, str]:
        """See :class:`gsd_core.AgentHost`."""
        return {"GSD_RUN": self.run.id, "GSD_STEP": self.step}


async def run_agent(call: AgentCall, task: AgentTask, accept: Accept | None) -> AgentResult:
    """Return an accepted answer: complaints go back twice, then one fresh conversation, then give up.

    An answer that was given before a crash is taken from the record.
    """
    complaints: Sequence[str] = ()
    known = last_answer(call.run, call.step, call.key)
    for conversation in _conversations(call, task):
        current = evolve(task, conversation=conversation, run=call.run.id)
        current = evolve(current, prompt=_with_answers(call, current))
        for _ in range(1 + COMPLAINTS):
            result, known = known or await _once(call, current), None
            complaints = accept(result) if accept else ()
            if not complaints:
                return result
            going_on = evolve(conversation, resume=True)
            current = evolve(current, prompt=_complaint(complaints), conversation=going_on)
    raise Permanent(f"the agent's answer stays invalid: {'; '.join(complaints)}")


def _with_answers(call: AgentCall, task: AgentTask) -> str:
    """Return the prompt, after what was answered while the conversation that is resumed was away."""
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
    return f"What you asked before you were interrupted is answered; go by it:\n{listed}\n\n{task.prompt}"


def _complaint(complaints: Sequence[str]) -> str:
    listed = "\n".join(f"- {complaint}" for complaint in complaints)
    return f"Your answer cannot be used yet:\n{listed}\nMend it and answer again, in full."


def last_answer(run: Run, step: str, key: str) -> AgentResult | None:
    """Return what the agent answered last under *key* in this generation, unless it was asked again."""
    last = next(reversed(_exchanges(run, step, key)), None)
    value = last.data.get("value") if last and last.kind == "agent.closed" else None
    return structure(value, AgentResult) if value else None


def _exchanges(run: Run, step: str, key: str) -> list[Record]:
    base = run.step(step).base
    facts = run.journal.events(after=base, run=run.id, kinds=["agent.opened", "agent.closed"])
    return [fact for fact in facts if fact.step == step and fact.data["key"] == key]


def _conversations(call: AgentCall, task: AgentTask) -> Iterator[Conversation]:
    """Yield the call's conversation: given, resumed after a crash, or new; then a fresh one.

    A task that goes on with a conversation of its own cannot begin afresh.
    """
    if task.conversation is not None:
        yield task.conversation
        return
    opened = [f for f in _exchanges(call.run, call.step, call.key) if f.kind == "agent.opened"]
    if opened:
        yield evolve(structure(opened[-1].data["conversation"], Conversation), resume=True)
    else:
        yield _new_conversation(task)
    yield _new_conversation(task)


def _new_conversation(task: AgentTask) -> Conversation:
    return Conversation(id=str(uuid.uuid4()), cwd=str(task.tree))


async def _once(call: AgentCall, task: AgentTask) -> AgentResult:
    """One exchange with the agent, with its cost recorded however it ends."""
    await check_budget(call.run, call.step, task.limits.dollars)
    _open(call, task)
    call.turns = Usage()
    try:
        async with call.clocks.running():
            result = await _picked(call, task)
    except BaseException as exc:
        ended = "lost" if isinstance(exc, asyncio.CancelledError) else "failed"
        _close(call, ended, call.turns)
        raise
    usage = result.usage if result.usage.turns else call.turns
    _close(call, result.ended, usage, result if result.ended == "done" else None)
    if result.ended in ("turns", "dollars"):
        raise Permanent(f"the agent used up its {result.ended} before it was done")
    return result


async def _picked(call: AgentCall, task: AgentTask) -> AgentResult:
    names = call.run.settings.agent
    work = asyncio.ensure_future(call.run.hooks.pick(gsd_run_agent, names, AgentResult, task, call))
    waiting: set[asyncio.Future[Any]] = {work, call.stopped}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if call.stopped.done():
            raise call.stopped.result()
        outcome = await work
    finally:
        await _ended(work)
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no agent takes the task: {', '.join(names)} declined", hint="see gsd plugins")
    if why := validate_storable(outcome.value, AgentResult):
        raise PluginError(outcome.plugin, "gsd_run_agent", why)
    return outcome.value


async def _ended(work: asyncio.Future[Any]) -> None:
    """Have the agent end, however we leave; the plugins' border bounds how long that takes."""
    work.cancel()
    await asyncio.wait({work})
    if not work.cancelled():
        work.exception()


def _open(call: AgentCall, task: AgentTask) -> None:
    digest = hashlib.sha256(task.prompt.encode("utf-8", "replace")).hexdigest()
    reserved = task.limits.dollars
    data = {
        "key": call.key,
        "conversation": unstructure(task.conversation),
        "model": task.model,
        "role": task.role,
        "prompt_sha256": digest,
        "reserved": str(reserved) if reserved else None,
    }
    call.run.record("agent.opened", data, step=call.step, attempt=call.attempt)


def _close(call: AgentCall, ended: str, usage: Usage, value: AgentResult | None = None) -> None:
    data = {"key": call.key, "ended": ended, "usage": unstructure(usage)}
    if value is not None:
        data["value"] = unstructure(value)
    call.run.record("agent.closed", data, step=call.step, attempt=call.attempt)
