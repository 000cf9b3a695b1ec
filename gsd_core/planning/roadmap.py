"""Reads ROADMAP.md: where its phases, checklists, plan lists and progress rows stand.

Lines are counted from 0. What lies in a code fence is text; what lies in ``<details>`` has shipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from attrs import define, field, frozen

from gsd_core.ids import normal_phase
from gsd_core.planning.inline import cells, prose

NUMBER = r"\d+[A-Za-z]?(?:\.\d+)*(?![A-Za-z\d])"
PHASE = re.compile(
    rf"^(#{{2,4}})\s+(?:[^\w\s#\[]+\s+)*(?:\[[^\]]*\]\s*)*Phase\s+({NUMBER})\s*(?:\([^)]*\))?(?:\s*[:.—–-]\s*(.*?))?\s*$"
)
ENTRY = re.compile(rf"^(\s*[-*]\s*\[)([ xX])(\]\s*(?:\*\*)?Phase\s+({NUMBER})\s*[:.—–-]\s*(.*?))\s*$")

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_MILESTONE = re.compile(r"(?<![\w.-])v\d+(?:\.\d+)*(?![\w.]*-)")
_ROW = re.compile(rf"^\**(?:Phase\s+)?({NUMBER})(?!\s*[-–]\s*\d)(?=[\s.:*—–-]|$)")
_DONE = re.compile(r"[✓✅☑✔]|\bCOMPLETED?\s*(?:\([^()]*\))?\s*$", re.IGNORECASE)
_STATE = re.compile(
    r"\s*(?:\(INSERTED\)|[✓✅☑✔]\s*(?:COMPLETED?)?|\(?COMPLETED?\)?)(?:\s*\([^()]*\))?\s*$", re.IGNORECASE
)
_SHIPPED = re.compile(r"✅|\bshipped\b", re.IGNORECASE)
_RUNNING = re.compile(r"🚧|🔄|\bin progress\b", re.IGNORECASE)


@frozen(kw_only=True)
class Entry:
    """A line of the checklist of phases."""

    line: int
    number: str
    name: str
    text: str
    ticked: bool
    milestone: str
    shipped: bool


@frozen(kw_only=True)
class Section:
    """The details of a phase: its heading at *line*, its text up to *end* (exclusive).

    *done* says that the heading itself bears a mark (``✓ COMPLETE``).
    """

    line: int
    end: int
    number: str
    name: str
    done: bool
    milestone: str
    shipped: bool


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


@frozen(kw_only=True)
class Milestone:
    """A heading that names a milestone, outside of ``<details>``."""

    version: str
    name: str
    shipped: bool
    running: bool


@define
class _Place:
    """Where the scan is."""

    fenced: bool = False
    details: int = 0
    milestone: str = ""
    columns: dict[str, int] = field(factory=dict[str, int])


@define
class Roadmap:
    """What stands where in a ROADMAP.md."""

    lines: list[str]
    entries: list[Entry] = field(factory=list[Entry])
    sections: list[Section] = field(factory=list[Section])
    rows: list[Row] = field(factory=list[Row])
    milestones: list[Milestone] = field(factory=list[Milestone])

    def current(self, preferred: str = "") -> Milestone | None:
        """Return the milestone in progress: marked so, else *preferred*, else the next, else the last."""
        for chosen in (
            [m for m in self.milestones if m.running and not m.shipped],
            [m for m in self.milestones if preferred and m.version == preferred],
            [m for m in self.milestones if not m.shipped],
            self.milestones[-1:],
        ):
            if chosen:
                return chosen[0]
        return None

    def marks(self) -> tuple[Section | Entry, ...]:
        """Return everything that names a phase: the sections first."""
        return (*self.sections, *self.entries)

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
        if re.match(r"\s*(```|~~~)", line):
            place.fenced = not place.fenced
        elif not place.fenced:
            _see(roadmap, place, at, line)
    return roadmap


def _see(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    place.details = max(0, place.details + _opened(line))
    if match := PHASE.match(line):
        roadmap.sections.append(
            Section(
                line=at,
                end=_end(roadmap.lines, at, len(match[1])),
                number=normal_phase(match[2]),
                name=_name(match[3] or ""),
                done=bool(_DONE.search(match[3] or "")),
                milestone=place.milestone,
                shipped=place.details > 0,
            )
        )
    elif match := ENTRY.match(line):
        roadmap.entries.append(_entry(match, at, place))
    elif match := _HEADING.match(line):
        _see_milestone(roadmap, place, match)
    else:
        _see_row(roadmap, place, at, line)


def _name(text: str) -> str:
    """Return a phase's name without what a heading says about its state."""
    return prose(_STATE.sub("", text))


def _opened(line: str) -> int:
    opening = re.match(r"\s*<details\b", line, re.IGNORECASE) is not None
    closing = re.search(r"</details>\s*$", line, re.IGNORECASE) is not None
    return opening - closing


def _end(lines: list[str], at: int, level: int) -> int:
    for i in range(at + 1, len(lines)):
        heading = _HEADING.match(lines[i])
        if (heading and len(heading[1]) <= level) or PHASE.match(lines[i]) or "</details>" in lines[i]:
            return i
    return len(lines)


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
        shipped=place.details > 0,
    )


def _see_milestone(roadmap: Roadmap, place: _Place, heading: re.Match[str]) -> None:
    version = _MILESTONE.search(heading[2])
    if place.details or len(heading[1]) not in (2, 3) or not version:
        return
    place.milestone = version[0]
    name = re.sub(r"\s*\((?:[^()]*)\)\s*$", "", heading[2][version.end() :]).strip(" :—–-")
    roadmap.milestones.append(
        Milestone(
            version=version[0],
            name=prose(name),
            shipped=bool(_SHIPPED.search(heading[2])),
            running=bool(_RUNNING.search(heading[2])),
        )
    )


def _see_row(roadmap: Roadmap, place: _Place, at: int, line: str) -> None:
    row = [cell.strip() for cell in cells(line)]
    if not row:
        place.columns = {}
    elif row[0].lower() == "phase":
        place.columns = _columns(row)
    elif place.columns and (match := _ROW.match(row[0])):
        roadmap.rows.append(
            Row(line=at, number=normal_phase(match[1]), cells=tuple(row), columns=place.columns)
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
        if not mark.shipped and mark.milestone in wanted and mark.number not in seen:
            seen.add(mark.number)
            yield mark
