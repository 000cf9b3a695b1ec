"""The journal's records as lines of text and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from gsd_core.errors import UserError
from gsd_core.journal.schema import Record
from gsd_core.sanitize import one_line

from .status import SCHEMA_VERSION

Data: TypeAlias = Mapping[str, Any]

MAX_SUMMARY = 2000
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d+)([smhd])")


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that *text* means: ISO 8601, local unless it has a zone, or ``10m`` before *now*."""
    if match := _DURATION.fullmatch(text.strip()):
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        hint = "use a time like 2026-01-31T09:30, or a duration like 90s, 10m, 2h, 1d"
        raise UserError(f"not a time: {text!r}", hint=hint) from error
    return time if time.tzinfo else time.astimezone()


def log_json(record: Record) -> dict[str, Any]:
    """Return *record* as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "seq": record.seq,
        "at": record.at.isoformat(),
        "run": record.run,
        "epoch": record.epoch,
        "kind": record.kind,
        "v": record.v,
        "step": record.step or None,
        "attempt": record.attempt or None,
        "data": dict(record.data),
    }


def log_line(record: Record) -> str:
    """Return *record* as one line: number, local time, kind, step, and a summary of its data."""
    try:
        summary = _SUMMARIES.get(record.kind, _as_json)(record.data)
    except (KeyError, TypeError, ValueError, AttributeError):
        # Written by another version: show the data as it is.
        summary = _as_json(record.data)
    time = f"{record.at.astimezone():%H:%M:%S}"
    parts = (f"{record.seq:>5}", time, f"{record.kind:<18}", record.step, one_line(summary, MAX_SUMMARY))
    return "  ".join(part for part in parts if part)


def _as_json(data: Data) -> str:
    return json.dumps(dict(data), ensure_ascii=False, default=str) if data else ""


def _run_started(data: Data) -> str:
    idea: Data = data.get("idea") or {}
    return f"idea {idea.get('name') or '-'} {str(idea.get('sha256') or '')[:12]}".rstrip()


def _run_opened(data: Data) -> str:
    return f"pid {data['pid']}, gsd {data.get('version') or '?'}"


def _run_closed(data: Data) -> str:
    return f"{data['outcome']}, exit {data['exit']}: {data.get('reason') or ''}".rstrip(": ")


def _observed(data: Data) -> str:
    phases = data.get("phases") or ()
    return f"{len(phases)} phases, {sum(bool(phase.get('ticked')) for phase in phases)} complete"


def _attempt_started(data: Data) -> str:
    return " with ".join(part for part in (data.get("executor"), data.get("agent")) if part)


def _error(data: Data) -> str:
    error = data["error"]
    return f"{error['kind']}: {error['message']}"


def _completed(data: Data) -> str:
    return f"{str(data.get('commit') or '')[:9]} {data.get('subject') or ''}".strip()


def _skipped(data: Data) -> str:
    return f"{data.get('reason') or ''} (by {data.get('by') or '?'})".strip()


def _agent_opened(data: Data) -> str:
    return f"{data['key']} {data.get('model') or ''}".rstrip()


def _agent_closed(data: Data) -> str:
    usage: Data = data.get("usage") or {}
    tokens = sum(int(value) for key, value in usage.items() if key.endswith("_tokens"))
    dollars = f", ${usage['dollars']}" if usage.get("dollars") else ""
    return f"{data['key']} {data.get('ended') or ''}: {tokens} tokens{dollars}"


def _task(data: Data) -> str:
    return f"{data['task']} {str(data.get('commit') or '')[:9]} {' '.join(data.get('paths') or ())}".rstrip()


def _asked(data: Data) -> str:
    return "; ".join(f"{q['id']}: {q['text']}" for q in data["inquiry"]["questions"])


def _answered(data: Data) -> str:
    answer = data["answer"]
    words = ", ".join(part for part in (*(answer.get("chosen") or ()), answer.get("text")) if part)
    return f"{answer['question']}: {words} ({answer.get('how')}, {answer.get('via') or '?'})"


def _refused(data: Data) -> str:
    return f"{data['answer'].get('question')}: {data['reason']}"


def _activity(data: Data) -> str:
    return " ".join(part for part in (data.get("tool"), data.get("text")) if part)


def _plugin(data: Data) -> str:
    return f"{data['plugin']} in {data['hook']}: {data['error']}"


def _control(data: Data) -> str:
    return f"{data['what']} by {data.get('by') or '?'}"


_SUMMARIES: dict[str, Callable[[Data], str]] = {
    "run.started": _run_started,
    "run.opened": _run_opened,
    "run.closed": _run_closed,
    "project.observed": _observed,
    "attempt.started": _attempt_started,
    "attempt.failed": _error,
    "step.result": lambda data: str(data.get("subject") or ""),
    "step.completed": _completed,
    "step.failed": _error,
    "step.skipped": _skipped,
    "agent.opened": _agent_opened,
    "agent.closed": _agent_closed,
    "agent.activity": _activity,
    "task.committed": _task,
    "question.asked": _asked,
    "question.answered": _answered,
    "answer.refused": _refused,
    "plugin.failed": _plugin,
    "control.asked": _control,
}
