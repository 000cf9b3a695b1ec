"""Events as lines, for the scroll-back of a terminal and for logs of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from attrs import frozen

from gsd_core import Event

Data: TypeAlias = Mapping[str, Any]
GAPS_SHOWN = 5


class Weight(IntEnum):
    """Who wants to see a line: everyone, a reader, a reader without a live view, the curious."""

    ESSENTIAL = 0
    NORMAL = 1
    PLAIN = 2
    VERBOSE = 3


@frozen
class Line:
    """A line to print: what it starts with, what it says, and how it looks."""

    mark: str
    text: str
    weight: Weight = Weight.NORMAL
    style: str = ""


def lines_of(event: Event) -> Iterator[Line]:
    """Yield the lines for *event*; many events have none."""
    say = _SAY.get(event.name)
    if say:
        yield from say(event)


def _opened(event: Event) -> Iterator[Line]:
    agent = event.data.get("agent") or ()
    names = agent if isinstance(agent, str) else ", ".join(map(str, agent))
    verb = "goes on" if event.data.get("resumed") else "starts"
    yield Line(
        "run", f"run {event.run} {verb}: gsd {event.data.get('version') or ''}, agent {names}", style="dim"
    )


def _phase_started(event: Event) -> Iterator[Line]:
    yield Line("phase", f"phase {event.data['number']}: {event.data.get('name') or ''}", style="bold")


def _phase_completed(event: Event) -> Iterator[Line]:
    yield Line(
        "done", f"phase {event.data['number']} complete: {event.data.get('name') or ''}", style="bold green"
    )


def _phase_skipped(event: Event) -> Iterator[Line]:
    text = f"phase {event.data['number']} skipped: {event.data.get('reason') or ''}"
    yield Line("skipped", text, Weight.ESSENTIAL, "yellow")


def _step_started(event: Event) -> Iterator[Line]:
    attempt = int(event.data.get("attempt") or 1)
    again = f" (attempt {attempt})" if attempt > 1 else ""
    yield Line("begin", f"{event.step}{again}", Weight.PLAIN)


def _step_completed(event: Event) -> Iterator[Line]:
    yield Line(
        "done", f"{event.step}  {_commit(event.data)} {event.data.get('subject') or ''}", style="green"
    )


def _task(event: Event) -> Iterator[Line]:
    said = event.data.get("name") or " ".join(event.data.get("paths") or ())
    yield Line("done", f"task {event.data.get('task')}  {_commit(event.data)} {said}")


def _commit(data: Data) -> str:
    return str(data.get("commit") or "")[:9]


def _step_failed(event: Event) -> Iterator[Line]:
    yield from _error(event, "failed", Weight.ESSENTIAL, "red")


def _attempt_failed(event: Event) -> Iterator[Line]:
    yield from _error(event, _attempt(event), Weight.NORMAL, "yellow")


def _attempt(event: Event) -> str:
    return " ".join(part for part in ("attempt", str(event.data.get("attempt") or ""), "failed") if part)


def _error(event: Event, what: str, weight: Weight, style: str) -> Iterator[Line]:
    error: Data = event.data["error"]
    yield Line("bad", f"{event.step} {what}: {error.get('message') or error.get('kind')}", weight, style)
    if error.get("hint"):
        yield Line("", f"hint: {error['hint']}", weight)


def _step_skipped(event: Event) -> Iterator[Line]:
    yield Line("skipped", f"{event.step} skipped: {event.data.get('reason') or ''}", style="yellow")


def _asked(event: Event) -> Iterator[Line]:
    inquiry: Data = event.data["inquiry"]
    questions: Iterable[Data] = inquiry["questions"]
    for question in questions:
        yield Line("asks", str(question["text"]), Weight.ESSENTIAL, "bold")
        options: Iterable[Data] = question.get("options") or ()
        for number, option in enumerate(options, 1):
            said = "(recommended)" in option["label"].casefold()
            recommended = " (recommended)" if option.get("recommended") and not said else ""
            yield Line("", f"{number}. {option['label']}{recommended}", Weight.ESSENTIAL)
        yield Line("", f"answer with: gsd answer {question['id']} …", Weight.ESSENTIAL)


def _answered(event: Event) -> Iterator[Line]:
    data = event.data
    by = ", ".join(str(data[key]) for key in ("by", "via") if data.get(key))
    yield Line("answer", f"{data['question']}: {data.get('words') or ''} ({by or data.get('how')})")


def _gaps(event: Event) -> Iterator[Line]:
    gaps: list[Data] = list(event.data["gaps"])
    count = f"{len(gaps)} gap" + ("s" if len(gaps) != 1 else "")
    yield Line("bad", f"{count} in phase {event.data.get('phase')}", style="yellow")
    for gap in gaps[:GAPS_SHOWN]:
        yield Line("", f"- {gap.get('truth')}: {gap.get('reason')}")
    if len(gaps) > GAPS_SHOWN:
        yield Line("", f"- and {len(gaps) - GAPS_SHOWN} more")


def _activity(event: Event) -> Iterator[Line]:
    said = " ".join(str(event.data.get(key) or "") for key in ("tool", "text")).strip()
    if said:
        yield Line("", said, Weight.VERBOSE, "dim")


def _plugin(event: Event) -> Iterator[Line]:
    data = event.data
    yield Line("bad", f"plugin {data['plugin']} failed in {data['hook']}: {data['error']}", style="yellow")


def _recovered(event: Event) -> Iterator[Line]:
    counts = {key: event.data.get(key) or 0 for key in ("processes", "locks", "lost")}
    said = ", ".join(
        f"{key}: {value if isinstance(value, int) else len(value)}" for key, value in counts.items()
    )
    yield Line("run", f"recovered from an earlier end ({said})", style="yellow")


_SAY: dict[str, Callable[[Event], Iterator[Line]]] = {
    "run.opened": _opened,
    "phase.started": _phase_started,
    "phase.completed": _phase_completed,
    "phase.skipped": _phase_skipped,
    "step.started": _step_started,
    "step.completed": _step_completed,
    "step.failed": _step_failed,
    "step.skipped": _step_skipped,
    "attempt.failed": _attempt_failed,
    "task.committed": _task,
    "question.asked": _asked,
    "question.answered": _answered,
    "gap.found": _gaps,
    "agent.activity": _activity,
    "plugin.failed": _plugin,
    "recovered": _recovered,
}
