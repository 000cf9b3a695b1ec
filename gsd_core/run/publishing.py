"""Publish a run's facts: as events for subscribers, and as notices for people.

The run does not wait for either, except for a bounded time at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, TypeAlias

from attrs import define, evolve, field

from gsd_core.errors import JournalError
from gsd_core.hookspecs import gsd_notify, gsd_on_event
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.machine.state import State, inquiry_key
from gsd_core.model.event import Event, EventName
from gsd_core.model.ids import StepId
from gsd_core.model.notice import Notice
from gsd_core.model.question import Answer, Inquiry
from gsd_core.sanitize import safe_text

from .notifications import notice_of
from .runtime import Run

SEND_LIMIT = timedelta(seconds=10)
STOPPED_LIMIT = timedelta(seconds=3)
"""How long notices may still take after a human stopped the run and waits for the shell to return."""
NOTIFY_AFTER = timedelta(seconds=1)
"""How long a question has to stay open before people are notified of it.

With ``--yes`` a policy answers most questions within milliseconds; nobody has to act on those.
"""

Data: TypeAlias = Mapping[str, Any]


@asynccontextmanager
async def publishing(run: Run) -> AsyncGenerator[Publisher]:
    """Publish what *run* records; on leaving, wait a bounded time for notices that are being sent."""
    async with run.hooks.subscribe(gsd_on_event) as publish:
        publisher = Publisher(run=run, publish=publish)
        run.listeners.append(publisher.publish_fact)
        try:
            yield publisher
        finally:
            await publisher.finish(STOPPED_LIMIT if run.state.closed == "stopped" else SEND_LIMIT)
            run.listeners.remove(publisher.publish_fact)


@define(kw_only=True)
class Publisher:
    """Turns facts into events for subscribers and notices for notifiers."""

    run: Run
    publish: Callable[[Event], None]
    _ending: asyncio.Event = field(factory=asyncio.Event, init=False)
    _sending: set[asyncio.Task[None]] = field(factory=set[asyncio.Task[None]], init=False)

    def publish_fact(self, state: State, fact: Record) -> None:
        """Publish a fact; *state* is the state that it led to."""
        for event in events_of(state, fact):
            self.publish(event)
            if (notice := notice_of(event, self.run.root.name, self.run.request.info.command)) is None:
                continue
            if event.name == "question.asked":
                self._start(self._send_if_open(notice, event.data["key"]))
            else:
                self.send(notice)

    def send(self, notice: Notice) -> None:
        """Send a notice in the background."""
        self._start(self._send(notice))

    async def finish(self, limit: timedelta) -> None:
        """Wait for the notices that are being sent, at most for *limit*; cancel those that take longer."""
        self._ending.set()
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=limit.total_seconds())
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _start(self, sending: Coroutine[Any, Any, None]) -> None:
        # asyncio keeps only weak references to tasks: without the set, one could be collected half-way.
        task = asyncio.get_running_loop().create_task(sending, name="gsd:notify")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send_if_open(self, notice: Notice, inquiry: str) -> None:
        """Send the notice of a question that is still open after a moment, or when the run ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NOTIFY_AFTER.total_seconds()):
                await self._ending.wait()
        if self.run.state.inquiries[inquiry].open:
            await self._send(notice)

    async def _send(self, notice: Notice) -> None:
        # A notice leaves this machine. Its texts come from facts, but also from errors of the core.
        title, body = safe_text(notice.title, multiline=False), safe_text(notice.body)
        notice = evolve(notice, title=title, body=body)
        outcomes = await self.run.hooks.fan_out(gsd_notify, SEND_LIMIT, notice)
        failed = [outcome.plugin for outcome in outcomes if outcome.error]
        ok = [outcome.plugin for outcome in outcomes if not outcome.error]
        if ok or failed:
            data = {"key": notice.key, "ok": ok, "failed": failed}
            # The run itself finds out that its journal cannot be written.
            with suppress(JournalError):
                self.run.record("notice.sent", data, step=notice.step)


def events_of(state: State, fact: Record) -> Iterator[Event]:
    """Yield the public events of a fact; most facts have none. *state* is the state that it led to."""
    for name, data in _translate(state, fact):
        yield Event(seq=fact.seq, name=name, at=fact.at, run=fact.run, step=fact.step, data=data)


def _translate(state: State, fact: Record) -> Iterator[tuple[EventName, Data]]:
    """Yield the name and the data of each public event."""
    data = fact.data
    match fact.kind:
        case "run.started":
            idea: Data = data.get("idea") or {}
            yield "run.started", {"idea": idea.get("name", ""), "sha256": idea.get("sha256", "")}
        case "run.opened":
            yield "run.opened", _picked(data, "pid", "version", "agent", "sandbox", "resumed")
        case "run.closed":
            yield "run.closed", _picked(data, "outcome", "exit", "reason", "notes", "dollars", "commits")
        case "attempt.started":
            yield from _attempt_started(state, fact)
        case "attempt.failed":
            yield "attempt.failed", {"attempt": fact.attempt, **data}
        case "timer.set":
            yield "step.waiting", _picked(data, "until", "why")
        case "step.result":
            yield from _step_result(fact)
        case "step.completed":
            yield from _step_completed(state, fact)
        case "question.asked":
            yield from _question_asked(state, fact)
        case "question.answered":
            yield from _question_answered(state, fact)
        case "question.withdrawn" if data["key"] in state.inquiries:
            asked = state.inquiries[data["key"]].inquiry.questions
            yield "question.withdrawn", {"questions": [question.id for question in asked]}
        case "agent.closed":
            yield "cost.changed", _cost(data["usage"])
        case (
            "step.failed"
            | "step.skipped"
            | "task.committed"
            | "files.kept"
            | "files.left"
            | "agent.activity"
            | "plugin.failed"
            | "recovered"
        ) as name:
            yield name, dict(data)
        case _:
            pass


def _attempt_started(state: State, fact: Record) -> Iterator[tuple[EventName, Data]]:
    number = fact.data["phase"]
    others = [r for key, r in state.steps.items() if r.id.phase == number and key != fact.step]
    if number and not others and fact.attempt == 1:
        yield "phase.started", {"number": number, "name": _phase_name(state, number)}
    about = _picked(fact.data, "kind", "phase", "plan", "round")
    yield "step.started", {**about, "attempt": fact.attempt}


def _step_result(fact: Record) -> Iterator[tuple[EventName, Data]]:
    report: Data = fact.data["result"]["outcome"].get("report") or {}
    gaps: list[Data] = report.get("gaps") or []
    if gaps:
        step = StepId.parse(fact.step)
        keys = ("truth", "reason", "about", "found_by")
        found = [{key: gap.get(key, "") for key in keys} for gap in gaps]
        yield "gap.found", {"phase": step.phase, "round": step.round, "gaps": found}


def _step_completed(state: State, fact: Record) -> Iterator[tuple[EventName, Data]]:
    step = StepId.parse(fact.step)
    about = {"kind": step.kind, "phase": step.phase, "plan": step.detail, "round": step.round}
    yield "step.completed", {**about, **_picked(fact.data, "commit", "subject")}
    if step.kind == "complete":
        yield "phase.completed", {"number": step.phase, "name": _phase_name(state, step.phase)}


def _question_asked(state: State, fact: Record) -> Iterator[tuple[EventName, Data]]:
    inquiry = structure(fact.data["inquiry"], Inquiry)
    yield "question.asked", {"key": inquiry_key(inquiry), "inquiry": fact.data["inquiry"]}
    if inquiry.kind == "escalation":
        yield _escalated(state, fact)


def _escalated(state: State, fact: Record) -> tuple[EventName, Data]:
    number = StepId.parse(fact.step).phase
    phase = state.seen.phase(number) if state.seen else None
    if phase and str(fact.data.get("occasion")).startswith("gaps"):
        return "gap.escalated", {"phase": number, "gaps": list(phase.gaps)}
    record = state.steps.get(fact.step)
    error = unstructure(record.failure) if record and record.failure else None
    return "error.escalated", {"phase": number, "error": error}


def _question_answered(state: State, fact: Record) -> Iterator[tuple[EventName, Data]]:
    answer = structure(fact.data["answer"], Answer)
    fields = {"words": answer.words, "how": answer.how, "by": answer.by, "via": answer.via}
    yield "question.answered", {"question": answer.question, **fields}
    record = state.steps.get(fact.step)
    if record and record.status == "skipped" and record.id.phase in state.skipped:
        yield "step.skipped", {"by": answer.by or answer.via, "reason": answer.words}
        yield "phase.skipped", {"number": record.id.phase, "reason": answer.words}


def _cost(usage: Data) -> Data:
    tokens = sum(value for key, value in usage.items() if key.endswith("_tokens"))
    return {"dollars": usage.get("dollars"), "tokens": tokens, "calls": 1, "basis": usage.get("basis")}


def _picked(data: Data, *keys: str) -> dict[str, Any]:
    return {key: data.get(key) for key in keys}


def _phase_name(state: State, number: str) -> str:
    phase = state.seen.phase(number) if state.seen else None
    return phase.name if phase else ""
