"""Changes to ROADMAP.md: plans listed and ticked, phases ticked."""

from __future__ import annotations

import re

from gsd_core.errors import PlanningError
from gsd_core.ids import padded
from gsd_core.planning.changes import ListPlans, TickPhase, TickPlan
from gsd_core.planning.details import FIELD, PlanLine, plan_lines
from gsd_core.planning.editing import Lines, set_cell
from gsd_core.planning.inline import inline
from gsd_core.planning.plans import full_plan_id
from gsd_core.planning.roadmap import ENTRY, Row, Section, scan

_COUNT = re.compile(r"(?:TBD|\[.*\]|\d+ plans?|)$", re.IGNORECASE)
_BOX = re.compile(r"(\[)[ xX](\])")


def list_plans(text: str, change: ListPlans) -> str:
    """Add the plans that are not listed yet; a placeholder (``TBD``) of the same id gives way."""
    section = _section(text, change.phase)
    lines = Lines.of(text)
    known = {line.id: line for line in _plans(lines, section)}
    new: list[str] = []
    for plan, what in change.plans:
        identity = _own(plan, change.phase)
        entry = f"- [ ] {identity}-PLAN.md — {inline(what)}".removesuffix(" — ")
        if identity not in known:
            new.append(entry)
        elif known[identity].placeholder:
            lines[known[identity].line] = entry
    if new:
        _insert(lines, section, list(known.values()), new)
    return _counted(str(lines), change.phase, "Planned")


def tick_plan(text: str, change: TickPlan) -> str:
    """Tick the plan's line and count it; a list that lacks the plan gets it, no list stays none."""
    section = _section(text, change.phase)
    lines = Lines.of(text)
    known = {line.id: line for line in _plans(lines, section)}
    identity = _own(change.plan, change.phase)
    if identity in known:
        at = known[identity].line
        lines[at] = _BOX.sub(r"\1x\2", lines[at], count=1)
    elif known:
        _insert(lines, section, list(known.values()), [f"- [x] {identity}-PLAN.md"])
    return _counted(str(lines), change.phase, "In Progress")


def tick_phase(text: str, change: TickPhase) -> str:
    """Tick the phase in the checklist and in the progress table; without both, mark its heading."""
    roadmap = scan(text)
    entry, row = roadmap.entry(change.phase), roadmap.row(change.phase)
    section = roadmap.section(change.phase)
    lines = Lines.of(text)
    if entry:
        lines[entry.line] = _ticked(lines[entry.line], change.date)
    elif section and not row and not section.done:
        lines[section.line] = f"{lines[section.line].rstrip()} ✓ COMPLETE ({change.date})"
    elif not section and not row:
        raise _no_place(change.phase)
    if row and row.text("status").lower() != "complete":
        _set(lines, row, "status", "Complete")
        _set(lines, row, "completed", change.date)
    return str(lines)


def _own(plan: str, phase: str) -> str:
    identity = full_plan_id(plan, phase)
    if identity.startswith(f"{padded(phase)}-"):
        return identity
    raise PlanningError(f"plan {plan!r} is not of phase {phase}", path=".planning/ROADMAP.md")


def _section(text: str, phase: str) -> Section:
    section = scan(text).section(phase)
    if section is None:
        raise _no_place(phase)
    return section


def _no_place(phase: str) -> PlanningError:
    return PlanningError(
        f"has no phase {phase}",
        path=".planning/ROADMAP.md",
        hint=f"add a heading '### Phase {phase}: NAME' with its goal",
    )


def _plans(lines: Lines, section: Section) -> list[PlanLine]:
    inside = [lines[at] for at in range(section.line + 1, section.end)]
    return list(plan_lines(inside, section.number, section.line + 1))


def _insert(lines: Lines, section: Section, known: list[PlanLine], new: list[str]) -> None:
    if known:
        lines.insert(max(line.line for line in known) + 1, new)
        return
    inside = range(section.line + 1, section.end)
    if head := [at for at in inside if lines[at].strip().lower() in ("plans:", "**plans:**")]:
        lines.insert(head[0] + 1, new)
    elif field := _field(lines, section):
        lines.insert(field + 1, ["", "Plans:", *new])
    else:
        count = f"**Plans**: {_plural(len(new))}"
        end = lines.before_blank(section.line + 1, section.end)
        lines.insert(end, [count, "", "Plans:", *new])


def _field(lines: Lines, section: Section) -> int:
    """Return the line of ``**Plans**: 2 plans``, 0 if there is none."""
    for at in range(section.line + 1, section.end):
        if (match := FIELD.match(lines[at])) and match[1].lower() == "plans" and match[2]:
            return at
    return 0


def _counted(text: str, phase: str, status: str) -> str:
    """Bring the number of plans, in the details and in the progress table, up to date."""
    roadmap, lines = scan(text), Lines.of(text)
    section, row = roadmap.section(phase), roadmap.row(phase)
    plans = [line for line in _plans(lines, section) if not line.placeholder] if section else []
    if section and plans and (at := _field(lines, section)):
        lines[at] = _recounted(lines[at], len(plans))
    if row and plans:
        _set(lines, row, "plans", f"{sum(line.ticked for line in plans)}/{len(plans)}")
    if row and row.text("status").lower() in ("not started", "planned", "-", ""):
        _set(lines, row, "status", status)
    return str(lines)


def _recounted(line: str, count: int) -> str:
    match = FIELD.match(line)
    if not match or not _COUNT.match(match[2]):
        return line
    return line[: match.start(2)] + _plural(count)


def _plural(count: int) -> str:
    return f"{count} plan{'' if count == 1 else 's'}"


def _ticked(line: str, date: str) -> str:
    match = ENTRY.match(line)
    if not match or match[2] in "xX":
        return line
    done = "" if "(completed " in line else f" (completed {date})"
    return f"{match[1]}x{match[3].rstrip()}{done}"


def _set(lines: Lines, row: Row, column: str, value: str) -> None:
    if column in row.columns:
        lines[row.line] = set_cell(lines[row.line], row.columns[column], value)
