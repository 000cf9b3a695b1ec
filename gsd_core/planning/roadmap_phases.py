"""Adds, inserts and removes phases in ROADMAP.md; what people wrote there stays as it is.

GSD's ``phase add``, ``insert`` and ``remove`` (gsd-core 1.14) are the model for numbers and places. A phase
is added wherever the phases of its milestone are named: as a section, in the checklist, in a table. Each
edit is read again before it is returned: if the other phases would not be the same, with their new numbers,
it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase, padded, phase_order

from .changes import AddPhase
from .markdown import Lines, cell, cells, inline, set_cell, title
from .milestones import listed_milestone, milestone_of
from .model import PlannedPhase
from .numbers import TOKEN, is_backlog
from .phases import no_such_phase
from .renumber import Renumbering, in_list, in_ranges, is_plain, like
from .roadmap import (
    CHECKLIST_LINE,
    FIELD,
    PATH,
    PHASE_FORMS,
    PHASE_HEADING,
    PLAN_LINE,
    ROW_NUMBER,
    RULE,
    Entry,
    Mention,
    Roadmap,
    Section,
    check_names_phases,
    parse_roadmap,
    phase_section,
)
from .roadmap_edit import new_cell, place_for_section, spaced

_ORDER = re.compile(rf"(?<=[ :]){TOKEN}(?:\s*(?:→|->)\s*{TOKEN})+\s*$")


def next_number(roadmap: Roadmap, preferred: str, on_disk: Iterable[str]) -> str:
    """Return the number of a phase at the end of the milestone in progress.

    It is larger than those of all phases that have not shipped, and of the phase folders *on_disk*.
    *preferred* is the milestone in progress. Raises :class:`PlanningError` for other numbers.
    """
    phases = _phases_in_progress(roadmap, preferred)
    # A planned milestone may follow: its numbers are in use too.
    used = [one.number for one in (*phases, *roadmap.mentions()) if not one.shipped]
    used += [number for one in roadmap.listed if not one.shipped for number in one.phases]
    used = [number for number in (*used, *on_disk) if is_plain(number)]
    if odd := [phase.number for phase in phases if not is_plain(phase.number)]:
        hint = f"name it in the file like its other phases, for example {odd[-1]!r} with the next number"
        raise PlanningError(f"numbers its phases like {odd[-1]!r}", path=PATH, line=1, hint=hint)
    return str(max(int(re.split(r"[A-Z.]", number)[0]) for number in used) + 1)


def decimal_after(roadmap: Roadmap, preferred: str, after: str, on_disk: Iterable[str]) -> str:
    """Return the number of a phase inserted after phase *after*: ``2.1``, or ``2.2`` if that is in use."""
    _named(_phases_in_progress(roadmap, preferred), after)
    if not is_plain(after):
        raise PlanningError(f"no phase can be inserted after {after!r}", path=PATH, line=1, hint="add one")
    used = [mention.number for mention in roadmap.mentions()] + [*on_disk]
    pattern = re.compile(rf"{re.escape(after)}\.(\d+)(?:\.|$)")
    taken = [int(match[1]) for number in used if (match := pattern.match(number))]
    return f"{after}.{max(taken, default=0) + 1}"


def _phases_in_progress(roadmap: Roadmap, preferred: str) -> list[Mention]:
    check_names_phases(roadmap)
    milestone = roadmap.current(preferred)
    found = sorted(roadmap.phases(milestone), key=lambda phase: phase_order(phase.number))
    if not found:
        about = f"{milestone.version} has no phases" if milestone else "no milestone is in progress"
        hint = f"name its first phase in the file, like {PHASE_FORMS}"
        known = (*roadmap.milestones, *roadmap.folded, *roadmap.listed)
        if milestone is None and any(one.shipped for one in known):
            hint = "start the next milestone with: gsd run IDEA"
        raise PlanningError(f"cannot be extended: {about}", path=PATH, line=1, hint=hint)
    return found


def _named(phases: Sequence[Mention], number: str) -> Mention:
    if found := next((phase for phase in phases if phase.number == number), None):
        return found
    raise no_such_phase(number, (phase.number for phase in phases), "no phase is in progress or due")


def add_phase(text: str, new: PlannedPhase, preferred: str = "") -> str:
    """Add a phase to the milestone in progress, in the order of the numbers."""
    roadmap = parse_roadmap(text)
    siblings = _phases_in_progress(roadmap, preferred)
    before = [one for one in siblings if phase_order(one.number) < phase_order(new.number)]
    nearest = before[-1] if before else siblings[0]
    lines = Lines.of(text)
    inserts: list[tuple[int, list[str]]] = []
    earlier, milestones = {one.number for one in before}, {one.milestone for one in siblings}
    entries = [e for e in roadmap.entries if e.number in earlier and e.milestone in milestones]
    in_progress = [entry for entry in entries if not entry.shipped]
    if entry := max(in_progress, key=lambda entry: phase_order(entry.number), default=None):
        inserts.append((_after_item(lines, entry.line), [_entry_line(lines[entry.line], new)]))
    if row := _nearest_row(roadmap, before):
        inserts.append((row + 1, [_row_line(lines, row, new)]))
    if any(not section.shipped for section in roadmap.sections) or not inserts:
        at, level = _place(roadmap, lines, before or siblings, new)
        section = [*phase_section(new, level=level, code=nearest.code, nothing="Nothing (first phase)")]
        inserts.append((at, spaced(lines, at, section)))
    # Phases execute in numeric order: 1 → 2
    for at in range(len(lines)):
        if "order" in lines[at].lower() and (match := _ORDER.search(lines[at])):
            known = re.findall(TOKEN, match[0])
            arrow = "->" if "->" in match[0] else "→"
            if nearest.number in map(normal_phase, known):
                place = [*map(normal_phase, known)].index(nearest.number) + 1
                known.insert(place, new.number)
                lines[at] = lines[at][: match.start()] + f" {arrow} ".join(known)
    for at, added in sorted(inserts, key=lambda one: -one[0]):
        lines.insert(at, added)
    edited = str(lines)
    _check(roadmap, parse_roadmap(edited), Renumbering(removed="", numbers={}), new, preferred)
    return edited


def extend_milestone(text: str, change: AddPhase, milestone: str = "") -> str:
    """Add the phase to ROADMAP.md; one of the same number and name is left as it is.

    Raises :class:`PlanningError` if another phase has the number, or no milestone is in progress.
    """
    existing = [one for one in parse_roadmap(text).mentions() if one.number == change.number]
    if same := [one for one in existing if not one.shipped]:
        # Titles are written without asterisks and the like: compare words.
        if _words(same[0].name) == _words(change.name):
            return text
        hint = "give it another number, then resume the run"
        raise PlanningError(f"has a phase {change.number} already: {same[0].name!r}", path=PATH, hint=hint)
    return add_phase(text, PlannedPhase(**attrs.asdict(change, recurse=False)), milestone)


def _words(name: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in name.lower()).split()


def _place(roadmap: Roadmap, lines: Lines, before: Sequence[Mention], new: PlannedPhase) -> tuple[int, int]:
    """Return the line and the heading level for a section: after the last phase *before* that has one."""
    for sibling in reversed(before):
        section = roadmap.section(sibling.number)
        if section and not section.shipped:
            heading = lines[section.line].lstrip()
            end = _end_of_phase(roadmap, lines, section)
            return lines.before_blank(section.line + 1, end), len(heading) - len(heading.lstrip("#"))
    line, milestone = before[-1].line, before[-1].milestone
    entry = Entry(line=line, number=new.number, name="", text="", ticked=False, milestone=milestone)
    return place_for_section(roadmap, entry)


def _nearest_row(roadmap: Roadmap, before: Sequence[Mention]) -> int | None:
    for number in [one.number for one in reversed(before)]:
        if row := roadmap.row(number):
            return row.line
        if same := [one for one in roadmap.table_entries if one.number == number and not one.shipped]:
            return same[0].line
    return None


def _after_item(lines: Lines, at: int) -> int:
    """Return the line after a list item and the lines that are indented below it."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    at += 1
    while at < len(lines) and lines[at].strip() and len(lines[at]) - len(lines[at].lstrip()) > indent:
        at += 1
    return at


def _entry_line(sibling: str, new: PlannedPhase) -> str:
    match = CHECKLIST_LINE.match(sibling.rstrip())
    assert match is not None, "an entry is a line of the checklist"
    bold, dash = ("**", "-") if "**" in sibling[: match.start(4)] else ("", "—")
    inserted = " (INSERTED)" if new.inserted else ""
    number = like(match[4], new.number)
    head = f"{match[1]} {sibling[match.end(2) : match.start(4)]}{number}"
    return f"{head}: {title(new.name)}{bold}{inserted} {dash} {inline(new.goal)}"


def _row_line(lines: Lines, at: int, new: PlannedPhase) -> str:
    """Return a row like that in line *at*, for a phase that has not started."""
    head = at
    while head and cells(lines[head - 1]):
        head -= 1
    names = [name.strip().lower() for name in cells(lines[head])]
    own = cells(lines[at])
    row = lines[at]
    for index, name in enumerate(names[: len(own)]):
        if index == 0:
            number = like(own[0].strip().strip("*").removeprefix("Phase "), new.number)
            match = ROW_NUMBER.match(own[0].strip().strip("* "))
            rest = own[0].strip().strip("* ")[match.end() :].strip() if match else ""
            word = "Phase " if "Phase" in own[0] else ""
            separator = rest[:1] if rest[:1] in (".", ":") else "."
            value = f"{word}{number}{separator} {cell(title(new.name))}" if rest else f"{word}{number}"
        elif name.endswith("name"):
            value = cell(title(new.name))
        elif name == "milestone":
            continue
        else:
            value = new_cell(name)
        row = set_cell(row, index, value)
    return row


def remove_phase(text: str, change: Renumbering) -> str:
    """Remove a phase that has not shipped, and give those after it their new numbers."""
    roadmap = parse_roadmap(text)
    number = change.removed
    sections = [one for one in roadmap.sections if one.number == number and not one.shipped]
    entries = [one for one in (*roadmap.entries, *roadmap.table_entries) if one.number == number]
    entries = [one for one in entries if not one.shipped]
    if len(sections) > 1:
        hint = f"it is in lines {', '.join(str(one.line + 1) for one in sections)}: keep one of them"
        raise PlanningError(f"has more than one phase {number}", path=PATH, line=1, hint=hint)
    if not sections and not entries:
        _named([one for one in roadmap.mentions() if not one.shipped and not is_backlog(one.number)], number)
    lines = Lines.of(text)
    gone = {row.line for row in roadmap.rows if row.number == number}
    for section in sections:
        gone |= set(range(section.line, _end_of_phase(roadmap, lines, section)))
    for entry in entries:
        in_checklist = CHECKLIST_LINE.match(lines[entry.line].rstrip()) is not None
        gone |= set(range(entry.line, _after_item(lines, entry.line) if in_checklist else entry.line + 1))
    _renumber_lines(roadmap, lines, change)
    lines.lines = [line for at, line in enumerate(lines.lines) if at not in gone]
    if lines.lines and lines.lines[-1] == "\r":
        lines.lines[-1] = ""  # the blank line above the last section is the end of the file now
    edited = str(lines)
    _check(roadmap, parse_roadmap(edited), change, None, "")
    return edited


def _end_of_phase(roadmap: Roadmap, lines: Lines, section: Section) -> int:
    """Return the line after a phase's own text.

    A section has no end mark: a rule, or a table about other phases, may follow the last one.
    """
    end = section.end
    others = [row.line for row in roadmap.rows if row.number != section.number]
    if tables := [line for line in others if section.line < line < end]:
        end = min(tables)
        while end > section.line + 1 and (cells(lines[end - 1]) or not lines[end - 1].strip()):
            end -= 1
    for at in range(section.line + 1, end):
        if RULE.match(lines[at]):
            is_separator = lines.before_blank(at + 1, end) == at + 1 and end < len(lines)
            return end if is_separator else at
    return end


def _renumber_lines(roadmap: Roadmap, lines: Lines, change: Renumbering) -> None:
    for section in roadmap.sections:
        if section.shipped:
            continue
        if section.number in change.numbers:
            _replace_group(lines, section.line, PHASE_HEADING, ("number", "bracketed"), change)
        own = change.of(section.number)
        for at in range(section.line + 1, section.end):
            line = lines[at].rstrip()
            field = FIELD.match(line)
            if field and field[1].strip().lower() in ("depends on", "dependencies", "depends"):
                lines[at] = line[: field.start(2)] + in_list(field[2], change, own=own)
            elif (plan := PLAN_LINE.match(line)) and section.number in change.numbers:
                head, dash, rest = plan[4].partition("-")
                if normal_phase(head) == section.number:
                    renamed = f"{like(head, own)}{dash}{rest}"
                    lines[at] = line[: plan.start(4)] + renamed + line[plan.end(4) :]
    for entry in roadmap.entries:
        if not entry.shipped and entry.number in change.numbers:
            _replace_group(lines, entry.line, CHECKLIST_LINE, (4,), change)
    shipped = {entry.line for entry in roadmap.table_entries if entry.shipped}
    numbers = {row.line: row.number for row in roadmap.rows}
    numbers |= {entry.line: entry.number for entry in roadmap.table_entries}
    for at, number in numbers.items():
        if number in change.numbers and at not in shipped:
            first = cells(lines[at])[0]
            start = lines[at].index("|") + 1 + len(first) - len(first.lstrip("* \t"))
            if match := ROW_NUMBER.match(lines[at][start:]):
                new = like(match[1], change.of(number))
                lines[at] = lines[at][: start + match.start(1)] + new + lines[at][start + match.end(1) :]
    for at in range(len(lines)):
        line = lines[at]
        is_title = line.lstrip().startswith(("#", "<"))
        named = listed_milestone(line) or (milestone_of(line) if is_title else None)
        if named and not named.shipped and not PHASE_HEADING.match(line):
            lines[at] = in_ranges(line, change)
        elif "order" in line.lower() and (match := _ORDER.search(line)):
            arrow = "->" if "->" in match[0] else "→"
            known = [one for one in re.findall(TOKEN, match[0]) if normal_phase(one) != change.removed]
            order = [like(one, change.of(normal_phase(one))) for one in known]
            lines[at] = line[: match.start()] + f" {arrow} ".join(order)


def _replace_group(
    lines: Lines, at: int, pattern: re.Pattern[str], groups: Sequence[str | int], change: Renumbering
) -> None:
    line = lines[at]
    match = pattern.match(line.rstrip())
    group = next((group for group in groups if match and match[group]), None)
    if match and group is not None:
        new = like(match[group], change.of(normal_phase(match[group])))
        lines[at] = line[: match.start(group)] + new + line[match.end(group) :]


def _check(
    before: Roadmap, after: Roadmap, change: Renumbering, new: PlannedPhase | None, preferred: str
) -> None:
    """Raise if the edited roadmap does not name the same phases: then it is read in an unforeseen way."""
    was, now = _described(before, change), _described(after, Renumbering(removed="", numbers={}))
    if new is not None:
        found = after.phases(after.current(preferred))
        mention = next((one for one in found if one.number == new.number), None)
        if mention is None or after.is_complete(mention) or mention.name != title(new.name):
            message = f"would not show a phase named {new.name!r} as such"
            hint = "choose another name: this one looks like a number, a state or a milestone"
            raise PlanningError(message, path=PATH, line=1, hint=hint)
        now = (one for one in now if one[0] != new.number)
    if sorted(was, key=repr) != sorted(now, key=repr):
        hint = "edit the file by hand, then look at: gsd phases"
        raise PlanningError("cannot be edited safely: its phases would change", path=PATH, line=1, hint=hint)


def _described(roadmap: Roadmap, change: Renumbering) -> Iterator[tuple[object, ...]]:
    """Yield what the roadmap says about each phase, with the numbers of *change*, in order."""
    for mention in roadmap.mentions():
        number = mention.number
        if number == change.removed and not mention.shipped:
            continue
        of: Callable[[str], str] = (lambda one: one) if mention.shipped else change.of
        details = roadmap.details(mention)
        depends_on = details.depends_on if mention.shipped else change.needed(details.depends_on, of(number))
        plans = tuple(
            (
                line.id if mention.shipped else line.id.replace(padded(number), padded(of(number)), 1),
                line.text,
            )
            for line in details.plans
        )
        about = (mention.name, mention.milestone, mention.shipped, roadmap.is_complete(mention), depends_on)
        yield (of(number), type(mention).__name__, *about, details.goal, details.criteria, plans)
