"""Changes to STATE.md, in both of its dialects: plain fields and bold ones.

Writes ROADMAP.md, STATE.md and config.json in the shapes of v1.20.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gsd_core.model.ids import padded

from .changes import AddDecisions, SetPosition
from .markdown import Lines, inline, title
from .model import PlannedPhase

_PLAIN = re.compile(r"^(([A-Z][A-Za-z ]*):[ \t]*)(.*)$")
_BOLD = re.compile(r"^([ \t]*(?:[-*][ \t]+)?\*\*([A-Z][A-Za-z ]*)(?::\*\*|\*\*:)[ \t]*)(.*)$")
_TOTAL = re.compile(
    r"^([ \t]*(?:[-*][ \t]+)?(?:\*\*)?Total plans completed:?(?:\*\*)?:?[ \t]+)(\d{1,9})[ \t]*$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*$")
_NOTHING = re.compile(r"^\(?(?:None|None yet|No decisions yet|\(none\))\.?\)?$", re.IGNORECASE)


def set_position(text: str, change: SetPosition) -> str:
    """Set the fields that the file has; it gets no new ones."""
    lines = Lines.of(text)
    start, end = _part(lines, "current position") or (0, len(lines))
    _fill(lines, range(start, end), _PLAIN, _plain(change))
    start, end = _part(lines, "session continuity") or _part(lines, "session") or (0, 0)
    _fill(lines, range(start, end), _PLAIN, _session(change))
    _fill(lines, range(_body(lines), len(lines)), _BOLD, _bold(change) | _session(change))
    if change.done is not None:
        _count(lines, change.done)
    return str(lines)


def add_decisions(text: str, change: AddDecisions) -> str:
    """Add the decisions that are not there yet to the list under ``### Decisions``."""
    lines = Lines.of(text)
    part = _part(lines, "decisions") or _part(lines, "key decisions") or _part(lines, "decisions made")
    if part is None:
        return text
    start, end = part
    known = {lines[at].strip() for at in range(start, end)}
    entries = [f"- [Phase {change.phase}]: {text}" for text in map(inline, change.decisions) if text]
    new = [entry for entry in dict.fromkeys(entries) if entry not in known]
    if new:
        _append(lines, start, end, new)
    return str(lines)


def _append(lines: Lines, start: int, end: int, new: list[str]) -> None:
    end = lines.before_blank(start, end)
    last = end - 1
    if last >= start and _NOTHING.match(lines[last].strip()):
        lines[last] = new[0]
        lines.insert(end, new[1:])
        return
    in_list = last >= start and lines[last].lstrip().startswith(("-", "*"))
    lines.insert(end, new if in_list else ["", *new])


def _plain(change: SetPosition) -> dict[str, str]:
    return {
        "phase": f"{change.phase} of {change.phases} ({inline(change.name)})",
        "plan": f"{change.plan} of {change.plans} in current phase",
        "status": inline(change.status),
        "last activity": f"{change.date} — {inline(change.activity)}",
        "progress": _bar(change.percent),
    }


def _bold(change: SetPosition) -> dict[str, str]:
    return {
        "current focus": f"Phase {change.phase} — {inline(change.name)}",
        "current phase": padded(change.phase),
        "current phase name": inline(change.name),
        "total phases": str(change.phases),
        "current plan": str(change.plan),
        "total plans in phase": str(change.plans),
        "status": inline(change.status),
        "progress": _bar(change.percent),
        "last activity": change.date,
        "last activity description": inline(change.activity),
    }


def _session(change: SetPosition) -> dict[str, str]:
    return {
        "last session": change.date,
        "last date": change.date,
        "stopped at": inline(change.activity),
    }


def _count(lines: Lines, done: int) -> None:
    """Set how many plans are done; a higher number may count earlier milestones, and stays."""
    for at in range(_body(lines), len(lines)):
        if (match := _TOTAL.match(lines[at])) and int(match[2]) < done:
            lines[at] = f"{match[1]}{done}"


def _bar(percent: int) -> str:
    done = max(0, min(10, percent // 10))
    return f"[{'█' * done}{'░' * (10 - done)}] {percent}%"


def _fill(lines: Lines, where: range, pattern: re.Pattern[str], values: Mapping[str, str]) -> None:
    left = dict(values)
    for at in where:
        match = pattern.match(lines[at])
        if match and (value := left.pop(match[2].strip().lower(), None)) is not None:
            head = match[1] if match[1].endswith((" ", "\t")) else f"{match[1]} "
            lines[at] = head + value


def _part(lines: Lines, title: str) -> tuple[int, int] | None:
    """Return where the text under a heading begins and ends."""
    start, level = 0, 0
    for at in range(len(lines)):
        heading = _HEADING.match(lines[at])
        if start and heading and len(heading[1]) <= level:
            return start, at
        if not start and heading and heading[2].lower() == title:
            start, level = at + 1, len(heading[1])
    return (start, len(lines)) if start else None


def _body(lines: Lines) -> int:
    """Return where the text after the frontmatter begins."""
    if lines[0].strip() != "---":
        return 0
    return next((at + 1 for at in range(1, len(lines)) if lines[at].strip() == "---"), 0)


def render_state(*, core_value: str, phases: Sequence[PlannedPhase], date: str) -> str:
    """Return STATE.md at the start of the first phase."""
    first = title(phases[0].name) if phases else "None"
    number = phases[0].number if phases else "0"
    return STATE.format(
        date=inline(date), core_value=inline(core_value), first=first, number=number, count=len(phases)
    )


STATE = """\
# Project State

## Project Reference

See: .planning/PROJECT.md (updated {date})

**Core value:** {core_value}
**Current focus:** Phase {number} — {first}

## Current Position

Phase: {number} of {count} ({first})
Plan: 0 of TBD in current phase
Status: Ready to plan
Last activity: {date} — Project initialized

Progress: [░░░░░░░░░░] 0%

## Performance Metrics

**Velocity:**
- Total plans completed: 0
- Average duration: -
- Total execution time: -

**By Phase:**

| Phase | Plans | Total | Avg/Plan |
|-------|-------|-------|----------|
| - | - | - | - |

**Recent Trend:**
- Last 5 plans: -
- Trend: -

*Updated after each plan completion*

## Accumulated Context

### Decisions

Decisions are logged in PROJECT.md Key Decisions table.
Recent decisions affecting current work:

None yet.

### Pending Todos

None yet.

### Blockers/Concerns

None yet.

## Session Continuity

Last session: {date}
Stopped at: Project initialized
Resume file: None
"""
