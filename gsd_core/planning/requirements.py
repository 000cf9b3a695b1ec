"""REQUIREMENTS.md: read it, change it, write a new one.

A requirement is a line ``- [ ] **CORE-01**: text`` below the heading of its version (``## v1
Requirements``) and category (``### Core``). The traceability table maps it to its phase and status.
The shape is that of v1.20.5's template; other titles of sections and columns are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase

from .changes import MapRequirement
from .idea import read_idea, with_statements
from .markdown import Lines, cells, document, inline, prose, read_text, set_cell, table, title
from .model import PlannedPhase, Requirement
from .numbers import TOKEN
from .renumber import Renumbering, like

PATH = ".planning/REQUIREMENTS.md"
PREFIX = r"(?<![A-Z0-9_])[A-Z][A-Z0-9_]{0,30}(?:-[A-Z][A-Z0-9_]{0,30}){0,5}-"
ID = rf"{PREFIX}\d{{1,9}}[a-z]?"
MAX_IDS = 1_000
MAX_RANGE = 200
MAX_TEXT = 20_000
REQUIREMENT_LINE = re.compile(
    rf"^(\s*[-*]\s+)(?:(\[)([ xX])(\])\s+)?\*\*({ID})\*\*\s*(?:\([^)]*\)\s*)?[:—–-]?\s*(.*)$"
)

_HEADING = re.compile(r"^(#{2,4})\s+(.+)$")
_VERSION = re.compile(r"\bv\d+(?:\.\d+)*\b", re.IGNORECASE)
_RANGE = re.compile(
    rf"(?P<head>{PREFIX})(?P<low>\d{{1,9}})\s{{0,9}}(?:\.{{2,3}}|through|to|–|—)"
    r"\s{0,9}(?:[A-Z][A-Z0-9_-]{0,60}-)?(?P<high>\d{1,9})"
)


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the requirements in the order of the file; of two with the same id, the first."""
    traced: dict[str, tuple[str, str]] = {}
    for _, row, columns in _trace_rows(text):
        values = {name: row[i] for name, i in columns.items() if i < len(row)}
        number = re.search(rf"(?<![\w.]){TOKEN}", values.get("phase", ""))
        traced[row[0].strip("*` ")] = normal_phase(number[0]) if number else "", values.get("status", "")
    found: dict[str, Requirement] = {}
    for requirement in _listed(text):
        phase, status = traced.get(requirement.id, ("", ""))
        default = "Complete" if requirement.done else "Pending"
        found.setdefault(requirement.id, attrs.evolve(requirement, phase=phase, status=status or default))
    return tuple(found.values())


def read_requirements(root: Path) -> tuple[Requirement, ...]:
    """Return the requirements of the project at *root*, none if it has no such file."""
    if not (root / PATH).exists():
        return ()
    idea = read_idea(root)
    return with_statements(parse_requirements(read_text(root, PATH)), idea.statements if idea else ())


def requirement_ids(text: str) -> tuple[str, ...]:
    """Return the ids in *text* in order, with ranges (``API-01..04``) expanded; not those in comments."""
    found: dict[str, None] = {}
    for match in re.finditer(rf"{_RANGE.pattern}|{ID}", _without_comments(text[:MAX_TEXT])):
        ids = [match[0]]
        if match["head"]:
            low, high, width = int(match["low"]), int(match["high"]), len(match["low"])
            ids = [f"{match['head']}{n:0{width}d}" for n in range(low, min(high, low + MAX_RANGE) + 1)]
        found.update(dict.fromkeys(ids))
        if len(found) > MAX_IDS:
            break
    return tuple(found)


def _without_comments(text: str) -> str:
    # Not a pattern: with many "<!--" and no "-->", it would take quadratic time.
    kept, rest = "", text
    while "<!--" in rest and "-->" in rest:
        before, _, rest = rest.partition("<!--")
        kept, rest = kept + before, rest.partition("-->")[2]
    return kept + rest


def _listed(text: str) -> Iterator[Requirement]:
    version, category = "v1", ""
    for line in text.replace("\r\n", "\n").split("\n"):
        line = line.rstrip()
        if heading := _HEADING.match(line):
            if heading[1] == "##":
                version, category = _version(heading[2]), ""
            else:
                category = heading[2].rstrip("# ")
        elif (match := REQUIREMENT_LINE.match(line)) and version:
            words, done = prose(match[6]), (match[3] or " ") in "xX"
            yield Requirement(id=match[5], text=words, category=category, version=version, done=done)


def _version(heading: str) -> str:
    """Return the version of a section; empty for one that does not define requirements."""
    if match := _VERSION.search(heading):
        return match[0].lower()
    lowered = heading.lower()
    if any(word in lowered for word in ("out of scope", "traceability", "coverage")):
        return ""
    return "v2" if any(word in lowered for word in ("future", "later", "deferred")) else "v1"


def _trace_rows(text: str) -> Iterator[tuple[int, list[str], dict[str, int]]]:
    """Yield the rows below the head of the traceability table: line, cells, and indexes of the columns."""
    columns: dict[str, int] = {}
    for at, line in enumerate(text.replace("\r\n", "\n").split("\n")):
        row = [cell.strip() for cell in cells(line)]
        if not row:
            columns = {}
        elif row[0].lower() in ("requirement", "req", "id") and "phase" in map(str.lower, row):
            columns = {name.lower(): i for i, name in enumerate(row)}
        elif columns:
            yield at, row, columns


def map_requirement(text: str, change: MapRequirement) -> str:
    """Set the requirement's row, adding it to the table if there is none; ``Complete`` ticks its box."""
    lines = Lines.of(text)
    listed = _tick(lines, change)
    traced = _trace(lines, change, listed=listed)
    if not listed and not traced:
        message = f"has no requirement {change.requirement}"
        hint = f"add a line '- [ ] **{change.requirement}**: TEXT', or remove it from ROADMAP.md"
        raise PlanningError(message, path=PATH, hint=hint)
    return str(lines)


def _tick(lines: Lines, change: MapRequirement) -> bool:
    """Tick the requirement's box if it is complete; return whether the requirement is listed."""
    for at in range(len(lines)):
        match = REQUIREMENT_LINE.match(lines[at])
        if not match or match[5] != change.requirement:
            continue
        if change.status == "Complete" and match[3] == " ":
            lines[at] = f"{lines[at][: match.start(3)]}x{lines[at][match.end(3) :]}"
        return True
    return False


def _trace(lines: Lines, change: MapRequirement, *, listed: bool) -> bool:
    """Update the requirement's row, or add one if it is *listed*; return whether there is one now."""
    last, names = 0, dict[str, int]()
    for at, row, columns in _trace_rows(str(lines)):
        if last and at > last + 1:
            break  # another table
        last, names = at, columns
        if row[0].strip("*` ") == change.requirement:
            lines[at] = _set(lines[at], columns, change)
            return True
    if last and listed:
        blank = "|" + " - |" * len(names)
        lines.insert(last + 1, [_set(set_cell(blank, 0, change.requirement), names, change)])
    return bool(last and listed)


def _set(line: str, columns: Mapping[str, int], change: MapRequirement) -> str:
    for name, value in (("phase", f"Phase {change.phase}"), ("status", change.status)):
        line = set_cell(line, columns[name], value) if name in columns else line
    return line


def renumber_requirements(text: str, change: Renumbering) -> str:
    """Give phases their new numbers in the traceability table; what the removed one had is unmapped."""
    lines = Lines.of(text)
    unmapped = 0
    for at, row, columns in _trace_rows(text):
        if not re.fullmatch(ID, row[0].strip("*` ")):
            continue
        value = row[columns["phase"]] if columns["phase"] < len(row) else ""
        match = re.search(rf"(?<![\w.]){TOKEN}", value)
        number = normal_phase(match[0]) if match else ""
        if match and number in change.numbers:
            value = f"{value[: match.start()]}{like(match[0], change.of(number))}{value[match.end() :]}"
            lines[at] = set_cell(lines[at], columns["phase"], value)
        elif match and number == change.removed:
            unmapped += 1
            lines[at] = set_cell(lines[at], columns["phase"], "Unmapped")
            if "status" in columns:
                lines[at] = set_cell(lines[at], columns["status"], "Pending")
    for at in range(len(lines) if unmapped else 0):
        if match := re.match(r"^(- Mapped to phases: )(\d+)(.*)$", lines[at]):
            lines[at] = f"{match[1]}{max(0, int(match[2]) - unmapped)}{match[3]}"
        elif match := re.match(r"^(- Unmapped: )(\d+)(?: ✓)?(.*)$", lines[at]):
            warning = "" if "⚠" in match[3] else " ⚠️"
            lines[at] = f"{match[1]}{int(match[2]) + unmapped}{warning}{match[3]}"
    return str(lines)


def render_requirements(
    name: str,
    core_value: str,
    requirements: Sequence[Requirement],
    later: Sequence[Requirement],
    out_of_scope: Sequence[tuple[str, str]],
    phases: Sequence[PlannedPhase],
    date: str,
) -> str:
    """Return REQUIREMENTS.md with each requirement traced to the phase that has it."""
    traced = {identity: phase.number for phase in phases for identity in phase.requirements}
    mapped = sum(requirement.id in traced for requirement in requirements)
    missing = len(requirements) - mapped
    rows = [
        (one.id, f"Phase {traced[one.id]}" if one.id in traced else "Unmapped", "Pending")
        for one in requirements
    ]
    parts = [
        f"# Requirements: {title(name)}",
        f"**Defined:** {inline(date)}\n**Core Value:** {inline(core_value)}",
        "## v1 Requirements",
        *_by_category(requirements, box=True),
        "## v2 Requirements",
        *(_by_category(later, box=False) if later else ["(None)"]),
        "## Out of Scope",
        table(("Feature", "Reason"), out_of_scope),
        "## Traceability",
        table(("Requirement", "Phase", "Status"), rows),
        f"**Coverage:**\n- v1 requirements: {len(requirements)} total\n"
        f"- Mapped to phases: {mapped}\n- Unmapped: {missing} {'⚠️' if missing else '✓'}",
        f"---\n*Requirements defined: {inline(date)}*\n"
        f"*Last updated: {inline(date)} after initial definition*",
    ]
    return document(parts)


def _by_category(requirements: Sequence[Requirement], *, box: bool) -> Iterator[str]:
    """Yield a heading and a list for each category, in order of first occurrence."""
    order = list(dict.fromkeys(requirement.category for requirement in requirements))
    mark = "[ ] " if box else ""
    for category in order:
        yield f"### {title(category)}"
        same = (one for one in requirements if one.category == category)
        yield "\n".join(f"- {mark}**{inline(one.id)}**: {inline(one.text)}" for one in same)
