"""Reads the details of one phase in ROADMAP.md: its fields, its criteria, its list of plans.

Reads ROADMAP.md: where its phases, checklists, plan lists and progress rows stand.

Lines are counted from 0. What lies in a code fence is text; what lies in ``<details>`` has shipped.

Changes to ROADMAP.md: plans listed and ticked, phases ticked.

Writes ROADMAP.md, STATE.md and config.json in the shapes of v1.20.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import attrs
from attrs import define, field, frozen

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase, padded

from .changes import ListPlans, TickPhase, TickPlan
from .markdown import Lines, cell, cells, inline, paragraphs, prose, set_cell, title
from .milestones import Milestone, current_milestone, listed_milestone, milestone_of
from .model import PlannedPhase
from .numbers import CODE, NUMBER, SERIES, TOKEN, is_backlog, phase_numbers
from .plan import full_plan_id
from .requirements import requirement_ids

PLAN = re.compile(
    r"^(\s*[-*]\s*\[)([ xX])(\]\s*(?:\*\*)?`?(?:Plan\s+)?"
    r"([A-Za-z0-9][\w.-]{0,99}?)(?:-PLAN)?(?:\.md)?`?(?:\*\*)?"
    r"(?:\s+[:—–-]+\s*|[:—–]+\s*|\s+|$)(.*))$"
)
FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?\*\*([A-Za-z][A-Za-z /]{0,40}?)"
    r"(?::\*\*|\s*\([^)]{0,99}\):\*\*|\*\*(?:\s*\([^)]{0,99}\))?\s*:)\s*(.*)$"
)

_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+(?:\[[ xX]\]\s+)?(.*)$")
_PLACEHOLDER = re.compile(r"(?:TBD|TBC|\[[^\]]*\])?\.?$", re.IGNORECASE)
_NAMES = {"dependencies": "depends on", "depends": "depends on", "success criterion": "success criteria"}


@frozen(kw_only=True)
class PlanLine:
    """A line of a phase's list of plans; a *placeholder* promises nothing yet."""

    line: int
    id: str
    text: str
    ticked: bool

    @property
    def placeholder(self) -> bool:
        """The line is a template's: ``01-01: TBD``."""
        return _PLACEHOLDER.match(self.text) is not None and bool(self.text)


@frozen(kw_only=True)
class Details:
    """The fields of a phase as they stand in its section."""

    goal: str
    depends_on: tuple[str, ...]
    requirements: tuple[str, ...]
    criteria: tuple[str, ...]
    plans: tuple[PlanLine, ...]


def read_details(lines: Sequence[str], number: str, first: int = 0) -> Details:
    """Read the section of phase *number*; *first* is the place of its first line in the file."""
    return Details(
        goal=_field(lines, "goal"),
        depends_on=phase_numbers(_field(lines, "depends on"), series="-" in number),
        requirements=requirement_ids(_field(lines, "requirements")),
        criteria=tuple(_criteria(lines)),
        plans=tuple(plan_lines(lines, number, first)),
    )


def plan_lines(lines: Sequence[str], number: str, first: int = 0) -> Iterator[PlanLine]:
    """Yield the lines of the list of plans that belong to phase *number*."""
    for at, line in enumerate(lines, start=first):
        match = PLAN.match(line.rstrip())
        if match and _is_of(match[4], number):
            yield PlanLine(
                line=at,
                id=full_plan_id(match[4], number),
                text=prose(match[5]),
                ticked=match[2] in "xX",
            )


def _is_of(plan: str, number: str) -> bool:
    """Say whether a plan's id begins with the number of its phase."""
    head, dash, rest = plan.rpartition("-")
    while dash:
        if normal_phase(head) == number:
            return bool(rest)
        head, dash, rest = head.rpartition("-")
    return False


def _field(lines: Sequence[str], name: str) -> str:
    for at, line in enumerate(lines):
        match = FIELD.match(line.rstrip())
        if match and _name(match[1]) == name:
            return prose(" ".join([match[2], *_continued(lines[at + 1 :])]))
    return ""


def _name(text: str) -> str:
    return _NAMES.get(text.strip().lower(), text.strip().lower())


def _continued(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that go on with a field's text."""
    for line in lines:
        if (
            not line.strip()
            or FIELD.match(line)
            or _ITEM.match(line)
            or line.lstrip().startswith(("#", "|", "<", "Plans:"))
        ):
            return
        yield line.strip()


def _criteria(lines: Sequence[str]) -> Iterator[str]:
    begun, item = False, ""
    for line in lines:
        line = line.rstrip()
        match = FIELD.match(line)
        if match and _name(match[1]) == "success criteria":
            begun, item = True, match[2]
        elif not begun:
            continue
        elif match or line.startswith(("#", "|", "Plans:")) or PLAN.match(line):
            break
        elif numbered := _ITEM.match(line):
            if item:
                yield prose(item)
            item = numbered[1]
        elif line.strip() and item:
            item += f" {line.strip()}"
    if item:
        yield prose(item)


MAX_PHASES = 500

PHASE = re.compile(
    r"^ {0,3}(?P<hashes>#{2,4})\s*(?:[^\w\s#\[]+\s+)*"
    rf"(?:\[(?P<code>{CODE})\]\s*(?:Phase\s+)?(?P<bracketed>{NUMBER})"
    rf"|(?:\[[^\]]*\]\s*)*Phase\s+(?P<number>{TOKEN}))"
    r"(?:\s*\([^)]*\))?\s*(?:[:.—–-]\s*(?P<name>.*))?$",
    re.IGNORECASE,
)
ENTRY = re.compile(
    rf"^(\s*[-*]\s*\[)([ xX])(\]\s*(?:\*\*)?(?:\[{CODE}\]\s*(?:Phase\s+)?|(?:\[[^\]]*\]\s*)*Phase\s+)"
    rf"({TOKEN})(?:\s*\([^)]*\))?\s*[:.—–-]\s*(.*))$"
)

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
_ROW = re.compile(rf"^\**(?:Phase\s+)?({SERIES}|[A-Z]?{NUMBER})(?!\s*[-–]\s*\d)(?=[\s.:*—–-]|$)")
_DONE = re.compile(r"[✓✅☑✔]|\bCOMPLETED?\s*(?:\([^()]*\))?$", re.IGNORECASE)
_STATE = re.compile(
    r"\s?(?:\(INSERTED\)|[✓✅☑✔]\s?(?:COMPLETED?)?|\(?COMPLETED?\)?)(?:\s?\([^()]*\))?$", re.IGNORECASE
)
_FIRST = re.compile(r"Phase(?:\s*(?:#|no\.?|number))?", re.IGNORECASE)
_NAMED = re.compile(r"(?:phase\s+)?name", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary[^>]{0,200}>([^<]*)", re.IGNORECASE)


@frozen(kw_only=True)
class Entry:
    """A line of the checklist of phases."""

    line: int
    number: str
    name: str
    text: str
    ticked: bool
    milestone: str
    code: str = ""
    shipped: bool = False


@frozen(kw_only=True)
class Section:
    """The details of a phase: its heading at *line*, its text up to *end* (exclusive).

    *done* says that the heading itself bears a mark (``✓ COMPLETE``); *code* is ``GSD.02`` where
    the heading is ``### [GSD.02] 05: NAME``.
    """

    line: int
    end: int
    number: str
    name: str
    done: bool
    milestone: str
    code: str = ""
    shipped: bool = False


Mark = TypeVar("Mark", Section, Entry)


@frozen(kw_only=True)
class Row:
    """A row of a progress table; *columns* tell where ``plans``, ``status``, ``completed`` stand."""

    line: int
    number: str
    cells: tuple[str, ...]
    columns: dict[str, int]

    def text(self, column: str) -> str:
        """Return what stands in a column, empty if the table has none."""
        index = self.columns.get(column, len(self.cells))
        return self.cells[index].strip() if index < len(self.cells) else ""


@define
class _Place:
    """Where the scan is."""

    fenced: bool = False
    details: int = 0
    milestone: str = ""
    outside: str = ""
    shipped: bool = False
    part: str = ""
    columns: dict[str, int] = field(factory=dict[str, int])
    names: int = 0


@define
class Roadmap:
    """What stands where in a ROADMAP.md.

    *tabled* phases stand in a table with their names; *milestones* have a heading, *folded* ones
    stand in ``<details>``, *listed* ones in the list.
    """

    lines: list[str]
    entries: list[Entry] = field(factory=list[Entry])
    sections: list[Section] = field(factory=list[Section])
    rows: list[Row] = field(factory=list[Row])
    tabled: list[Entry] = field(factory=list[Entry])
    milestones: list[Milestone] = field(factory=list[Milestone])
    folded: list[Milestone] = field(factory=list[Milestone])
    listed: list[Milestone] = field(factory=list[Milestone])

    def current(self, preferred: str = "") -> Milestone | None:
        """Return the milestone in progress: marked so, else *preferred*, else the next, else the last."""
        return current_milestone(self.milestones, self.listed, preferred)

    def marks(self) -> tuple[Section | Entry, ...]:
        """Return everything that names a phase: sections, then the checklist, then tables of phases."""
        named = {section.number for section in self.sections} | {entry.number for entry in self.entries}
        gone = {number for one in (*self.folded, *self.listed) if one.shipped for number in one.phases}
        tabled = (mark for mark in self.tabled if mark.number not in named | gone)
        return (*self.sections, *self.entries, *tabled)

    def section(self, number: str) -> Section | None:
        """Return the details of a phase, the last ones if its number was used before."""
        return _last(self.sections, number)

    def entry(self, number: str) -> Entry | None:
        """Return the checklist line of a phase."""
        return _last(self.entries, number)

    def row(self, number: str) -> Row | None:
        """Return the progress row of a phase."""
        return next((row for row in reversed(self.rows) if row.number == number), None)

    def ticked(self, number: str) -> bool:
        """Say whether a phase is complete: by its checkbox, else its heading or its progress row."""
        if entry := self.entry(number):
            return entry.ticked
        section, row = self.section(number), self.row(number)
        return bool(section and section.done) or bool(row and row.text("status").lower() == "complete")


def scan(text: str) -> Roadmap:
    """Find what stands in a ROADMAP.md; line ends do not matter."""
    roadmap = Roadmap(lines=[line.rstrip("\r") for line in text.split("\n")])
    place = _Place()
    for at, line in enumerate(roadmap.lines):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            place.fenced = not place.fenced
        elif bare and not place.fenced:
            _see(roadmap, place, at, line.rstrip())
            _refuse_too_many(roadmap, at)
    return roadmap


def _refuse_too_many(roadmap: Roadmap, at: int) -> None:
    groups = (roadmap.sections, roadmap.entries, roadmap.tabled, roadmap.rows)
    milestones = (roadmap.milestones, roadmap.folded, roadmap.listed)
    if any(len(group) > MAX_PHASES for group in (*groups, *milestones)):
        raise PlanningError(
            f"names more than {MAX_PHASES} phases or milestones",
            path=".planning/ROADMAP.md",
            line=at + 1,
            hint="move what has shipped to .planning/milestones/",
        )


def _see(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    match line.lstrip()[0]:
        case "<":
            _see_tag(roadmap, place, line)
        case "#":
            _see_heading(roadmap, place, at, line)
        case "-" | "*":
            _see_bullet(roadmap, place, at, line)
        case _:
            pass
    if line.endswith("</details>"):
        place.details = max(0, place.details - 1)
        place.milestone = place.milestone if place.details else place.outside
    _see_row(roadmap, place, at, line)


def _see_tag(roadmap: Roadmap, place: _Place, line: str) -> None:
    if re.match(r"\s*<details\b", line, re.IGNORECASE):
        place.outside = place.milestone if not place.details else place.outside
        place.details += 1
        place.shipped = True
    if (summary := _SUMMARY.search(line)) and place.details and (named := milestone_of(summary[1])):
        place.milestone, place.shipped = named.version, not named.running
        milestone = attrs.evolve(named, shipped=place.shipped)
        (roadmap.folded if place.shipped else roadmap.milestones).append(milestone)


def _see_heading(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    if match := PHASE.match(line):
        roadmap.sections.append(_section(roadmap, match, at, place))
    elif heading := _HEADING.match(line):
        place.part = heading[2].strip().lower()
        _see_milestone(roadmap, place, heading)


def _section(roadmap: Roadmap, match: re.Match[str], at: int, place: _Place) -> Section:
    name = match["name"] or ""
    return Section(
        line=at,
        end=_end(roadmap.lines, at, len(match["hashes"])),
        number=normal_phase(match["number"] or match["bracketed"]),
        name=_roadmap_name(name),
        done=bool(_DONE.search(name)),
        milestone=place.milestone,
        code=match["code"] or "",
        shipped=place.details > 0 and place.shipped,
    )


def _roadmap_name(text: str) -> str:
    """Return a phase's name without what a heading says about its state."""
    return prose(_STATE.sub("", text))


def _end(lines: list[str], at: int, level: int) -> int:
    for i in range(at + 1, len(lines)):
        line = lines[i]
        if "</details>" in line:
            return i
        if line.lstrip().startswith("#"):
            heading = _HEADING.match(line)
            if (heading and len(heading[1]) <= level) or PHASE.match(line.rstrip()):
                return i
    return len(lines)


def _see_bullet(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    if match := ENTRY.match(line):
        roadmap.entries.append(_entry(match, at, place))
    elif place.part == "milestones" and not place.details and (named := listed_milestone(line)):
        roadmap.listed.append(named)


def _entry(match: re.Match[str], at: int, place: _Place) -> Entry:
    name, _, text = match[5].partition("**")
    if not text:
        name, _, text = re.sub(r"\s*\(\d+/\d+ plans?\)", "", name).partition(" — ")
    return Entry(
        line=at,
        number=normal_phase(match[4]),
        name=prose(name),
        text=prose(re.sub(r"^\s*[-—–:]\s*", "", text)),
        ticked=match[2] in "xX",
        milestone=place.milestone,
        code=code[1] if (code := re.search(rf"\[({CODE})\]", match[3])) else "",
        shipped=place.details > 0 and place.shipped,
    )


def _see_milestone(roadmap: Roadmap, place: _Place, heading: re.Match[str]) -> None:
    if place.details or len(heading[1]) not in (2, 3):
        return
    if named := milestone_of(heading[2]):
        place.milestone = named.version
        roadmap.milestones.append(named)


def _see_row(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    row = [cell.strip() for cell in cells(line)]
    if not row:
        place.columns, place.names = {}, 0
    elif _FIRST.fullmatch(row[0]):
        place.columns = _columns(row)
        place.names = next((i for i, cell in enumerate(row) if _NAMED.fullmatch(cell)), 0)
    elif (place.columns or place.names) and (match := _ROW.match(row[0])):
        found = Row(line=at, number=normal_phase(match[1]), cells=tuple(row), columns=place.columns)
        if place.columns:
            roadmap.rows.append(found)
        if 0 < place.names < len(row) and match.end() == len(row[0]):
            roadmap.tabled.append(_tabled(found, place))


def _tabled(row: Row, place: _Place) -> Entry:
    return Entry(
        line=row.line,
        number=row.number,
        name=prose(row.cells[place.names].strip("* ")),
        text="",
        ticked=row.text("status").lower() == "complete",
        milestone=place.milestone,
        shipped=place.details > 0 and place.shipped,
    )


def _columns(head: Sequence[str]) -> dict[str, int]:
    names = [name.lower() for name in head]
    if "status" not in names:
        return {}
    found = {"plans" if name.startswith("plans") else name: i for i, name in enumerate(names)}
    return {name: i for name, i in found.items() if name in ("plans", "status", "completed", "milestone")}


def _last(marks: Sequence[Mark], number: str) -> Mark | None:
    same = [mark for mark in marks if mark.number == number]
    open_ones = [mark for mark in same if not mark.shipped]
    return next(iter(reversed(open_ones or same)), None)


def phases_of(roadmap: Roadmap, milestone: Milestone | None) -> Iterator[Section | Entry]:
    """Yield the phases of a milestone: the sections, then what only the checklist names."""
    wanted = ("", milestone.version) if milestone else ("",)
    seen: set[str] = set()
    for mark in roadmap.marks():
        if mark.shipped or mark.number in seen or is_backlog(mark.number):
            continue
        if mark.milestone in wanted:
            seen.add(mark.number)
            yield mark


_COUNT = re.compile(r"(?:TBD|\[.*\]|\d+ plans?|)$", re.IGNORECASE)
_BOX = re.compile(r"(\[)[ xX](\])")


def list_plans(text: str, change: ListPlans) -> str:
    """Add the plans that are not listed yet; a placeholder (``TBD``) of the same id gives way."""
    section = _edit_roadmap_section(text, change.phase)
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
    section = _edit_roadmap_section(text, change.phase)
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


def _edit_roadmap_section(text: str, phase: str) -> Section:
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
    elif field := _edit_roadmap_field(lines, section):
        lines.insert(field + 1, ["", "Plans:", *new])
    else:
        count = f"**Plans**: {_plural(len(new))}"
        end = lines.before_blank(section.line + 1, section.end)
        lines.insert(end, [count, "", "Plans:", *new])


def _edit_roadmap_field(lines: Lines, section: Section) -> int:
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
    if section and plans and (at := _edit_roadmap_field(lines, section)):
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


def render_roadmap(name: str, overview: str, phases: Sequence[PlannedPhase], date: str) -> str:
    """Return ROADMAP.md for a first milestone."""
    order = " → ".join(phase.number for phase in phases)
    parts = [
        f"# Roadmap: {title(name)}",
        "## Overview",
        paragraphs(overview),
        "## Phases",
        "**Phase Numbering:**\n- Integer phases (1, 2, 3): Planned milestone work\n"
        "- Decimal phases (2.1, 2.2): Urgent insertions (marked with INSERTED)",
        "\n".join(
            f"- [ ] **Phase {phase.number}: {title(phase.name)}** - {inline(phase.goal)}" for phase in phases
        ),
        "## Phase Details",
        *("\n".join(_details(phase)) for phase in phases),
        "## Progress",
        f"**Execution Order:**\nPhases execute in numeric order: {order}",
        _progress(phases),
        f"---\n*Roadmap created: {inline(date)}*",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _details(phase: PlannedPhase) -> Iterator[str]:
    needed = ", ".join(f"Phase {number}" for number in phase.depends_on)
    yield f"### Phase {phase.number}: {title(phase.name)}"
    yield f"**Goal**: {inline(phase.goal)}"
    yield f"**Depends on**: {needed or 'Nothing (first phase)'}"
    yield f"**Requirements**: {', '.join(map(inline, phase.requirements)) or 'None'}"
    yield "**Success Criteria** (what must be TRUE):"
    yield from (f"  {i}. {inline(text)}" for i, text in enumerate(phase.criteria, start=1))
    yield "**Plans**: TBD"


def _progress(phases: Sequence[PlannedPhase]) -> str:
    head = "| Phase | Plans Complete | Status | Completed |\n|-------|----------------|--------|-----------|"
    rows = [f"| {phase.number}. {cell(title(phase.name))} | 0/TBD | Not started | - |" for phase in phases]
    return "\n".join([head, *rows])
