"""STATE.md: change it, and write a new one in the shape of v1.20.5's template.

The file has two dialects, often both at once: plain fields (``Phase: 1 of 3``) from the template,
and bold ones (``**Current Phase:** 01``) from GSD's tools. The writers of v1.20.5 matched only the
bold ones, and so never updated a file made from their own template; we write both. Later versions add a
frontmatter, which they rebuild from the body. A file gets no fields or sections that it does not have.

A line keeps its form, and what a person added to it: only numbers, names and GSD's words for a state are
replaced, and a number that is not known stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from gsd_core.model.ids import normal_phase, padded

from .changes import AddDecisions, AddQuickTask, SetPosition
from .frontmatter import scalar
from .markdown import Lines, inline, table, title
from .model import PlannedPhase
from .numbers import TOKEN, last_number
from .renumber import Renumbering, like

_PLAIN = re.compile(r"^(([A-Z][A-Za-z ]*):[ \t]*)(.*)$")
_BOLD = re.compile(r"^([ \t]*(?:[-*][ \t]+)?\*\*([A-Z][A-Za-z ]*)(?::\*\*|\*\*:)[ \t]*)(.*)$")
_TOTAL = re.compile(
    r"^([ \t]*(?:[-*][ \t]+)?(?:\*\*)?Total plans completed:?(?:\*\*)?:?[ \t]+)(\d{1,9})[ \t]*$",
    re.IGNORECASE,
)
PENDING_TODOS = "pending todos"
DECISIONS = ("decisions", "key decisions", "decisions made")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*$")
Field: TypeAlias = str | Callable[[str], str]
"""The new value of a field, or what makes it of the old one."""
NOTHING = re.compile(r"^\(?(?:none(?: yet)?|no [\w ]+ yet)\.?\)?$", re.IGNORECASE)
"""What an empty list says: ``None yet.``, ``(none)``, ``No decisions yet``."""


def set_position(text: str, change: SetPosition) -> str:
    """Set the fields that the file has."""
    lines = Lines.of(text)
    # Plain fields count only in their section: "Status: ..." may begin a line of prose elsewhere.
    start, end = section_lines(lines, "current position") or (0, len(lines))
    _fill(lines, range(start, end), _PLAIN, _plain(change))
    start, end = section_lines(lines, "session continuity", "session") or (0, 0)
    _fill(lines, range(start, end), _PLAIN, _session(change))
    _fill_frontmatter(lines, *_keys(change))
    body = range(_start_of_body(lines), len(lines))
    _fill(lines, body, _BOLD, _bold(change) | _session(change))
    if change.done is not None:
        for at in body:
            # A higher number counts the plans of earlier milestones too, and stays.
            if (match := _TOTAL.match(lines[at])) and int(match[2]) < change.done:
                lines[at] = f"{match[1]}{change.done}"
    return str(lines)


def close_milestone(text: str, version: str, date: str) -> str:
    """Say that no milestone is in progress, as GSD's ``milestone complete`` does (gsd-core 1.14)."""
    lines = Lines.of(text)
    activity = f"Milestone {version} completed and archived"
    values = {
        "phase": f"Milestone {version} complete",
        "plan": "—",
        "status": "Awaiting next milestone",
        "last activity": f"{date} — {activity}",
    }
    if section := section_lines(lines, "current position"):
        _fill(lines, range(*section), _PLAIN, values)
    body = range(_start_of_body(lines), len(lines))
    bold = {
        "status": f"{version} milestone complete",
        "last activity": date,
        "current focus": "Next milestone",
    }
    session = {"last session": date, "last date": date, "stopped at": activity}
    _fill(lines, body, _BOLD, bold | {"last activity description": activity} | session)
    if section := section_lines(lines, "session continuity", "session"):
        _fill(lines, range(*section), _PLAIN, session)
    keys = {"status": "completed", "stopped_at": activity, "last_updated": date, "last_activity": date}
    _fill_frontmatter(lines, keys)
    return str(lines)


def begin_milestone(text: str, version: str, name: str) -> str:
    """Name the milestone in progress in the frontmatter and in the current position, if they name one."""
    lines = Lines.of(text)
    if section := section_lines(lines, "current position"):
        for pattern in (_PLAIN, _BOLD):
            _fill(lines, range(*section), pattern, {"milestone": inline(f"{version} {name}")})
    _fill_frontmatter(lines, {"milestone": version, "milestone_name": inline(name)})
    return str(lines)


def add_decisions(text: str, change: AddDecisions) -> str:
    """Add the decisions that are not listed yet under ``### Decisions``."""
    lines = Lines.of(text)
    section = section_lines(lines, *DECISIONS)
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
    if NOTHING.match(last):
        lines[end - 1] = new[0]
        lines.insert(end, new[1:])
    else:
        lines.insert(end, new if last.startswith(("-", "*")) else ["", *new])
    return str(lines)


QUICK_TASKS = "Quick Tasks Completed"


def add_quick_task(text: str, change: AddQuickTask) -> str:
    """Add a row to the table of quick tasks; GSD puts the section below the blockers.

    Source: the workflow ``quick`` of GSD v1.20.5, and of gsd-core 1.14 for the column ``Status``.
    """
    lines = Lines.of(text)
    found = section_lines(lines, QUICK_TASKS.lower())
    if found is None:
        below = section_lines(lines, "blockers/concerns", "accumulated context")
        if below is None:
            return text
        at = lines.before_blank(*below)
        head = ["", f"### {QUICK_TASKS}", "", *_quick_tasks("Status" if change.status else "")]
        lines.insert(at, head)
        found = (at + 2, at + len(head))
    start, end = found
    rows = [at for at in range(start, end) if lines[at].lstrip().startswith("|")]
    if any(lines[at].split("|")[1].strip() == change.number for at in rows):
        return str(lines)
    columns = [cell.strip().lower() for cell in lines[rows[0]].strip().strip("|").split("|")] if rows else []
    if not rows:
        columns = ["#", "description", "date", "commit", "directory"]
        at = lines.before_blank(start, end)
        lines.insert(at, ["", *_quick_tasks()])
        rows = [at + 2]
    cells = {
        "#": change.number,
        "description": inline(change.description),
        "date": change.date,
        "commit": change.commit[:7],
        "status": change.status,
        "directory": f"[{change.directory}](./quick/{change.directory}/)",
    }
    # A cell must not end early, or begin a link.
    values = [cells.get(name, "").replace("|", "\\|") for name in columns]
    lines.insert(rows[-1] + 1, [f"| {' | '.join(values)} |"])
    return str(lines)


def _quick_tasks(status: str = "") -> list[str]:
    names = ["#", "Description", "Date", "Commit", *([status] if status else []), "Directory"]
    return table(names, []).split("\n")


_TOTALS = re.compile(r"^(\s+total_phases:\s*|\s*\*\*Total Phases(?::\*\*|\*\*:)\s*)(\d+)(.*)$")
_CURRENT = re.compile(
    r"^((?:current|active)_phase:\s*[\"']?|Phase:\s*|\s*\*\*Current Phase(?::\*\*|\*\*:)\s*"
    r"|\*\*Current focus:\*\*\s*Phase )([\w.]+)( of )?(\d*)(.*)$",
    re.IGNORECASE,
)


def renumber_position(text: str, was: Sequence[str], now: Sequence[str], change: Renumbering) -> str:
    """Set the number of phases, and give the current phase its new number; other fields stay.

    *was* and *now* are the numbers of the milestone's phases before and after. A phase that is removed while
    it is the current one stays named: the next step sets the position.
    """
    lines = Lines.of(text)
    start, end = section_lines(lines, "current position") or (0, len(lines))
    before, after = (len(was), last_number(was)), (len(now), last_number(now))
    for at in range(len(lines)):
        if match := _TOTALS.match(lines[at]):
            # It may count the phases of all milestones.
            lines[at] = f"{match[1]}{int(match[2]) + len(now) - len(was)}{match[3]}"
        elif match := _CURRENT.match(lines[at]):
            if match[1][0] == "P" and not start <= at < end:
                continue  # a line of prose
            number, total, normal = match[2], match[4], normal_phase(match[2])
            if normal in change.numbers:
                number = like(number, change.of(normal))
            if match[3] and total:
                total = str(_total(int(total), number, before, after))
            lines[at] = f"{match[1]}{number}{match[3] or ''}{total}{match[5]}"
    return str(lines)


def _plain(change: SetPosition) -> dict[str, Field]:
    return {
        "phase": lambda old: _at_phase(old, change, of_total=True),
        "plan": lambda old: _at_plan(old, change),
        "status": lambda old: _in_state(old, change),
        "last activity": f"{change.date} — {inline(change.activity)}",
        "progress": lambda old: _progress(old, change),
    }


def _bold(change: SetPosition) -> dict[str, Field]:
    def number(value: int | None) -> Callable[[str], str]:
        return lambda old: old if value is None else re.sub(r"^\d*", str(value), old.strip(), count=1)

    def current_phase(old: str) -> str:
        # Alone it is a number with a leading zero, as GSD writes it.
        alone = re.fullmatch(TOKEN, old.strip()) or not re.match(r"(?:Phase )?\d", old)
        return padded(change.phase) if alone else _at_phase(old, change)

    def current_plan(old: str) -> str:
        several = re.match(r"\d+ *(?:of|/)", old)
        return _at_plan(old, change) if several else number(change.plan)(re.sub(r"^[^\d]*$", "", old))

    return {
        "current focus": lambda old: _at_phase(old if re.match(r"Phase \d", old) else "", change, focus=True),
        "current phase": current_phase,
        "current phase name": inline(change.name),
        "total phases": number(change.phases),
        "current plan": current_plan,
        "total plans in phase": number(change.plans),
        "status": lambda old: _in_state(old, change),
        "progress": lambda old: _progress(old, change),
        "last activity": change.date,
        "last activity description": inline(change.activity),
    }


_POSITION = re.compile(
    rf"(?P<word>(?:Phase\s+)?)(?P<number>{TOKEN})(?:/{TOKEN})*(?P<of>\s+of\s+(?P<total>\d+))?(?P<rest>.*)$"
)
# "(Login) — notes", "— Login (notes)", ": Login"
_NAMED = re.compile(r"(\s*\()([^()]*)(\).*)$|(\s*(?:[—–:-]|--)\s*)([^(—–]*?)((?:\s*\(|\s+[—–]).*)?$")


def _at_phase(old: str, change: SetPosition, *, of_total: bool = False, focus: bool = False) -> str:
    """Return the line of the current phase: ``2 of 5 (Login) — new`` → ``3 of 5 (Find) — new``."""
    name, match = inline(change.name), _POSITION.match(old.strip())
    size = (change.phases or 0, change.last or 0)
    if match is None:
        total = f" of {_total(None, change.phase, size, size)}" if of_total and size[0] else ""
        return f"Phase {change.phase} — {name}" if focus else f"{change.phase}{total} ({name})"
    rest, number = match["rest"], like(match["number"], change.phase)
    if normal_phase(match["number"]) != normal_phase(change.phase):
        old_name, named = inline(change.names.get(normal_phase(match["number"]), "")), _NAMED.match(rest)
        first = 1 if named and named[2] is not None else 4
        if old_name and old_name in rest:  # it may contain parentheses
            rest = rest.replace(old_name, name, 1)
        else:
            rest = f"{named[first]}{name}{named[first + 2] or ''}" if named else f" ({name}){rest}"
    of = match["of"] or ""
    if of and size[0]:
        of = of[: -len(match["total"])] + str(_total(int(match["total"]), change.phase, size, size))
    return f"{match['word']}{number}{of}{_with_state(rest, change)}"


def _total(old: int | None, phase: str, was: tuple[int, int], now: tuple[int, int]) -> int:
    """Return the number after "of": the milestone's phases, or its last one if numbers count on from earlier.

    *was* and *now* are that count and that number, before and after a change.
    """
    first = re.match(r"\d+", phase)
    counts_on = first is not None and int(first[0]) > now[0]
    by_number = old != was[0] and (old == was[1] or now[1] > now[0])
    return now[1] if now[1] and (counts_on or by_number) else now[0]


def _at_plan(old: str, change: SetPosition) -> str:
    """Return the line of the plans: ``2 of 5 in current phase (2 complete, 3 remaining)``."""
    done, total = change.plan, change.plans
    if done is None or total is None:
        return old
    match = re.match(r"\d+(\s*(?:of|/)\s*)(?:\d+|TBD|\?)(.*)$", old.strip())
    rest = match[2] if match else " in current phase"
    if not total and rest.strip().lower() in ("", "in current phase"):
        return "Not started"
    rest = re.sub(r"\d+(?= (?:complete|done)\b)", str(done), rest)
    rest = re.sub(r"\d+(?= (?:remaining|left)\b)", str(total - done), rest)
    rest = rest if done == total else re.sub(rf"{_STATE.pattern}$", "", rest, flags=re.IGNORECASE)
    return f"{done}{match[1] if match else ' of '}{total or 'TBD'}{rest}"


# A percentage with a bar before it, in brackets or without: "[███░░] 60%", "######---- 60%".
_PERCENT = re.compile(r"(?:\[(?P<bar>[^\]]*)\]\s*|(?P<bare>[^\w\s\[\]()|]{4,})\s+)?(?P<percent>\d{1,3})%")
_COUNT = re.compile(r"(\d+)(\s*(?:/|of)\s*)(\d+)(?=\s+(?:[a-z]+ )?(plan|phase)s?\b)")


def _progress(old: str, change: SetPosition) -> str:
    match, percent = _PERCENT.search(old), change.percent
    rest = _COUNT.sub(lambda count: _counts(count, change), old[match.end() :]) if match else ""
    if (count := _COUNT.search(rest)) and count[4] == "phase" and int(count[3]):
        percent = int(100 * int(count[1]) / int(count[3]) + 0.5)  # "50% (2/4 phases)"
    if percent is None:
        return old
    if not match:
        return f"[{_bar(percent)}] {percent}%"
    bar = match["bar"] or match["bare"] or ""
    if bar:
        bar = old[match.start() : match.start("percent")].replace(bar, _bar(percent, bar), 1)
    return f"{old[: match.start()]}{bar}{percent}%{rest}"


def _counts(count: re.Match[str], change: SetPosition) -> str:
    phases = (change.phases_done, change.phases)
    done, total = (change.done, change.all_plans) if count[4] == "plan" else phases
    # More than there are include those of earlier milestones.
    if done is None or total is None or int(count[1]) > done or int(count[3]) > total:
        return count[0]
    return f"{done}{count[2]}{total}"


def _bar(percent: int, old: str = "░" * 10) -> str:
    """Return a bar of the width and with the characters of the *old* one.

    It is rounded, and full only at 100 %, as GSD draws it.
    """
    width = len(old)
    alone = {"░": ("█", "░"), "-": ("#", "-")}.get(old[0], (old[0], "░"))
    full, empty = (old[0], old[-1]) if old[0] != old[-1] else alone
    done = width if percent >= 100 else max(0, min(width - 1, (percent * width + 50) // 100))
    return full * done + empty * (width - done)


def _session(change: SetPosition) -> dict[str, Field]:
    return {"last session": change.date, "last date": change.date, "stopped at": inline(change.activity)}


STATUSES = {
    "ready to plan": ("planning", "plan-phase"),
    "ready to execute": ("executing", "execute-phase"),
    "in progress": ("executing", "execute-phase"),
    "phase complete — ready for verification": ("verifying", "verify-phase"),
    "all phases complete": ("completed", ""),
}
"""The status in the frontmatter for one in the body, as GSD computes it, and the next action."""
_WORDS = sorted({*STATUSES, *(status for status, _ in STATUSES.values()), "complete", "not started"}, key=len)
# GSD's words for a state at the end of a line, "— EXECUTING" or "(not started)".
_STATE = re.compile(rf"(?:(?:^|\s[—–-]+)\s*|\s*\()(?P<word>{'|'.join(_WORDS[::-1])})\)?\s*$", re.IGNORECASE)


def _with_state(text: str, change: SetPosition) -> str:
    """Return the end of a line with the state as it is now, if it has one."""
    if not (match := _STATE.search(text)):
        return text
    word, status = match["word"], STATUSES.get(change.status.lower(), (change.status, ""))[0]
    # Before its verification a phase is not complete: that line alone would be evidence of it.
    now = "complete" if status == "completed" else status
    now = now.upper() if word.isupper() else now
    return text[: match.start("word")] + now + text[match.end("word") :]


def _in_state(old: str, change: SetPosition) -> str:
    """Return the status, with what follows the old one: ``In progress — waits for a key``."""
    match = re.match(rf"(?:{'|'.join(_WORDS[::-1])})(?=\s+[—–(-]|[,;])(.*)$", old.strip(), re.IGNORECASE)
    return inline(change.status) + (match[1] if match else "")


_KEY = re.compile(r"^([ \t]*)([a-z_]+):(?:[ \t]+(.*))?$")


Keys: TypeAlias = Mapping[str, str | int | None]
"""Values of keys in the frontmatter; ``None`` leaves a key as it is."""


def _fill_frontmatter(lines: Lines, top: Keys, progress: Keys | None = None) -> None:
    """Set the keys that the frontmatter has, and those below ``progress``.

    GSD rebuilds the frontmatter from the body, to the same values.
    """
    parent = ""
    for at in range(1, _start_of_body(lines) - 1):
        if not (match := _KEY.match(lines[at])):
            continue
        values = progress if match[1] and parent == "progress" else None if match[1] else top
        parent = parent if match[1] else match[2]
        value = values.get(match[2]) if values else None
        # A value on several lines is not one that GSD writes, and is left alone.
        several = not match[3] or match[3][0] in "|>{[" or lines[at + 1].startswith((" ", "\t", "- "))
        if value is not None and (match[1] or not several):
            lines[at] = f"{match[1]}{match[2]}: {scalar(value)}"


def _keys(change: SetPosition) -> tuple[Keys, Keys]:
    """Return the values of the frontmatter's keys, and of those below ``progress``."""
    status, action = STATUSES.get(change.status.lower(), ("", ""))
    top = {
        "status": status or None,
        "active_phase": _as_number(change.phase),
        "next_action": action or None,
        "current_phase": _as_number(change.phase),
        "current_phase_name": inline(change.name),
        "current_plan": change.plan,
        "stopped_at": inline(change.activity),
        "last_updated": change.at or change.date,
        "last_activity": change.date,
        "last_activity_desc": inline(change.activity),
    }
    progress = {
        "total_phases": change.phases,
        "completed_phases": change.phases_done,
        "total_plans": change.all_plans,
        "completed_plans": change.done,
        "percent": change.percent,
    }
    return top, progress


def fields_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line of each field, the heading or key that it is below, and its name.

    The name is in lower case, and in a frontmatter without the underscores.
    """
    lines = Lines.of(text)
    start, above = _start_of_body(lines), ""
    for at in range(len(lines)):
        if at < start:
            if match := _KEY.match(lines[at]):
                above = above if match[1] else match[2]
                yield at, above if match[1] else "---", match[2].replace("_", " ")
        elif match := _HEADING.match(lines[at]):
            above = match[2]
        elif match := _BOLD.match(lines[at]) or _PLAIN.match(lines[at]):
            yield at, above, match[2].strip().lower()
        elif _TOTAL.match(lines[at]):
            yield at, above, "total plans completed"


def position_fields() -> frozenset[str]:
    """Return the names of the fields that :func:`set_position` sets, as :func:`fields_of` gives them."""
    change = SetPosition(phase="1", name="", status="", date="", activity="")
    names = {*_plain(change), *_bold(change), *_session(change), *_keys(change)[0]}
    return frozenset(name.replace("_", " ") for name in names)


def show_percent(text: str, percent: int) -> str:
    """Set the percentage, in the frontmatter and beside the bar."""
    lines = Lines.of(text)
    change = SetPosition(phase="1", name="", status="", date="", activity="", percent=percent)
    for at, above, name in fields_of(text):
        if name == "percent":
            lines[at] = re.sub(r"\d+", str(percent), lines[at], count=1)
        elif name == "progress" and above != "---":
            lines[at] = _progress(lines[at], change)
    return str(lines)


def _as_number(phase: str) -> str | int:
    # 2.10 as a number would be 2.1, so only whole numbers are written as such.
    return int(phase) if phase.isdecimal() else phase


def _fill(lines: Lines, where: range, pattern: re.Pattern[str], values: Mapping[str, Field]) -> None:
    left = dict(values)
    for at in where:
        match = pattern.match(lines[at])
        if match and (value := left.pop(match[2].strip().lower(), None)) is not None:
            head = match[1] if match[1].endswith((" ", "\t")) else f"{match[1]} "
            lines[at] = head + (value if isinstance(value, str) else value(match[3].rstrip()).rstrip())


def section_lines(lines: Lines, *titles: str) -> tuple[int, int] | None:
    """Return the lines of the text under a heading: the first, and the one after the last.

    It is the heading with the first of *titles* that there is.
    """
    headings = [(at, match) for at in range(len(lines)) if (match := _HEADING.match(lines[at]))]
    for wanted in titles:
        for start, heading in headings:
            if heading[2].lower() == wanted:
                level = len(heading[1])
                ends = (at for at, later in headings if at > start and len(later[1]) <= level)
                return start + 1, next(ends, len(lines))
    return None


def _start_of_body(lines: Lines) -> int:
    """Return the first line after the frontmatter."""
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
