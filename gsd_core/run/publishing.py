"""Facts to what the outside is told: public events for watchers, notices for people.

Tell watchers and people; a run never waits for them but for a moment at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeAlias

from attrs import define, field

from gsd_core.hookspecs import gsd_notify, gsd_on_event
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.machine.state import State, inquiry_key
from gsd_core.model.event import EVENT_NAMES, Event, EventName
from gsd_core.model.ids import StepId
from gsd_core.model.notice import Notice
from gsd_core.model.question import Answer, Inquiry
from gsd_core.sanitize import clip, one_line

from .runtime import Run

Data: TypeAlias = Mapping[str, Any]
_NAMES: dict[str, EventName] = {name: name for name in EVENT_NAMES}


def events_of(state: State, fact: Record) -> Iterator[Event]:
    """Return the public events that a fact is; *state* is what it led to. Most are none."""
    for name, data in _public(state, fact):
        yield Event(seq=fact.seq, name=_NAMES[name], at=fact.at, run=fact.run, step=fact.step, data=data)


def _public(state: State, fact: Record) -> Iterator[tuple[str, Data]]:
    translate = _TRANSLATIONS.get(fact.kind)
    if translate is not None:
        yield from translate(state, fact)


def _run_started(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    idea: Data = fact.data.get("idea") or {}
    yield "run.started", {"idea": idea.get("name", ""), "sha256": idea.get("sha256", "")}


def _run_opened(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    keys = ("pid", "version", "agent", "resumed")
    yield "run.opened", {key: fact.data.get(key) for key in keys}


def _run_closed(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    keys = ("outcome", "exit", "reason", "dollars", "commits")
    yield "run.closed", {key: fact.data.get(key) for key in keys}


def _attempt_started(state: State, fact: Record) -> Iterator[tuple[str, Data]]:
    number = fact.data["phase"]
    phase = state.seen.phase(number) if state.seen else None
    others = [r for key, r in state.steps.items() if r.id.phase == number and key != fact.step]
    if number and not others and fact.attempt == 1:
        yield "phase.started", {"number": number, "name": phase.name if phase else ""}
    keys = ("kind", "phase", "plan", "round")
    yield "step.started", {key: fact.data.get(key) for key in keys} | {"attempt": fact.attempt}


def _step_result(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    report: Data = fact.data["result"]["outcome"].get("report") or {}
    gaps: list[Data] = report.get("gaps") or []
    if gaps:
        step = StepId.parse(fact.step)
        keys = ("truth", "reason", "about", "found_by")
        found = [{key: gap.get(key, "") for key in keys} for gap in gaps]
        yield "gap.found", {"phase": step.phase, "round": step.round, "gaps": found}


def _step_completed(state: State, fact: Record) -> Iterator[tuple[str, Data]]:
    step = StepId.parse(fact.step)
    about = {"kind": step.kind, "phase": step.phase, "plan": step.detail, "round": step.round}
    yield "step.completed", about | {"commit": fact.data["commit"], "subject": fact.data["subject"]}
    if step.kind == "complete":
        phase = state.seen.phase(step.phase) if state.seen else None
        yield "phase.completed", {"number": step.phase, "name": phase.name if phase else ""}


def _question_asked(state: State, fact: Record) -> Iterator[tuple[str, Data]]:
    inquiry = structure(fact.data["inquiry"], Inquiry)
    yield "question.asked", {"key": inquiry_key(inquiry), "inquiry": fact.data["inquiry"]}
    if inquiry.kind == "escalation":
        yield _escalated(state, fact)


def _escalated(state: State, fact: Record) -> tuple[str, Data]:
    number = StepId.parse(fact.step).phase
    phase = state.seen.phase(number) if state.seen else None
    if phase and str(fact.data.get("occasion")).startswith("gaps"):
        return "gap.escalated", {"phase": number, "gaps": list(phase.gaps)}
    record = state.steps.get(fact.step)
    error = unstructure(record.failure) if record and record.failure else None
    return "error.escalated", {"phase": number, "error": error}


def _question_answered(state: State, fact: Record) -> Iterator[tuple[str, Data]]:
    answer = structure(fact.data["answer"], Answer)
    yield (
        "question.answered",
        {
            "question": answer.question,
            "words": answer.words,
            "how": answer.how,
            "by": answer.by,
            "via": answer.via,
        },
    )
    record = state.steps.get(fact.step)
    if record and record.status == "skipped" and record.id.phase in state.skipped:
        yield "step.skipped", {"by": answer.by or answer.via, "reason": answer.words}
        yield "phase.skipped", {"number": record.id.phase, "reason": answer.words}


def _agent_closed(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    usage = fact.data["usage"]
    tokens = sum(value for key, value in usage.items() if key.endswith("_tokens"))
    yield (
        "cost.changed",
        {
            "dollars": usage.get("dollars"),
            "tokens": tokens,
            "calls": 1,
            "basis": usage.get("basis"),
        },
    )


def _attempt_failed(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    yield fact.kind, {"attempt": fact.attempt, **fact.data}


def _as_it_is(_: State, fact: Record) -> Iterator[tuple[str, Data]]:
    yield fact.kind, dict(fact.data)


Translate: TypeAlias = Callable[[State, Record], Iterator[tuple[str, Data]]]
_TRANSLATIONS: dict[str, Translate] = {
    "run.started": _run_started,
    "run.opened": _run_opened,
    "run.closed": _run_closed,
    "attempt.started": _attempt_started,
    "attempt.failed": _attempt_failed,
    "step.result": _step_result,
    "step.completed": _step_completed,
    "step.failed": _as_it_is,
    "step.skipped": _as_it_is,
    "question.asked": _question_asked,
    "question.answered": _question_answered,
    "task.committed": _as_it_is,
    "agent.closed": _agent_closed,
    "agent.activity": _as_it_is,
    "plugin.failed": _as_it_is,
    "recovered": _as_it_is,
}


def notice_of(event: Event, project: str) -> Notice | None:
    """Return what people are told of an event: a question, a phase done, an error, the end."""
    match event.name:
        case "question.asked":
            return _question(event, project)
        case "phase.completed":
            title = f"{project}: phase {event.data['number']} complete"
            return _notice(event, "progress", title, str(event.data["name"]))
        case "step.failed":
            error: Data = event.data["error"]
            title = f"{project}: {event.step} failed"
            return _notice(event, "error", title, f"{error['message']}\n{error['hint']}".strip())
        case "recovered":
            lost = ", ".join(event.data.get("lost") or ()) or "nothing"
            return _notice(event, "crash", f"{project}: goes on after a crash", f"begun again: {lost}")
        case "run.closed":
            return _end(event, project)
        case _:
            return None


def _notice(event: Event, kind: Any, title: str, body: str, **more: Any) -> Notice:
    level = {"question": "warning", "error": "error", "crash": "error"}.get(kind, "info")
    key = f"{kind} {event.run} {event.seq}"
    return Notice(
        key=key,
        type=kind,
        title=one_line(title, 120),
        body=clip(body, 2000),
        run=event.run,
        step=event.step,
        level=more.pop("level", level),
        **more,
    )


def _question(event: Event, project: str) -> Notice:
    inquiry = structure(event.data["inquiry"], Inquiry)
    lines = [inquiry.reason] if inquiry.reason else []
    for question in inquiry.questions:
        lines.append(f"{question.id}: {question.text}")
        lines += [f"  {n}. {option.label}" for n, option in enumerate(question.options, 1)]
    first = inquiry.questions[0].id
    command = f"gsd answer {first} …"
    title = f"{project}: {event.step or 'the run'} waits for an answer"
    body = "\n".join([*lines, "", f"answer with: {command}"])
    return _notice(event, "question", title, body, question=first, answer_with=command)


def _end(event: Event, project: str) -> Notice:
    outcome, reason = event.data["outcome"], event.data["reason"]
    done = outcome == "done"
    title = f"{project}: {'complete' if done else outcome}"
    kind = "complete" if done else "error"
    level = "info" if done else "warning" if outcome in ("stopped", "blocked") else "error"
    return _notice(event, kind, title, str(reason), level=level)


LIMIT = timedelta(seconds=10)
STOPPING = timedelta(seconds=3)
"""How long notices may still take where a human has stopped the run and waits for its end."""


@define
class Publisher:
    """Takes facts in, gives events to subscribers and notices to notifiers."""

    run: Run
    tell: Callable[[Event], None]
    sending: set[asyncio.Task[None]] = field(factory=set[asyncio.Task[None]])

    def fact(self, state: State, fact: Record) -> None:
        """Take in a fact."""
        for event in events_of(state, fact):
            self.tell(event)
            notice = notice_of(event, self.run.root.name)
            if notice is not None:
                self.send(notice)

    def send(self, notice: Notice) -> None:
        """Send a notice in the background."""
        task = asyncio.get_running_loop().create_task(self._send(notice), name="gsd:notify")
        self.sending.add(task)
        task.add_done_callback(self.sending.discard)

    async def _send(self, notice: Notice) -> None:
        outcomes = await self.run.hooks.fan_out(gsd_notify, LIMIT, notice)
        failed = [outcome.plugin for outcome in outcomes if outcome.error]
        ok = [outcome.plugin for outcome in outcomes if not outcome.error]
        if ok or failed:
            data = {"key": notice.key, "ok": ok, "failed": failed}
            self.run.record("notice.sent", data, step=notice.step)


@asynccontextmanager
async def publisher(run: Run) -> AsyncGenerator[Publisher]:
    """Connect a run to its watchers; on leaving, wait a bounded time for what is under way."""
    async with run.hooks.subscribe(gsd_on_event) as tell:
        out = Publisher(run, tell)
        run.listeners.append(out.fact)
        try:
            yield out
        finally:
            await _ended(out.sending, STOPPING if run.state.closed == "stopped" else LIMIT)
            run.listeners.remove(out.fact)


async def _ended(sending: Collection[asyncio.Task[None]], limit: timedelta) -> None:
    """Wait for the notices that are under way; a channel that outlasts the limit is named and left."""
    if sending:
        _, late = await asyncio.wait(sending, timeout=limit.total_seconds())
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
