"""STATE.md: change it, and write a new one in the shape of v1.20.5's template.

The file has two dialects, often both at once: plain fields (``Phase: 1 of 3``) from the template,
and bold ones (``**Current Phase:** 01``) from GSD's tools. The writers of v1.20.5 matched only the
bold ones, and so never updated a file made from their own template; we write both. A file gets no
fields or sections that it does not have.
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
    """Set the fields that the file has."""
    lines = Lines.of(text)
    # Plain fields count only in their section: "Status: ..." may begin a line of prose elsewhere.
    start, end = _section(lines, "current position") or (0, len(lines))
    _fill(lines, range(start, end), _PLAIN, _plain(change))
    start, end = _section(lines, "session continuity") or _section(lines, "session") or (0, 0)
    _fill(lines, range(start, end), _PLAIN, _session(change))
    body = range(_start_of_body(lines), len(lines))
    _fill(lines, body, _BOLD, _bold(change) | _session(change))
    if change.done is not None:
        for at in body:
            # A higher number counts the plans of earlier milestones too, and stays.
            if (match := _TOTAL.match(lines[at])) and int(match[2]) < change.done:
                lines[at] = f"{match[1]}{change.done}"
    return str(lines)


def add_decisions(text: str, change: AddDecisions) -> str:
    """Add the decisions that are not listed yet under ``### Decisions``."""
    lines = Lines.of(text)
    titles = ("decisions", "key decisions", "decisions made")
    section = next((found for title in titles if (found := _section(lines, title))), None)
    if section is None:
        return text
    start, end = section
    known = {lines[at].strip() for at in range(start, end)}
    entries = [f"- [Phase {change.phase}]: {text}" for text in map(inline, change.decisions) if text]
    new = [entry for entry in dict.fromkeys(entries) if entry not in known]
    if not new:
        return text
    end = lines.before_blank(start, end)
    last = lines[end - 1].strip() if end > start else ""
    if _NOTHING.match(last):
        lines[end - 1] = new[0]
        lines.insert(end, new[1:])
    else:
        lines.insert(end, new if last.startswith(("-", "*")) else ["", *new])
    return str(lines)


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


def _section(lines: Lines, title: str) -> tuple[int, int] | None:
    """Return the lines of the text under a heading: the first, and the one after the last."""
    start, level = 0, 0
    for at in range(len(lines)):
        heading = _HEADING.match(lines[at])
        if start and heading and len(heading[1]) <= level:
            return start, at
        if not start and heading and heading[2].lower() == title:
            start, level = at + 1, len(heading[1])
    return (start, len(lines)) if start else None


def _start_of_body(lines: Lines) -> int:
    """Return the first line after the frontmatter, which GSD rebuilds from the body itself."""
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
