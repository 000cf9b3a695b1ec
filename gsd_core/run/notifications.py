"""The text of notifications: which events people are notified of, and in what words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from gsd_core.machine.claims import standing
from gsd_core.machine.due import in_range
from gsd_core.machine.state import State, assumed_checks
from gsd_core.model.counts import dollars_text
from gsd_core.model.event import Event
from gsd_core.model.ids import StepId
from gsd_core.model.notice import Level, Notice, NoticeType
from gsd_core.model.question import Inquiry, answer_command
from gsd_core.sanitize import clip, one_line

from .notes import with_notes

Data: TypeAlias = Mapping[str, Any]

MAX_BODY = 2000
MAX_TITLE = 120
MAX_LISTED = 5


def notice_of(event: Event, state: State, project: str, command: str = "gsd") -> Notice | None:
    """Return what people are notified of: a completed phase, an error, a crash, the end.

    *state* is the state that the event led to, *command* calls gsd for the project. Questions are not
    included, because most are answered at once: see :func:`question_notice`.
    """

    def notice(kind: NoticeType, title: str, body: str, level: Level = "info") -> Notice:
        return Notice(
            key=f"{kind} {event.run} {event.seq}",
            type=kind,
            title=one_line(f"{project}: {title}", MAX_TITLE),
            body=clip(body, MAX_BODY),
            run=event.run,
            step=event.step,
            level=level,
        )

    data = event.data
    match event.name:
        case "phase.completed":
            body = f"{data['name']}\n{_phases(state)}".strip()
            return notice("progress", f"phase {data['number']} complete", body)
        case "step.failed":
            error: Data = data["error"]
            body = f"{error['message']}\n{error['hint']}".strip()
            return notice("error", f"{event.step} failed", body, "error")
        case "recovered":
            steps = map(StepId.parse, data.get("lost") or ())
            lost = ", ".join(f"plan {one.detail}" if one.kind == "execute" else str(one) for one in steps)
            if not lost and not data.get("crashed"):
                return None  # only a stale lock or a leftover process was removed
            ended = "The last process ended without finishing: it was killed, or the machine failed. "
            body = f"Restarting {lost}." if lost else "No step was interrupted."
            return notice("crash", "resumed after a crash", ended + body, "warning")
        case "run.closed":
            outcome = data["outcome"]
            reason = with_notes(str(data["reason"]), data.get("notes") or ())
            body = "\n".join([clip(reason, MAX_BODY // 2), "", *_summary(state, data, event.at)])
            if outcome == "done":
                return notice("complete", "complete", body)
            level: Level = "warning" if outcome in ("stopped", "blocked") else "error"
            title = "gaps remain" if outcome == "gaps" else outcome
            return notice("error", title, f"{body}\nContinue with: {command} resume", level)
        case _:
            return None


def question_notice(
    inquiry: Inquiry, key: str, run: str, project: str, command: str = "gsd", *, reminder: int = 0
) -> Notice:
    """Return the notification that the questions of *inquiry* wait for an answer."""
    lines = [inquiry.reason] if inquiry.reason else []
    [first, *_] = inquiry.questions
    for question in inquiry.questions:
        lines.append(f"{question.id}: {question.text}")
        options = enumerate(question.options, 1)
        lines += [f"  {number}. {option.label}{option.recommended_note}" for number, option in options]
        if len(inquiry.questions) > 1:
            lines.append(f"  answer with: {answer_command(question, command)}")
    waits = f"{inquiry.step or 'the run'} is {'still ' if reminder else ''}waiting for an answer"
    return Notice(
        key=key,
        type="question",
        title=one_line(f"{project}: {waits}", MAX_TITLE),
        body=clip("\n".join(lines), MAX_BODY),
        run=run,
        step=inquiry.step,
        level="warning",
        question=first.id,
        answer_with=answer_command(first, command),
        reminder=reminder,
    )


def _summary(state: State, data: Data, at: datetime) -> Iterator[str]:
    """Yield what the run did: phases, commits, cost, duration, and the checks that nobody looked at."""
    if phases := _phases(state):
        yield phases
    dollars = data.get("dollars")
    yield f"Commits: {data.get('commits') or 0}"
    yield f"Cost: {dollars_text(dollars)}" if dollars else "Cost: unknown"
    if state.started_at:
        yield f"Time since the run began: {_in_words(at - state.started_at)}"
    if assumed := assumed_checks(state):
        yield f"Checks that nobody looked at: {len(assumed)}"
        yield from (f"- {one_line(question.text, MAX_TITLE)}" for _, question in assumed[:MAX_LISTED])
        if len(assumed) > MAX_LISTED:
            yield f"- and {len(assumed) - MAX_LISTED} more"


def _phases(state: State) -> str:
    """Return how many of the phases in range are complete; empty if there are none yet."""
    wanted = [phase for phase in state.phases if in_range(state, phase.number)]
    # A phase counts from its last step on: the planning files are read again only after its event.
    ended = {p.number for p in wanted if any(r.completed for r in state.of("complete", p.number))}
    complete = [p for p in wanted if p.number in ended or standing(state, p) != "open"]
    return f"Phases complete: {len(complete)} of {len(wanted)}" if wanted else ""


def _in_words(time: timedelta) -> str:
    """Return a duration in its two largest units: ``2 h 5 min``."""
    seconds = max(0, int(time.total_seconds()))
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
