"""Changes to ROADMAP.md: plans are listed and ticked, phases are ticked.

Applying a change again has no effect. No unrelated line is changed, because a roadmap also contains what
people wrote. :mod:`.roadmap` describes the format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from gsd_core.errors import PlanningError
from gsd_core.model.counts import counted
from gsd_core.model.ids import normal_phase, padded, phase_order

from .changes import ListPlans, TickPhase, TickPlan
from .markdown import Lines, inline, set_cell, title
from .plan import full_plan_id
from .roadmap import (
    CHECKLIST_LINE,
    FIELD,
    HEADING,
    PATH,
    Entry,
    PlanLine,
    Roadmap,
    Row,
    Section,
    last_mention,
    parse_roadmap,
    plan_lines,
)

Count: TypeAlias = tuple[int, int]
"""How many plans of a phase are executed, and how many are written."""
# "2 plans", "1/2 plans executed", "3 plans in 2 waves", "2/3", "TBD"
_PLAN_COUNT = re.compile(
    r"(?:TBD|\[.*\]|)$|(?P<done>\d+/)?(?P<total>\d+)(?P<noun> plans?\b)?(?P<rest>.*)$", re.IGNORECASE
)
_DONE = re.compile(r"\d+(?= (?:complete|executed|done)\b)", re.IGNORECASE)
_SHARE = re.compile(r"\d+(\s*/\s*)(?:\d+|TBD|\?)")
_BOX = re.compile(r"(\[)[ xX](\])")


def list_plans(text: str, change: ListPlans, counts: Mapping[str, Count] | None = None) -> str:
    """Add the plans that are not listed yet; one replaces a placeholder (``TBD``) of the same id.

    A phase that only the checklist or a table names gets a section first: GSD reads plans nowhere
    else, and reports such a phase as ``missing_phase_details``.
    """
    text, section = _with_section(text, change.phase)
    lines = Lines.of(text)
    known = {plan.id: plan for plan in _plans_of(lines, section)}
    new: list[str] = []
    for plan, description in change.plans:
        identity = _full_id(plan, change.phase)
        line = f"- [ ] {identity}-PLAN.md — {inline(description)}".removesuffix(" — ")
        if identity not in known:
            new.append(line)
        elif known[identity].placeholder:
            lines[known[identity].line] = line
    if new:
        _insert_plans(lines, section, list(known.values()), new)
    return update_progress(str(lines), change.phase, "Planned", counts)


def tick_plan(text: str, change: TickPlan, counts: Mapping[str, Count] | None = None) -> str:
    """Tick the plan's line and count it; a list that lacks the plan gets it, but no list is created."""
    roadmap = parse_roadmap(text)
    section = _section(roadmap, change.phase)
    if section is None and not _entry(roadmap, change.phase):
        raise _unknown_phase(change.phase)
    lines = Lines.of(text)
    known = {plan.id: plan for plan in _plans_of(lines, section)} if section else {}
    # A plan whose file has a name of its own ("01-data-layer-PLAN.md" in phase 2) is counted, but not listed.
    is_own = full_plan_id(change.plan, change.phase).startswith(f"{padded(change.phase)}-")
    identity = _full_id(change.plan, change.phase) if is_own or counts is None else change.plan
    if identity in known:
        at = known[identity].line
        lines[at] = _BOX.sub(r"\1x\2", lines[at], count=1)
    elif section and known and is_own:
        _insert_plans(lines, section, list(known.values()), [f"- [x] {identity}-PLAN.md"])
    return update_progress(str(lines), change.phase, "In Progress", counts)


def tick_phase(text: str, change: TickPhase, counts: Mapping[str, Count] | None = None) -> str:
    """Tick the phase in the checklist and in the progress table; without both, mark its heading.

    Its plans are counted too: other tools executed some of them.
    """
    roadmap = parse_roadmap(text)
    entry, row = roadmap.entry(change.phase), roadmap.row(change.phase)
    lines = Lines.of(text)
    if not entry and not row:
        text, section = _with_section(text, change.phase)
        lines = Lines.of(text)
        if not section.done:
            lines[section.line] = (
                f"{lines[section.line].rstrip()} ✓ COMPLETE{change.date and f' ({change.date})'}"
            )
    if entry and (match := CHECKLIST_LINE.match(lines[entry.line])) and match[2] == " ":
        is_dated = not change.date or "(completed " in lines[entry.line]
        done = "" if is_dated else f" (completed {change.date})"
        lines[entry.line] = f"{match[1]}x{match[3].rstrip()}{done}"
    if row and row.text("status").lower() != "complete":
        _set_column(lines, row, "status", "Complete")
        if change.date:
            _set_column(lines, row, "completed", change.date)
    return update_progress(str(lines), change.phase, "", counts) if counts else str(lines)


def _full_id(plan: str, phase: str) -> str:
    identity = full_plan_id(plan, phase)
    if identity.startswith(f"{padded(phase)}-"):
        return identity
    hint = f"its id should begin with {padded(phase)}-"
    raise PlanningError(f"plan {plan!r} does not belong to phase {phase}", path=PATH, hint=hint)


def _unknown_phase(phase: str) -> PlanningError:
    hint = f"add a heading '### Phase {phase}: NAME' with its goal"
    return PlanningError(f"has no phase {phase}", path=PATH, hint=hint)


def _entry(roadmap: Roadmap, phase: str) -> Entry | None:
    """Return the line of the checklist or of a table that names a phase which has not shipped."""
    entry = last_mention([*roadmap.table_entries, *roadmap.entries], phase)
    return entry if entry and not entry.shipped else None


def _section(roadmap: Roadmap, phase: str) -> Section | None:
    """Return the section to edit: not that of a shipped phase whose number is in use again."""
    section = roadmap.section(phase)
    return None if section and section.shipped and _entry(roadmap, phase) else section


def _with_section(text: str, phase: str) -> tuple[str, Section]:
    """Return *text* with a section for a phase, and the section; raise if nothing names the phase."""
    roadmap = parse_roadmap(text)
    if section := _section(roadmap, phase):
        return text, section
    entry = _entry(roadmap, phase)
    if entry is None:
        raise _unknown_phase(phase)
    lines = Lines.of(text)
    at, level = place_for_section(roadmap, entry)
    named = f"[{entry.code}] {padded(phase)}" if entry.code else f"Phase {phase}"
    new = [f"{'#' * level} {named}: {title(entry.name)}"]
    if entry.text:
        new.append(f"**Goal**: {inline(entry.text)}")
    new.append("**Plans**: TBD")
    lines.insert(at, spaced(lines, at, new))
    text = str(lines)
    section = _section(parse_roadmap(text), phase)
    if section is None:
        raise _unknown_phase(phase)
    return text, section


def spaced(lines: Lines, at: int, new: list[str]) -> list[str]:
    """Return *new* lines for the position *at* with the blank lines that keep them apart from others."""
    before = [""] if at and lines[at - 1].strip() else []
    after = [""] if at < len(lines) and lines[at].strip() else []
    return [*before, *new, *after]


def new_cell(column: str) -> str:
    """Return what the progress table says in *column*, in lower case, about a phase that has not started."""
    return {"plans": "0/TBD", "status": "Not started"}.get(column.partition(" ")[0], "-")


def place_for_section(roadmap: Roadmap, entry: Entry) -> tuple[int, int]:
    """Return the line and the heading level for the section of a phase, inside of its milestone."""
    lines = roadmap.lines
    siblings = [one for one in roadmap.sections if one.milestone == entry.milestone and not one.shipped]
    if siblings:
        heading = lines[siblings[0].line].lstrip()
        level = len(heading) - len(heading.lstrip("#"))
        later = [one for one in siblings if phase_order(one.number) > phase_order(entry.number)]
        if later:
            return later[0].line, level
        last = siblings[-1]
        return Lines(lines).before_blank(last.line + 1, last.end), level
    entries = [*roadmap.entries, *roadmap.table_entries]
    at = max(one.line for one in entries if one.milestone == entry.milestone and not one.shipped) + 1
    others = ("#", "<", "```", "~~~")
    while at < len(lines) and lines[at].strip() and not lines[at].lstrip().startswith(others):
        at += 1
    above = next((match for line in reversed(lines[:at]) if (match := HEADING.match(line))), None)
    return at, 4 if above and len(above[1]) > 2 else 3


def _plans_of(lines: Lines, section: Section) -> list[PlanLine]:
    inside = [lines[at] for at in range(section.line + 1, section.end)]
    return list(plan_lines(inside, section.number, section.line + 1))


def _insert_plans(lines: Lines, section: Section, known: list[PlanLine], new: list[str]) -> None:
    inside = range(section.line + 1, section.end)
    if known:
        lines.insert(max(plan.line for plan in known) + 1, new)
    elif heads := [at for at in inside if lines[at].strip().lower() in ("plans:", "**plans:**")]:
        lines.insert(heads[0] + 1, new)
    elif field := _plan_count_field(lines, section):
        lines.insert(field + 1, ["", "Plans:", *new])
    else:
        end = lines.before_blank(section.line + 1, section.end)
        lines.insert(end, [f"**Plans**: {counted(len(new), 'plan')}", "", "Plans:", *new])


def _plan_count_field(lines: Lines, section: Section) -> int:
    """Return the line of ``**Plans**: 2 plans``, 0 if there is none."""
    for at in range(section.line + 1, section.end):
        if (match := FIELD.match(lines[at])) and match[1].lower() == "plans" and match[2]:
            return at
    return 0


def plan_ticks(text: str) -> dict[str, dict[str, bool]]:
    """Return by phase which plans its section lists, and whether each is ticked."""
    roadmap = parse_roadmap(text)
    return {
        section.number: {
            plan.id: plan.ticked for plan in roadmap.details(section).plans if not plan.placeholder
        }
        for section in roadmap.sections
    }


def update_progress(text: str, phase: str, status: str, counts: Mapping[str, Count] | None) -> str:
    """Update the number of plans in the section, the checklist and the progress table.

    A person's own words are kept, and numbers that are not known.
    """
    roadmap, lines = parse_roadmap(text), Lines.of(text)
    section, row, entry = _section(roadmap, phase), roadmap.row(phase), roadmap.entry(phase)
    plans = [plan for plan in _plans_of(lines, section) if not plan.placeholder] if section else []
    listed = (sum(plan.ticked for plan in plans), len(plans))
    done, total = listed if counts is None else counts.get(normal_phase(phase), (0, 0))
    if section and total and (at := _plan_count_field(lines, section)):
        match = FIELD.match(lines[at])
        if match and (count := _PLAN_COUNT.match(match[2])):
            lines[at] = lines[at][: match.start(2)] + _plan_count(count, done, total)
    if entry and not entry.shipped and total:
        lines[entry.line] = re.sub(r"\(\d+/\d+(?= plans?\))", f"({done}/{total}", lines[entry.line])
    old = row.text("plans") if row else ""
    # A row with its cells in other columns than the head says is left alone.
    is_count = _SHARE.search(old) or re.fullmatch(r"\d*|[-–—]|TBD", old)
    if row and total:
        share = rf"{done}\g<1>{total}"
        if _SHARE.search(old):
            _set_column(lines, row, "plans", _SHARE.sub(share, old, count=1))
        elif is_count:
            _set_column(lines, row, "plans", f"{done}/{total}")
    if row and is_count and row.text("status").lower() in ("not started", "planned", "-", ""):
        _set_column(lines, row, "status", status)
    return str(lines)


def _plan_count(old: re.Match[str], done: int, total: int) -> str:
    """Return the number of plans of a section in the form that it has."""
    rest = old["rest"]
    if rest is None or (old["noun"] and not old["done"] and not rest):
        return f"{done}/{total} plans executed" if done else counted(total, "plan")
    if not old["done"] and int(old["total"]) > total:
        total = int(old["total"])  # it includes plans that are still to be written
    return f"{f'{done}/' if old['done'] else ''}{total}{old['noun'] or ''}{_DONE.sub(str(done), rest)}"


def _set_column(lines: Lines, row: Row, column: str, value: str) -> None:
    if column in row.columns:
        lines[row.line] = set_cell(lines[row.line], row.columns[column], value)
