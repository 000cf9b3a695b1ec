"""Reads ROADMAP.md: where its phases, checklists, plan lists and progress rows stand.

Lines are counted from 0. What lies in a code fence is text; what lies in ``<details>`` has shipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import attrs
from attrs import define, field, frozen

from gsd_core.errors import PlanningError
from gsd_core.ids import normal_phase
from gsd_core.planning.inline import cells, prose
from gsd_core.planning.milestones import Milestone, current_milestone, listed_milestone, milestone_of
from gsd_core.planning.numbers import CODE, NUMBER, SERIES, TOKEN, is_backlog

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
        name=_name(name),
        done=bool(_DONE.search(name)),
        milestone=place.milestone,
        code=match["code"] or "",
        shipped=place.details > 0 and place.shipped,
    )


def _name(text: str) -> str:
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
