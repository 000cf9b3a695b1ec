"""The next milestone of a project: its version, its phase numbers and requirement ids, and its files.

Numbers continue where the earlier milestones ended, and no id of a requirement is used twice: commits,
SUMMARYs and archives refer to them. The form of the files is that of GSD's ``new-milestone`` and of its
template of a roadmap that is grouped by milestones (gsd-core 1.14).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gsd_core.errors import PlanningError
from gsd_core.files import list_below
from gsd_core.model.ids import phase_order

from .markdown import Lines, bullets, cell, cells, inline, paragraphs, read_text, table, title
from .milestones import is_version, listed_milestone, merged
from .model import PlannedPhase
from .numbers import is_backlog, last_number
from .phases import every_folder
from .requirements import parse_requirements
from .roadmap import parse_roadmap, phase_section
from .roadmap_edit import new_cell
from .state import section_lines
from .survey import ARCHIVE, survey

_ID = re.compile(r"(.*-)(\d+)([a-z]?)")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t#]*$")


def next_version(root: Path) -> str:
    """Return the version after the newest of a project: ``v1.0`` → ``v1.1``, ``v0.11.0`` → ``v0.12.0``.

    If its milestones have names instead, a number at the end counts on: ``M6`` → ``M7``.
    """
    newest = survey(root).newest or "v1.0"
    if not is_version(newest):
        named = re.fullmatch(r"(.*?)(\d+)", newest)
        return f"{named[1]}{int(named[2]) + 1:0{len(named[2])}}" if named else "v1.0"
    numbers = re.findall(r"\d+", newest)
    minor = int(numbers[1]) + 1 if len(numbers) > 1 else 1
    return ".".join([f"v{numbers[0]}", str(minor), *("0" for _ in numbers[2:])])


def next_phase_number(root: Path) -> str:
    """Return the first integer after the numbers of all phases that a project has or had."""
    found = survey(root)
    numbers = [phase.number for phase in found.roadmap_phases]
    numbers += [folder.number for folder in every_folder(root)]
    for entry in list_below(root, ARCHIVE):
        if entry.kind == "folder" and entry.name.endswith("-phases"):
            numbers += [folder.number for folder in every_folder(root, f"{ARCHIVE}/{entry.name}")]
    numbers += [number for milestone in found.milestones for number in milestone.phases]
    return str(last_number(one for one in numbers if not is_backlog(one)) + 1)


def used_requirement_ids(root: Path) -> frozenset[str]:
    """Return the ids of the requirements of earlier milestones, from their archives."""
    names = [entry.name for entry in list_below(root, ARCHIVE) if entry.kind == "file"]
    paths = [f"{ARCHIVE}/{name}" for name in names if re.search(r"REQUIREMENTS\.md$", name, re.IGNORECASE)]
    if (root / ".planning/REQUIREMENTS.md").exists():
        paths.append(".planning/REQUIREMENTS.md")
    found: set[str] = set()
    for path in paths:
        with suppress(PlanningError):  # an archive is history: a broken one must not stop new work
            found |= {one.id for one in parse_requirements(read_text(root, path))}
    return frozenset(found)


def free_ids(wanted: Sequence[str], used: Collection[str]) -> dict[str, str]:
    """Return the new id of each wanted one: itself, or the next free number if it was *used* before."""
    new: dict[str, str] = {}
    taken = {*used}
    highest: dict[str, int] = {}
    for one in (*used, *wanted):
        if match := _ID.fullmatch(one):
            highest[match[1]] = max(highest.get(match[1], 0), int(match[2]))
    for one in wanted:
        match = _ID.fullmatch(one)
        if one not in taken or not match:
            new[one] = one
        else:
            highest[match[1]] += 1
            new[one] = f"{match[1]}{highest[match[1]]:0{len(match[2])}d}"
        taken.add(new[one])
    return new


def begin_milestone(text: str, version: str, name: str, goal: str, phases: Sequence[PlannedPhase]) -> str:
    """Add a milestone and its *phases* to a ROADMAP.md whose milestones have all shipped."""
    roadmap = parse_roadmap(text)
    known = merged(roadmap.milestones, roadmap.folded, roadmap.listed)
    lines = Lines.of(text.rstrip("\n") + "\n")
    numbers = sorted((phase.number for phase in phases), key=phase_order)
    extent = f"Phases {numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"Phase {numbers[0]}"
    entry = f"- 🚧 **{version} {title(name)}** — {extent} (in progress)"
    if section := section_lines(lines, "milestones"):
        listed = [listed_milestone(lines[at]) for at in range(*section)]
        planned = [at for at, one in enumerate(listed, section[0]) if one and one.version == version]
        lines.lines[slice(planned[0], planned[0] + 1) if planned else slice(0)] = []
        lines.insert(planned[0] if planned else lines.before_blank(*section), [entry])
    else:
        shipped = [f"- ✅ **{one.version} {title(one.name)}**" for one in known]
        at = next((at + 1 for at in range(len(lines)) if lines[at].startswith("# ")), 0)
        lines.insert(at, ["", "## Milestones", "", *shipped, entry])
    _add_rows(lines, version, phases)
    lines.insert(_end_of_phases(lines), ["", *_milestone_lines(version, name, goal, phases), ""])
    return re.sub(r"\n{3,}", "\n\n", str(lines))


def _milestone_lines(version: str, name: str, goal: str, phases: Sequence[PlannedPhase]) -> Iterator[str]:
    named = f"{version} {title(name)}" if is_version(version) else f"Milestone {version}: {title(name)}"
    yield f"### 🚧 {named} (In Progress)"
    yield ""
    yield f"**Milestone Goal:** {inline(goal)}"
    yield ""
    for phase in phases:
        yield f"- [ ] **Phase {phase.number}: {title(phase.name)}** - {inline(phase.goal)}"
    for phase in phases:
        yield ""
        yield from phase_section(phase, level=4, nothing="Nothing in this milestone")


def _end_of_phases(lines: Lines) -> int:
    """Return the line before which the new milestone goes: after the last one, before Progress or Backlog."""
    before = _heading_line(lines, "progress", "backlog")
    if before is not None:
        return before
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].strip() and lines[at].strip() != "---" and not lines[at].startswith("*"):
            return at + 1
    return len(lines)


def _add_rows(lines: Lines, version: str, phases: Sequence[PlannedPhase]) -> None:
    """Add the phases to the progress table, which gets one if there is none; its columns decide the cells."""
    section = section_lines(lines, "progress")
    if not section:
        head = table(("Phase", "Milestone", "Plans Complete", "Status", "Completed"), [])
        lines.insert(lines.before_blank(0, len(lines)), ["", "## Progress", "", *head.split("\n")])
        section = section_lines(lines, "progress") or (0, len(lines))
    rows = [at for at in range(*section) if cells(lines[at])]
    if not rows:
        return
    names = [name.strip().lower() for name in cells(lines[rows[0]])]
    values = [version if name == "milestone" else new_cell(name) for name in names[1:]]
    new = [[f"{phase.number}. {cell(title(phase.name))}", *values] for phase in phases]
    lines.insert(rows[-1] + 1, [f"| {' | '.join(row)} |" for row in new])


def begin_in_project(
    text: str, version: str, name: str, goal: str, features: Sequence[str], active: Sequence[str], date: str
) -> str:
    """Say in PROJECT.md what the new milestone is, and list its requirements as active."""
    lines = Lines.of(text)
    own = [
        f"## Current Milestone: {version} {title(name)}",
        "",
        f"**Goal:** {paragraphs(inline(goal))}",
        "",
        "**Target features:**",
        *bullets(features).split("\n"),
        "",
    ]
    before = _heading_line(lines, "requirements") or _heading_line(lines, "context")
    if before:
        lines.insert(before, own)
    else:
        lines.insert(len(lines), ["", *own])
    add_to_section(lines, "active", [f"- [ ] {inline(one)}" for one in active])
    return with_footer(str(lines), f"{inline(date)} after starting {version}")


def add_to_section(lines: Lines, name: str, new: Sequence[str]) -> None:
    """Add items to a list of PROJECT.md, such as that under ``### Active``, if it has that section."""
    start, end = section_lines(lines, name) or (0, 0)
    known = {lines[at].strip() for at in range(start, end)}
    new = [one for one in new if one not in known]
    if not start or not new:
        return
    for at in range(start, end):
        if re.fullmatch(r"\(None.*\)", lines[at].strip()):
            lines[at] = new[0]
            lines.insert(at + 1, new[1:])
            return
    at = lines.before_blank(start, end)
    lines.insert(at, [*([""] if at == start else []), *new])


def _heading_line(lines: Lines, *names: str) -> int | None:
    for at in range(len(lines)):
        heading = HEADING.match(lines[at])
        if heading and len(heading[1]) == 2 and heading[2].lower() in names:
            return at
    return None


def with_footer(text: str, words: str) -> str:
    """Return PROJECT.md with its last line saying when it was updated; without such a line, unchanged."""
    line = f"*Last updated: {words}*\n"
    return re.sub(r"^\*Last updated:.*\*\s*$", lambda _: line, text, flags=re.MULTILINE)
