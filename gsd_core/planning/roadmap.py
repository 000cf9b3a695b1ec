"""ROADMAP.md: read it, and write a new one; :mod:`.roadmap_edit` changes it.

The format is that of GSD: the template and parser of v1.20.5, and what the parser of gsd-core 1.14
accepts beyond that. Both are read; new files have the shape of v1.20.5. A phase is named in one or
more of three places:

- a section with its details: ``### Phase 2: Login``, fields, a list of plans;
- a line of the checklist: ``- [ ] **Phase 2: Login** - users sign in``;
- a row of a table of phases, which has a column ``Name``.

A table with a column ``Status`` also holds the progress of its phases. Code fences are
skipped, and ``<details>`` contain milestones that have shipped. Lines count from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase, padded, phase_order

from .markdown import cells, document, inline, paragraphs, prose, table, title
from .milestones import (
    OPEN,
    Evidence,
    Milestone,
    Standing,
    begins_milestone,
    listed_milestone,
    milestone_of,
    same_version,
    says_shipped,
    standing_of,
)
from .model import PlannedPhase
from .numbers import CODE, NUMBER, SERIES, TOKEN, is_backlog, phase_numbers
from .plan import full_plan_id
from .requirements import requirement_ids

PATH = ".planning/ROADMAP.md"
MAX_PHASES = 500
PHASE_FORMS = "'### Phase 1: NAME' or '- [ ] **Phase 1: NAME** - GOAL'"
"""How a roadmap names a phase, for hints."""

# A heading of level 2 to 4, with or without a space after the hashes (gsd-core does not need it):
# "### Phase 2.1: Login", "### 🚧 [API] Phase 26 (Cluster B): Login", "### [GSD.02] 05: Login".
PHASE_HEADING = re.compile(
    r"^ {0,3}(?P<hashes>#{2,4})\s*(?:[^\w\s#\[]+\s+)*"
    rf"(?:\[(?P<code>{CODE})\]\s*(?:Phase\s+)?(?P<bracketed>{NUMBER})"
    rf"|(?:\[[^\]]*\]\s*)*Phase\s+(?P<number>{TOKEN}))"
    r"(?:\s*\([^)]*\))?\s*(?:[:.—–-]\s*(?P<name>.*))?$",
    re.IGNORECASE,
)
# "- [ ] **Phase 1: Login** - text", "- [x] Phase 1: Login (2/2 plans) — completed DATE"
CHECKLIST_LINE = re.compile(
    rf"^(\s*[-*]\s*\[)([ xX])(\]\s*(?:\*\*)?(?:\[{CODE}\]\s*(?:Phase\s+)?|(?:\[[^\]]*\]\s*)*Phase\s+)"
    rf"({TOKEN})(?:\s*\([^)]*\))?\s*[:.—–-]\s*(.*))$"
)
# "- [ ] 01-01: text", "- [x] 01-01-PLAN.md — text", "- [ ] **Plan 01-01**"
PLAN_LINE = re.compile(
    r"^(\s*[-*]\s*\[)([ xX])(\]\s*(?:\*\*)?`?(?:Plan\s+)?"
    r"([A-Za-z0-9][\w.-]{0,99}?)(?:-PLAN)?(?:\.md)?`?(?:\*\*)?"
    r"(?:\s+[:—–-]+\s*|[:—–]+\s*|\s+|$)(.*))$"
)
# "**Goal**: text", "- **Goal:** text", "**Success Criteria** (what must be TRUE):"
FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?\*\*([A-Za-z][A-Za-z /]{0,40}?)"
    r"(?::\*\*|\s*\([^)]{0,99}\):\*\*|\*\*(?:\s*\([^)]{0,99}\))?\s*:)\s*(.*)$"
)
_FIELD_NAMES = {
    "dependencies": "depends on",
    "depends": "depends on",
    "success criterion": "success criteria",
}
_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+(?:\[[ xX]\]\s+)?(.*)$")
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
RULE = re.compile(r"\s{0,3}(?:-{3,}|\*{3,}|_{3,})\s*$")
"""A horizontal rule; what follows one is no longer about the phase above it."""
_ARCHIVE_LINK = re.compile(r"\bmilestones/(v\d[\d.]{0,20})-ROADMAP\.md", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary[^>]{0,200}>([^<]*)", re.IGNORECASE)

# The first cell of a row begins with one phase, not with a range ("1-4" counts a whole milestone).
ROW_NUMBER = re.compile(rf"^(?:Phase\s+)?({SERIES}|[A-Z]?{NUMBER})(?!\s*[-–]\s*\d)(?=[\s.:*—–-]|$)")
_PHASE_COLUMN = re.compile(r"Phase(?:\s*(?:#|no\.?|number))?", re.IGNORECASE)
_NAME_COLUMN = re.compile(r"(?:phase\s+)?name", re.IGNORECASE)

_DONE = re.compile(r"[✓✅☑✔]|\bCOMPLETED?\s*(?:\([^()]*\))?$", re.IGNORECASE)
_STATE = re.compile(
    r"\s?(?:\(INSERTED\)|[✓✅☑✔]\s?(?:COMPLETED?)?|\(?COMPLETED?\)?)(?:\s?\([^()]*\))?$", re.IGNORECASE
)
_COMPLETE = re.compile(
    r"(?=.*(?:[✓✅☑✔]|complete))\W*(?:completed?)?\W*(?:\d{4}-\d\d-\d\d\W*)?", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"(?:TBD|TBC|\[[^\]]*\])?\.?$", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class _Place:
    """A place that names a phase.

    *code* is ``GSD.02`` where the line names ``[GSD.02] 05``. *near*: its *milestone* is only that of the
    last heading above, if any; nothing says that it belongs to it.
    """

    line: int
    number: str
    name: str
    milestone: str
    code: str = ""
    shipped: bool = False
    near: bool = False


@attrs.frozen(kw_only=True)
class Entry(_Place):
    """A phase in the checklist or in a table of phases; *text* is what follows the name."""

    text: str
    ticked: bool


@attrs.frozen(kw_only=True)
class Section(_Place):
    """The section of a phase: its heading is at *line*, its text goes up to *end* (exclusive).

    *done*: the heading has a mark such as ``✓ COMPLETE``.
    """

    end: int
    done: bool


Mention: TypeAlias = Section | Entry
"""A place where the roadmap names a phase."""


@attrs.frozen(kw_only=True)
class Row:
    """A row of a progress table; *columns* are the indexes of its columns.

    *milestone* is empty unless the table has a column for it.
    """

    line: int
    number: str
    milestone: str
    shipped: bool
    cells: tuple[str, ...]
    columns: dict[str, int]

    def text(self, column: str) -> str:
        """Return the text of a column, empty if the table does not have it."""
        index = self.columns.get(column, len(self.cells))
        return self.cells[index].strip() if index < len(self.cells) else ""

    def completes(self, phase: str) -> bool:
        """Whether the row says that it is complete, and its name is that of *phase*, or missing.

        It may be the row of an earlier phase that had the same number.
        """
        own, name = ROW_NUMBER.sub("", self.cells[0].strip("* ")).strip(" .:*—–-").lower(), phase.lower()
        return (own in name or own.startswith(name)) and any(map(says_complete, self.cells[1:]))


SomePlace = TypeVar("SomePlace", Section, Entry, Row)
SomeMention = TypeVar("SomeMention", Section, Entry)


@attrs.frozen(kw_only=True)
class PlanLine:
    """A line of a phase's list of plans."""

    line: int
    id: str
    text: str
    ticked: bool

    @property
    def placeholder(self) -> bool:
        """Whether the line is from a template and promises no plan: ``01-01: TBD``."""
        return _PLACEHOLDER.match(self.text) is not None and bool(self.text)


@attrs.frozen(kw_only=True)
class Details:
    """The fields of a phase's section."""

    goal: str
    depends_on: tuple[str, ...]
    requirements: tuple[str, ...]
    criteria: tuple[str, ...]
    plans: tuple[PlanLine, ...]


@attrs.define(kw_only=True)
class Roadmap:
    """The parts of a ROADMAP.md.

    *entries* are the lines of the checklist, *table_entries* the rows of tables of phases.
    *milestones* have a heading, *folded* ones are in ``<details>``, *listed* ones in the list of
    milestones. *unclosed* is the line of a code fence or ``<details>`` without an end, -1 if none.
    """

    lines: list[str]
    entries: list[Entry] = attrs.field(factory=list[Entry])
    sections: list[Section] = attrs.field(factory=list[Section])
    rows: list[Row] = attrs.field(factory=list[Row])
    table_entries: list[Entry] = attrs.field(factory=list[Entry])
    milestones: list[Milestone] = attrs.field(factory=list[Milestone])
    folded: list[Milestone] = attrs.field(factory=list[Milestone])
    listed: list[Milestone] = attrs.field(factory=list[Milestone])
    unclosed: int = -1

    def current(self, version: str = "") -> Milestone | None:
        """Return the milestone *version*, by default the one in progress as far as the roadmap shows it."""
        standing = self.standing(Evidence(version=version))
        found = next((one for one in standing.milestones if one.version == version), None)
        return found if found and not found.shipped else standing.running

    def standing(self, evidence: Evidence) -> Standing:
        """Return the milestones, and the one in progress by the roadmap and the *evidence* of other files."""
        alive = [one for one in self.mentions() if not one.shipped and not is_backlog(one.number)]
        owners: dict[str, str] = {}
        if at := next((one for one in alive if one.number == evidence.phase and not one.near), None):
            owners["the phase that STATE.md names"] = at.milestone
        begun = sorted(alive, key=lambda one: phase_order(one.number))
        if at := next((one for one in begun if not self.is_complete(one)), None):
            owners[OPEN] = at.milestone
        elif begun:
            owners["the last phase"] = begun[-1].milestone
        named = {
            "a heading of ROADMAP.md": self.milestones,
            "the list in ROADMAP.md": self.listed,
            "what ROADMAP.md folds": self.folded,
        }
        standing = standing_of(named, evidence, owners)
        is_known = standing.running and standing.running in standing.milestones
        return standing if alive or is_known else attrs.evolve(standing, running=None)

    def mentions(self) -> tuple[Mention, ...]:
        """Return every mention of a phase: sections, then the checklist, then tables of phases.

        As in gsd-core, a table counts only for phases that are not named elsewhere.
        """
        named = {section.number for section in self.sections} | {entry.number for entry in self.entries}
        gone = {number for one in (*self.folded, *self.listed) if one.shipped for number in one.phases}
        in_tables = (entry for entry in self.table_entries if entry.number not in named | gone)
        return (*self.sections, *self.entries, *in_tables)

    def phases(self, milestone: Milestone | None) -> Iterator[Mention]:
        """Yield each phase of a milestone once, and those outside of all milestones; no backlog.

        A milestone that the roadmap does not name has those that only follow the heading of another one.
        """
        alive = [one for one in self.mentions() if not one.shipped and not is_backlog(one.number)]
        version = milestone.version if milestone else ""
        named = any(one.milestone == version and not one.near for one in alive)
        seen: set[str] = set()
        for mention in alive:
            own = mention.milestone in ("", version) or (mention.near and version and not named)
            if own and mention.number not in seen:
                seen.add(mention.number)
                yield mention

    def section(self, number: str) -> Section | None:
        """Return the section of a phase, the last one if its number was used before."""
        return last_mention(self.sections, number)

    def entry(self, number: str) -> Entry | None:
        """Return the checklist line of a phase."""
        return last_mention(self.entries, number)

    def row(self, number: str) -> Row | None:
        """Return the progress row of a phase, preferably the one that names its milestone."""
        same = [row for row in self.rows if row.number == number]
        mention = self.section(number) or self.entry(number)
        own = [row for row in same if mention and row.text("milestone") == mention.milestone]
        return next(reversed(own or same), None)

    def is_complete(self, mention: Mention) -> bool:
        """Return whether a place says that a phase is complete: checkbox, heading, ``Status``, progress row.

        A number can be used again in a later milestone: the place in the phase's own one counts, if any.
        """

        def own(places: Sequence[SomePlace]) -> Iterator[SomePlace]:
            same = [one for one in places if one.number == mention.number]
            home = (mention.milestone, mention.shipped)
            if found := [one for one in same if (one.milestone, one.shipped) == home] or same:
                yield next((one for one in reversed(found) if not one.shipped), found[-1])

        entries = [mention] if isinstance(mention, Entry) else [*own(self.entries)]
        if any(entry.ticked for entry in entries):
            return True
        for section in own(self.sections):
            status = _field(self.lines[section.line + 1 : section.end], "status")
            if section.done or says_complete(status):
                return True
        return any(
            row.completes(mention.name) or (not entries and any(map(says_complete, row.cells[1:])))
            for row in own(self.rows)
        )

    def details(self, mention: Mention) -> Details:
        """Return the fields of a phase; of one that only has an entry, the goal is the entry's text."""
        section = mention if isinstance(mention, Section) else self.section(mention.number)
        lines = self.lines[section.line + 1 : section.end] if section else []
        text = mention.text if isinstance(mention, Entry) else ""
        number = mention.number
        return Details(
            goal=_field(lines, "goal") or text,
            depends_on=phase_numbers(_field(lines, "depends on"), series="-" in number),
            requirements=requirement_ids(_field(lines, "requirements")),
            criteria=tuple(_criteria(lines)),
            plans=tuple(plan_lines(lines, number, section.line + 1 if section else 0)),
        )


def says_complete(status: str) -> bool:
    """Return whether a status is ``Complete`` in any form: ``✅ **Complete** (2026-01-31)``, ``✓``."""
    return len(status) < 100 and _COMPLETE.fullmatch(status) is not None


def last_mention(mentions: Sequence[SomeMention], number: str) -> SomeMention | None:
    """Return the last mention of a phase; one that has not shipped comes first."""
    same = [mention for mention in mentions if mention.number == number]
    in_progress = [mention for mention in same if not mention.shipped]
    return next(reversed(in_progress or same), None)


def check_names_phases(roadmap: Roadmap) -> None:
    """Raise :class:`PlanningError` if a roadmap exists, but its structure hides or lacks all phases.

    Without this, a run would take the project for a new one. A roadmap whose milestones have all
    shipped is not an error.
    """
    if roadmap.unclosed >= 0 and all(mention.shipped for mention in roadmap.mentions()):
        opening = roadmap.lines[roadmap.unclosed].strip()[:40]
        closing = "</details>" if opening.startswith("<") else opening[:3]
        raise PlanningError(
            f"names no phase in progress: what follows {opening!r} is hidden, as it is never closed",
            path=PATH,
            line=roadmap.unclosed + 1,
            hint=f"close it with {closing!r}; a phase is named like {PHASE_FORMS}",
        )
    if not roadmap.mentions() and not (roadmap.milestones or roadmap.folded or roadmap.listed):
        what = "names no phase" if any(line.strip() for line in roadmap.lines) else "is empty"
        hint = f"name each phase like {PHASE_FORMS}, or restore the file from git"
        raise PlanningError(what, path=PATH, line=1, hint=hint)


def parse_roadmap(text: str) -> Roadmap:
    """Return the parts of a ROADMAP.md; line ends do not matter."""
    parser = _Parser(Roadmap(lines=[line.rstrip("\r") for line in text.split("\n")]))
    for at, line in enumerate(parser.roadmap.lines):
        parser.read_line(at, line.rstrip())
    roadmap = parser.roadmap
    roadmap.unclosed = parser.fence if parser.fence >= 0 else parser.outermost_details
    claims = _claims(roadmap)
    roadmap.sections = [_claimed(roadmap, one, claims) for one in roadmap.sections]
    roadmap.entries = [_claimed(roadmap, one, claims) for one in roadmap.entries]
    roadmap.table_entries = [_claimed(roadmap, one, claims) for one in roadmap.table_entries]
    return roadmap


def _claims(roadmap: Roadmap) -> dict[str, set[str]]:
    """Return the milestones that name a phase as theirs, by number: by a heading, a list or a table."""
    claims: dict[str, set[str]] = {}
    milestones = [*roadmap.milestones, *roadmap.folded, *roadmap.listed]
    versions = [one.version for one in milestones]
    for one in milestones:
        for number in one.phases:
            claims.setdefault(number, set()).add(one.version)
    for row in roadmap.rows:
        if named := milestone_of(row.text("milestone")):
            claims.setdefault(row.number, set()).add(same_version(named.version, versions))
    mentions: list[Mention] = [*roadmap.sections, *roadmap.entries]
    for mention in mentions:
        if not mention.near:
            claims.setdefault(mention.number, set()).add(mention.milestone)
    return claims


def _claimed(roadmap: Roadmap, mention: SomeMention, claims: Mapping[str, set[str]]) -> SomeMention:
    """Return the mention with the milestone that claims its phase, if it is in no milestone's own part."""
    if mention.shipped or not mention.near:
        return mention
    whole = re.match(r"\d+", mention.number)
    found = claims.get(mention.number) or claims.get(whole[0] if whole else "", set())
    over = {one.version for one in (*roadmap.milestones, *roadmap.folded, *roadmap.listed) if one.shipped}
    # A number may be used again: a shipped milestone has only the phases that are complete.
    found = found - over or (found if roadmap.is_complete(mention) else set())
    return attrs.evolve(mention, milestone=next(iter(found)), near=False) if len(found) == 1 else mention


@attrs.define
class _Parser:
    """Reads a roadmap line by line and keeps track of the part that contains the current line."""

    roadmap: Roadmap
    fence: int = -1  # the line of the code fence that is open
    details: int = 0  # how many <details> are open
    outermost_details: int = -1
    above: list[tuple[int, Milestone]] = attrs.field(factory=list[tuple[int, Milestone]])  # open headings
    last: str = ""  # the last milestone with a heading
    folded: str = ""  # the milestone that <details> fold
    shipped: bool = False
    heading: str = ""
    columns: dict[str, int] = attrs.field(factory=dict[str, int])
    name_column: int = 0

    def read_line(self, at: int, line: str) -> None:
        bare = line.lstrip()
        if bare.startswith(("```", "~~~")):
            self.fence = at if self.fence < 0 else -1
            return
        if not bare or self.fence >= 0:
            return
        match bare[0]:
            case "<":
                self._read_tag(at, line)
            case "#":
                self._read_heading(at, line)
            case "-" | "*":
                self._read_bullet(at, line)
            case _:
                pass
        if line.endswith("</details>"):
            self.details = max(0, self.details - 1)
            if not self.details:
                self.folded, self.outermost_details = "", -1
        self._read_row(at, line)
        for version in [] if self.details else _ARCHIVE_LINK.findall(line):
            known = [one.version for one in (*self.roadmap.listed, *self.roadmap.milestones)]
            if same_version(version, known) not in known:
                self.roadmap.listed.append(Milestone(version=version, name="", shipped=False, running=False))
        # A larger file would later take quadratic time; real roadmaps have dozens of phases.
        roadmap = self.roadmap
        mentions = (roadmap.sections, roadmap.entries, roadmap.table_entries, roadmap.rows)
        milestones = (roadmap.milestones, roadmap.folded, roadmap.listed)
        if any(len(group) > MAX_PHASES for group in (*mentions, *milestones)):
            message = f"names more than {MAX_PHASES} phases or milestones"
            hint = "move shipped milestones to .planning/milestones/"
            raise PlanningError(message, path=PATH, line=at + 1, hint=hint)

    def _read_tag(self, at: int, line: str) -> None:
        if re.match(r"\s*<details\b", line, re.IGNORECASE):
            if not self.details:
                self.outermost_details = at
            self.details += 1
            self.shipped = True
        if (summary := _SUMMARY.search(line)) and self.details and (named := milestone_of(summary[1])):
            # A milestone may be folded while it is in progress; only then its summary says so.
            self.folded, self.shipped = named.version, not named.running
            milestone = attrs.evolve(named, shipped=self.shipped)
            (self.roadmap.folded if self.shipped else self.roadmap.milestones).append(milestone)

    def _read_heading(self, at: int, line: str) -> None:
        if match := PHASE_HEADING.match(line):
            name, level = match["name"] or "", len(match["hashes"])
            section = Section(
                **self._place(at, match["number"] or match["bracketed"], level),
                end=self._end_of_section(at, level),
                name=prose(_STATE.sub("", name)),
                done=bool(_DONE.search(name)),
                code=match["code"] or "",
            )
            self.roadmap.sections.append(section)
        elif heading := HEADING.match(line):
            self.heading = heading[2].strip().lower()
            level = len(heading[1])
            if not self.details:
                self.above = [one for one in self.above if one[0] < level]
            if level in (2, 3) and not self.details and (named := milestone_of(heading[2])):
                self.above.append((level, named))
                if begins_milestone(heading[2].strip()):
                    self.last = named.version
                    self.roadmap.milestones.append(named)

    def _place(self, at: int, number: str, level: int = 7) -> dict[str, Any]:
        """Return the fields that all places which name a phase have in common."""
        milestone = self._milestone(level)
        about = {"milestone": milestone or self.last, "near": not milestone}
        shipped = self.details > 0 and self.shipped
        return {"line": at, "number": normal_phase(number), "shipped": shipped, **about}

    def _milestone(self, level: int) -> str:
        """Return the milestone that the current line is a part of, empty if it is in none.

        A heading that only mentions a version ("Phases of v1.1") is about a milestone if phases are below it.
        """
        if self.folded:
            return self.folded
        for above, named in reversed(self.above):
            if named not in self.roadmap.milestones and level > above:
                self.roadmap.milestones.append(named)
            if named in self.roadmap.milestones:
                return named.version
        return ""

    def _end_of_section(self, at: int, level: int) -> int:
        lines = self.roadmap.lines
        for i in range(at + 1, len(lines)):
            if "</details>" in lines[i]:
                return i
            if lines[i].lstrip().startswith("#"):
                heading = HEADING.match(lines[i])
                if (heading and len(heading[1]) <= level) or PHASE_HEADING.match(lines[i].rstrip()):
                    return i
        return len(lines)

    def _read_bullet(self, at: int, line: str) -> None:
        if match := CHECKLIST_LINE.match(line):
            name, _, text = match[5].partition("**")
            if not text:
                name, _, text = re.sub(r"\s*\(\d+/\d+ plans?\)", "", name).partition(" — ")
            entry = Entry(
                **self._place(at, match[4]),
                name=prose(name),
                text=prose(re.sub(r"^\s*[-—–:]\s*", "", text)),
                ticked=match[2] in "xX",
                code=code[1] if (code := re.search(rf"\[({CODE})\]", match[3])) else "",
            )
            self.roadmap.entries.append(entry)
        elif self.heading.endswith("milestones") and not self.details and (named := listed_milestone(line)):
            # "## Shipped Milestones" says for all of its lines what they are.
            shipped = named.shipped or (not named.running and says_shipped(self.heading))
            self.roadmap.listed.append(attrs.evolve(named, shipped=shipped))

    def _read_row(self, at: int, line: str) -> None:
        row = [cell.strip() for cell in cells(line)]
        if not row:
            self.columns, self.name_column = {}, 0
            return
        if _PHASE_COLUMN.fullmatch(row[0]):
            names = ["plans" if name.startswith("plans") else name for name in map(str.lower, row)]
            # Without a status, it is not a table of progress.
            wanted = ("plans", "status", "completed", "milestone") if "status" in names else ()
            self.columns = {name: i for i, name in enumerate(names) if name in wanted}
            self.name_column = next((i for i, cell in enumerate(row) if _NAME_COLUMN.fullmatch(cell)), 0)
            return
        first = row[0].strip("* ")
        match = ROW_NUMBER.match(first) if self.columns or self.name_column else None
        if match is None:
            return
        column = self.columns.get("milestone", len(row))
        milestone = row[column] if column < len(row) else ""
        found = Row(
            line=at,
            number=normal_phase(match[1]),
            milestone=milestone if re.match(r"v\d", milestone) else "",
            shipped=self.details > 0 and self.shipped,
            cells=tuple(row),
            columns=self.columns,
        )
        if self.columns:
            self.roadmap.rows.append(found)
        if 0 < self.name_column < len(row) and match.end() == len(first):
            entry = Entry(
                **self._place(at, match[1]),
                name=prose(row[self.name_column].strip("* ")),
                text="",
                ticked=any(map(says_complete, row[1:])),
            )
            self.roadmap.table_entries.append(entry)


def _field(lines: Sequence[str], name: str) -> str:
    """Return the text of a field with the lines that continue it, empty if there is none."""
    for at, line in enumerate(lines):
        match = FIELD.match(line.rstrip())
        if not match or _field_name(match) != name:
            continue
        text = [match[2]]
        for more in lines[at + 1 :]:
            ends = not more.strip() or FIELD.match(more) or _ITEM.match(more)
            if ends or more.lstrip().startswith(("#", "|", "<", "Plans:")):
                break
            text.append(more.strip())
        return prose(" ".join(text))
    return ""


def _field_name(match: re.Match[str]) -> str:
    name = match[1].strip().lower()
    return _FIELD_NAMES.get(name, name)


def _criteria(lines: Sequence[str]) -> Iterator[str]:
    begun, item = False, ""
    for line in lines:
        line = line.rstrip()
        match = FIELD.match(line)
        if match and _field_name(match) == "success criteria":
            begun, item = True, match[2]
        elif not begun:
            continue
        elif match or line.startswith(("#", "|", "Plans:")) or PLAN_LINE.match(line) or RULE.match(line):
            break
        elif numbered := _ITEM.match(line):
            if item:
                yield prose(item)
            item = numbered[1]
        elif line.strip() and item:
            item += f" {line.strip()}"
    if item:
        yield prose(item)


def plan_lines(lines: Sequence[str], number: str, first: int) -> Iterator[PlanLine]:
    """Yield the lines of the list of plans; *first* is the line in the file of the first one given.

    A checkbox counts only if its id begins with the phase's number: sections also have other ones.
    """
    for at, line in enumerate(lines, start=first):
        match = PLAN_LINE.match(line.rstrip())
        if match and _belongs_to(match[4], number):
            plan = full_plan_id(match[4], number)
            yield PlanLine(line=at, id=plan, text=prose(match[5]), ticked=match[2] in "xX")


def _belongs_to(plan: str, number: str) -> bool:
    # The number of a phase may itself have hyphens (2-01, PROJ-42), so each of them may end it.
    head, dash, rest = plan.rpartition("-")
    while dash:
        if normal_phase(head) == number:
            return bool(rest)
        head, dash, rest = head.rpartition("-")
    return False


def render_roadmap(name: str, overview: str, phases: Sequence[PlannedPhase], date: str) -> str:
    """Return ROADMAP.md for a first milestone, in the shape of v1.20.5's template."""
    order = " → ".join(phase.number for phase in phases)
    rows = [(f"{phase.number}. {title(phase.name)}", "0/TBD", "Not started", "-") for phase in phases]
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
        *("\n".join(phase_section(phase, nothing="Nothing (first phase)")) for phase in phases),
        "## Progress",
        f"**Execution Order:**\nPhases execute in numeric order: {order}",
        table(("Phase", "Plans Complete", "Status", "Completed"), rows),
        f"---\n*Roadmap created: {inline(date)}*",
    ]
    return document(parts)


def phase_section(phase: PlannedPhase, *, level: int = 3, code: str = "", nothing: str) -> Iterator[str]:
    """Yield the lines of a phase's section; *nothing* is what it says if it depends on no other phase."""
    named = f"[{code}] {padded(phase.number)}" if code else f"Phase {phase.number}"
    needed = ", ".join(f"Phase {number}" for number in phase.depends_on)
    yield f"{'#' * level} {named}: {title(phase.name)}{' (INSERTED)' if phase.inserted else ''}"
    yield f"**Goal**: {inline(phase.goal)}"
    yield f"**Depends on**: {needed or nothing}"
    yield f"**Requirements**: {', '.join(map(inline, phase.requirements)) or 'None'}"
    if phase.criteria:
        yield "**Success Criteria** (what must be TRUE):"
    yield from (f"  {i}. {inline(text)}" for i, text in enumerate(phase.criteria, start=1))
    yield "**Plans**: TBD"
