"""The journal's records as lines of text and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from gsd_core.errors import UserError
from gsd_core.machine.facts import Record, Recorded
from gsd_core.model.counts import counted, dollars_text
from gsd_core.sanitize import one_line
from gsd_core.serializer import ANY, SCHEMA_VERSION, Serializer, table

Data: TypeAlias = Mapping[str, Any]

MAX_SUMMARY = 2000
FUNCTION_TOOLS = "mcp__gsd__"
"""What the Claude agent puts before the name of a step's own tool, such as ``task_done``."""
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


RECORD = Serializer(Recorded, "seq at run epoch kind v step? attempt? data", data=table(ANY))


def log_json(record: Record) -> dict[str, Any]:
    """Return *record* as JSON data."""
    return {"schema_version": SCHEMA_VERSION, **RECORD.dump(record)}


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
    sandbox: Data = data.get("sandbox") or {}
    return f"pid {data['pid']}, gsd {data.get('version') or '?'}, sandbox {sandbox.get('name') or 'none'}"


def _run_closed(data: Data) -> str:
    reason = "; ".join([data.get("reason") or "", *(data.get("notes") or ())])
    return f"{data['outcome']}, exit {data['exit']}: {reason}".rstrip(": ")


def _guard_found(data: Data) -> str:
    kept = f" (kept in {data['kept']})" if data.get("kept") else ""
    return f"undone: {'; '.join(data['what'])}{kept}"


def _phase_added(data: Data) -> str:
    if data.get("error"):
        return f"not added: {data['name']!r}: {data['error']}"
    return f"phase {data['phase']}: {data['name']} (asked for by {data['by']})"


def _observed(data: Data) -> str:
    phases = data.get("phases") or ()
    return f"{counted(len(phases), 'phase')}, {sum(bool(phase.get('ticked')) for phase in phases)} complete"


def _attempt_started(data: Data) -> str:
    """Name who works; the step itself is in the line already."""
    who = " with ".join(filter(None, [names_of(data.get("executor")), names_of(data.get("agent"))]))
    dirty = len(data.get("dirty_before") or ())
    changes = counted(dirty, "uncommitted file") if dirty else ""
    base = str(data.get("base_commit") or "")[:9]
    facts = (f"on {base}" if base else "", "to close gaps" if data.get("for_gaps") else "", changes)
    return ", ".join(filter(None, [who, *facts]))


def names_of(names: str | Sequence[str] | None) -> str:
    """Return the name or names of agents or executors, as a record has them, in words."""
    return names if isinstance(names, str) else ", ".join(map(str, names or ()))


def _notice_sent(data: Data) -> str:
    deliveries: Sequence[Data] | None = data.get("deliveries")
    if deliveries is None:  # written by an earlier version
        sent, failed = names_of(data.get("ok")), names_of(data.get("failed"))
    else:
        sent = ", ".join(one["service"] for one in deliveries if one["ok"])
        failed = ", ".join(f"{one['service']}: {one['reason']}" for one in deliveries if not one["ok"])
    kind = _notice_begun(data)
    failed = f"failed for {failed.removeprefix(': ')}" if failed else ""
    return "; ".join(filter(None, [f"{kind} to {sent}" if sent else kind, failed]))


def _notice_begun(data: Data) -> str:
    """Return the type of a notification: ``question``, or ``question reminder 2``."""
    kind, *_, last = str(data["key"]).split()
    return f"{kind} reminder {last}" if " reminder " in data["key"] else kind


def _result(data: Data) -> str:
    result: Data = data.get("result") or {}
    return str(result.get("subject") or data.get("subject") or "")


def _error(data: Data) -> str:
    error = data["error"]
    return f"{error['kind']}: {error['message']}"


def _completed(data: Data) -> str:
    commit = "no change" if data.get("unchanged") else str(data.get("commit") or "")[:9]
    return f"{commit} {data.get('subject') or ''}".strip()


def _agent_closed(data: Data) -> str:
    usage: Data = data.get("usage") or {}
    tokens = sum(int(value) for key, value in usage.items() if key.endswith("_tokens"))
    dollars = f", {dollars_text(usage['dollars'])}" if usage.get("dollars") else ""
    used = f": {tokens} tokens{dollars}" if tokens else dollars
    return f"{data['key']} {data.get('ended') or ''}{used}"


def _answered(data: Data) -> str:
    answer = data["answer"]
    words = ", ".join(part for part in (*(answer.get("chosen") or ()), answer.get("text")) if part)
    return f"{answer['question']}: {words} ({answer.get('how')}, {answer.get('via') or '?'})"


def _activity(data: Data) -> str:
    tool = str(data.get("tool") or "").removeprefix(FUNCTION_TOOLS)
    return " ".join(part for part in (tool, data.get("text")) if part)


def _check_before(data: Data) -> str:
    result = data["result"]
    return f"{data['task']}: `{result['command']}` before the task: exit {result['exit']}"


def _check_replaced(data: Data) -> str:
    kept = "kept" if data["check"] == data["was"] else f"became `{data['check']}`"
    return f"{data['plan']}/{data['task']}: `{data['was']}` {data['because']}; {kept} ({data['reason']})"


_SUMMARIES: dict[str, Callable[[Data], str]] = {
    "run.started": _run_started,
    "run.opened": _run_opened,
    "run.closed": _run_closed,
    "guard.found": _guard_found,
    "plan.made": lambda data: f"{data['plan']['id']}: {data['plan']['name']}",
    "plan.edited": lambda data: f"{data['plan']} was edited by hand",
    "phase.added": _phase_added,
    "todo.edited": lambda data: data["error"] or f"{data['todo']} {data['what']} (asked for by {data['by']})",
    "project.observed": _observed,
    "attempt.started": _attempt_started,
    "attempt.failed": _error,
    "step.result": _result,
    "step.completed": _completed,
    "step.failed": _error,
    "timer.set": lambda data: f"until {data['until']}: {data.get('why') or ''}",
    "step.skipped": lambda data: f"{data.get('reason') or ''} (by {data.get('by') or '?'})".strip(),
    "agent.opened": lambda data: f"{data['key']} {data.get('model') or ''}".rstrip(),
    "agent.process": lambda data: f"{data['key']}: pid {data['pid']}",
    "agent.closed": _agent_closed,
    "agent.activity": _activity,
    "check.before": _check_before,
    "check.replaced": _check_replaced,
    "task.committed": lambda data: (
        f"{data['task']} {str(data.get('commit') or '')[:9]} {' '.join(data.get('paths') or ())}".rstrip()
    ),
    "task.deferred": lambda data: f"{data['plan']}/{data['task']}: {data['reason']}",
    "question.asked": lambda data: "; ".join(f"{q['id']}: {q['text']}" for q in data["inquiry"]["questions"]),
    "question.answered": _answered,
    "answer.refused": lambda data: f"{data['answer'].get('question')}: {data['reason']}",
    "notice.begun": _notice_begun,
    "notice.sent": _notice_sent,
    "plugin.failed": lambda data: f"{data['plugin']} in {data['hook']}: {data['error']}",
    "control.asked": lambda data: f"{data['what']} by {data.get('by') or '?'}",
    "branch.switched": lambda data: f"{data['branch']} (before: {data['from'] or 'detached HEAD'})",
    "step.asked": lambda data: str(data["text"]),
    "step.withdrawn": lambda data: str(data["reason"]),
}
