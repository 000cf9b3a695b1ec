"""The text of notifications: which events people are notified of, and in what words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gsd_core.journal.codec import structure
from gsd_core.model.event import Event
from gsd_core.model.ids import StepId
from gsd_core.model.notice import Level, Notice, NoticeType
from gsd_core.model.question import Inquiry, answer_command
from gsd_core.sanitize import clip, one_line

from .notes import with_notes

Data: TypeAlias = Mapping[str, Any]


def notice_of(event: Event, project: str, command: str = "gsd") -> Notice | None:
    """Return what people are notified of: a question, a completed phase, an error, a crash, the end."""

    def notice(kind: NoticeType, title: str, body: str, level: Level = "info", **question: str) -> Notice:
        return Notice(
            key=f"{kind} {event.run} {event.seq}",
            type=kind,
            title=one_line(f"{project}: {title}", 120),
            body=clip(body, 2000),
            run=event.run,
            step=event.step,
            level=level,
            **question,
        )

    data = event.data
    match event.name:
        case "question.asked":
            inquiry = structure(data["inquiry"], Inquiry)
            lines = [inquiry.reason] if inquiry.reason else []
            for question in inquiry.questions:
                lines.append(f"{question.id}: {question.text}")
                lines += [f"  {number}. {option.label}" for number, option in enumerate(question.options, 1)]
            first = inquiry.questions[0]
            how = answer_command(first, command)
            body = "\n".join([*lines, "", f"answer with: {how}"])
            title = f"{event.step or 'the run'} is waiting for an answer"
            return notice("question", title, body, "warning", question=first.id, answer_with=how)
        case "phase.completed":
            return notice("progress", f"phase {data['number']} complete", str(data["name"]))
        case "step.failed":
            error: Data = data["error"]
            body = f"{error['message']}\n{error['hint']}".strip()
            return notice("error", f"{event.step} failed", body, "error")
        case "recovered":
            lost = ", ".join(_describe_step(step) for step in data.get("lost") or ())
            body = f"Restarting {lost}." if lost else "No step was interrupted."
            return notice("crash", "resumed after a crash", body, "error")
        case "run.closed":
            outcome = data["outcome"]
            reason = with_notes(str(data["reason"]), data.get("notes") or ())
            if outcome == "done":
                return notice("complete", "complete", reason)
            level: Level = "warning" if outcome in ("stopped", "blocked") else "error"
            return notice("error", "gaps remain" if outcome == "gaps" else outcome, reason, level)
        case _:
            return None


def _describe_step(text: str) -> str:
    """Return a step in words: ``1/execute/01-01`` → ``plan 01-01``, ``2/verify`` → ``2/verify``."""
    step = StepId.parse(text)
    return f"plan {step.detail}" if step.kind == "execute" else text
