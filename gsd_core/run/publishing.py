"""Publish a run's facts: as events for subscribers, and as notices for people.

The run does not wait for either, except for a bounded time at its end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

import attrs
from attrs import define

from gsd_core.codec import structure, unstructure
from gsd_core.hookspecs import gsd_on_event
from gsd_core.machine.facts import PROMPT, QuestionAsked, Record, typed
from gsd_core.machine.state import State, inquiry_key
from gsd_core.model.event import Event, EventName
from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer, Inquiry
from gsd_core.model.usage import Usage
from gsd_core.sanitize import redact_data

from .notifications import notice_of
from .notifying import SEND_LIMIT, STOPPED_LIMIT, Notifier
from .runtime import Run

Data: TypeAlias = Mapping[str, Any]

MAX_TEXT = 64 << 10
"""How many characters of a text other processes get in an event; a question's own page has all of it."""
CUT = 4 << 10
"""How much more is searched for secrets: one that is cut in two may not be recognized."""


@asynccontextmanager
async def publishing(run: Run) -> AsyncGenerator[Publisher]:
    """Publish what *run* records; on leaving, wait a bounded time for notices that are being sent."""
    async with run.hooks.subscribe(gsd_on_event) as publish:
        publisher = Publisher(run=run, publish=publish, notifier=Notifier(run=run))
        run.listeners.append(publisher.publish_fact)
        try:
            publisher.notifier.start()
            yield publisher
        finally:
            await publisher.notifier.finish(STOPPED_LIMIT if run.state.closed == "stopped" else SEND_LIMIT)
            run.listeners.remove(publisher.publish_fact)


@define(kw_only=True)
class Publisher:
    """Turns facts into events for subscribers and notices for people."""

    run: Run
    publish: Callable[[Event], None]
    notifier: Notifier

    def publish_fact(self, state: State, fact: Record) -> None:
        """Publish a fact; *state* is the state that it led to."""
        for event in events_of(state, fact):
            if event.name == "run.opened" and event.data["resumed"]:
                # Subscribers see only this process's events, and what a run has cost is a sum over all.
                so_far = work_so_far(self.run.journal.events(run=fact.run, facts_only=True), fact.seq)
                event = attrs.evolve(event, data={**event.data, "so_far": so_far})
            self.publish(event)
            self.notify(state, event)
        if fact.kind == "question.asked":
            self.notifier.follow(next(typed([fact], QuestionAsked)))

    def notify(self, state: State, event: Event) -> None:
        """Notify people of an event, if it is one that they are notified of."""
        if notice := notice_of(event, state, self.run.root.name, self.notifier.command):
            self.notifier.send(notice)


def events_of(state: State, fact: Record) -> Iterator[Event]:
    """Yield the public events of a fact; most facts have none. *state* is the state that it led to."""
    for name, data in _translate(state, fact):
        yield Event(seq=fact.seq, name=name, at=fact.at, run=fact.run, step=fact.step, data=data)


def redacted(event: Event) -> Event:
    """Return *event* without secrets, as other processes see it; its texts are of bounded length.

    What a run records is short. A journal that somebody else made may have megabytes, and searching them for
    secrets takes seconds.
    """
    return attrs.evolve(event, data=_shortened(redact_data(_shortened(event.data, MAX_TEXT + CUT)), MAX_TEXT))


def _shortened(data: Any, length: int) -> Any:
    match data:
        case str():
            return data if len(data) <= length else data[: length - 1] + "…"
        case Mapping():
            return {key: _shortened(value, length) for key, value in cast("Data", data).items()}
        case list() | tuple():
            return [_shortened(value, length) for value in cast("list[Any]", data)]
        case _:
            return data


def work_so_far(facts: Iterable[Record], until: int) -> dict[str, Any]:
    """Return what the run used and did before the fact *until*: seconds, cost, finished tasks by step.

    Pauses between its processes do not count. A process that was killed worked until its last fact.
    """
    worked = timedelta(0)
    opened: datetime | None = None
    last: datetime | None = None
    total, calls = Usage(), 0
    tasks: dict[str, list[str]] = {}
    for fact in facts:
        if fact.kind == "run.opened" or fact.seq >= until:
            worked += max(last - opened, timedelta(0)) if opened and last else timedelta(0)
            opened = fact.at
        if fact.seq >= until:
            break
        last = fact.at
        if fact.kind == "run.closed":
            worked += max(fact.at - opened, timedelta(0)) if opened else timedelta(0)
            opened = None
        elif fact.kind == "agent.closed":
            total, calls = total + structure(fact.data["usage"], Usage), calls + 1
        elif fact.kind == "task.committed":
            tasks.setdefault(fact.step, []).append(str(fact.data["task"]))
    used = _cost(unstructure(total))
    return {"seconds": worked.total_seconds(), **used, "calls": calls, "tasks": tasks}


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
            inquiry: Inquiry = structure(data["inquiry"], Inquiry)
            yield "question.asked", {"key": inquiry_key(inquiry), "inquiry": data["inquiry"]}
            if inquiry.kind == "escalation":
                yield _escalated(state, fact)
        case "question.answered":
            yield from _question_answered(state, fact)
        case "notice.sent":
            for delivery in data.get("deliveries") or ():
                # A plugin that raised has its own event.
                if not delivery["ok"] and delivery["service"] not in ("", delivery["plugin"]):
                    yield "notice.failed", {"notice": data["key"], **_picked(delivery, "service", "reason")}
        case "question.withdrawn" if data["key"] in state.inquiries:
            asked = state.inquiries[data["key"]].inquiry.questions
            yield "question.withdrawn", {"questions": [question.id for question in asked]}
        case "agent.closed":
            yield "cost.changed", _cost(data["usage"])
        case "agent.activity" if data.get("kind") == PROMPT:
            pass
        case (
            "step.failed"
            | "step.skipped"
            | "step.queued"
            | "task.committed"
            | "files.kept"
            | "files.left"
            | "merge.failed"
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
    yield "step.returned", {"merges": bool(fact.data.get("tip"))}
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
    made = {**_picked(fact.data, "commit", "subject"), "unchanged": bool(fact.data.get("unchanged"))}
    yield "step.completed", {**about, **made}
    if step.kind == "complete":
        yield "phase.completed", {"number": step.phase, "name": _phase_name(state, step.phase)}


def _escalated(state: State, fact: Record) -> tuple[EventName, Data]:
    number = StepId.parse(fact.step).phase
    phase = state.phase(number)
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
    phase = state.phase(number)
    return phase.name if phase else ""
