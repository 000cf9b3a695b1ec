"""Reads REQUIREMENTS.md: the lines with an id, and the traceability table.

Changes to REQUIREMENTS.md: where a requirement is built and how far it is.

Writes PROJECT.md and REQUIREMENTS.md in the shapes of v1.20.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase

from .changes import MapRequirement
from .markdown import Lines, cell, cells, inline, prose, read_text, set_cell, title
from .model import PlannedPhase, Requirement
from .numbers import TOKEN

PREFIX = r"(?<![A-Z0-9_])[A-Z][A-Z0-9_]{0,30}(?:-[A-Z][A-Z0-9_]{0,30}){0,5}-"
ID = rf"{PREFIX}\d{{1,9}}[a-z]?"
MAX_IDS = 1_000
MAX_TEXT = 20_000
LINE = re.compile(rf"^(\s*[-*]\s+)(?:(\[)([ xX])(\])\s+)?\*\*({ID})\*\*\s*(?:\([^)]*\)\s*)?[:—–-]?\s*(.*)$")

_HEADING = re.compile(r"^(#{2,4})\s+(.+)$")
_VERSION = re.compile(r"\bv\d+(?:\.\d+)*\b", re.IGNORECASE)
_RANGE = re.compile(
    rf"(?P<head>{PREFIX})(?P<low>\d{{1,9}})\s{{0,9}}(?:\.{{2,3}}|through|to|–|—)"
    r"\s{0,9}(?:[A-Z][A-Z0-9_-]{0,60}-)?(?P<high>\d{1,9})"
)


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the requirements in the order of the file; of an id that stands twice, the first."""
    traced = dict(_traced(text))
    found: dict[str, Requirement] = {}
    for requirement in _listed(text):
        phase, status = traced.get(requirement.id, ("", ""))
        default = "Complete" if requirement.done else "Pending"
        traced_one = attrs.evolve(requirement, phase=phase, status=status or default)
        found.setdefault(requirement.id, traced_one)
    return tuple(found.values())


def read_requirements(root: Path) -> tuple[Requirement, ...]:
    """Return the requirements of the project at *root*, none if it has no such file."""
    path = ".planning/REQUIREMENTS.md"
    return parse_requirements(read_text(root, path)) if (root / path).exists() else ()


def requirement_ids(text: str) -> tuple[str, ...]:
    """Return the ids in *text* in order, with ranges (``API-01..04``) written out."""
    text = _without_comments(text[:MAX_TEXT])
    found: dict[str, None] = {}
    for match in re.finditer(rf"{_RANGE.pattern}|{ID}", text):
        found.update(dict.fromkeys(_spread(match) if match["head"] else [match[0]]))
        if len(found) > MAX_IDS:
            break
    return tuple(found)


def _without_comments(text: str) -> str:
    kept, rest = "", text
    while "<!--" in rest and "-->" in rest:
        before, _, rest = rest.partition("<!--")
        kept, rest = kept + before, rest.partition("-->")[2]
    return kept + rest


def _spread(match: re.Match[str]) -> list[str]:
    low, high, width = int(match["low"]), int(match["high"]), len(match["low"])
    return [f"{match['head']}{n:0{width}d}" for n in range(low, min(high, low + 200) + 1)]


def _listed(text: str) -> Iterator[Requirement]:
    version, category = "v1", ""
    for line in text.replace("\r\n", "\n").split("\n"):
        line = line.rstrip()
        if heading := _HEADING.match(line):
            if heading[1] == "##":
                version, category = _version(heading[2]), ""
            else:
                category = heading[2].rstrip("# ")
        elif (match := LINE.match(line)) and version:
            done = (match[3] or " ") in "xX"
            yield Requirement(
                id=match[5], text=prose(match[6]), category=category, version=version, done=done
            )


def _version(heading: str) -> str:
    """Return a section's version; empty where no requirements are listed."""
    if match := _VERSION.search(heading):
        return match[0].lower()
    lowered = heading.lower()
    if any(word in lowered for word in ("out of scope", "traceability", "coverage")):
        return ""
    return "v2" if any(word in lowered for word in ("future", "later", "deferred")) else "v1"


def _traced(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    columns: dict[str, int] = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        row = [cell.strip() for cell in cells(line)]
        if not row:
            columns = {}
        elif is_trace_head(row):
            columns = {name.lower(): i for i, name in enumerate(row)}
        elif columns and re.fullmatch(ID, row[0].strip("*` ")):
            yield row[0].strip("*` "), (_phase(row, columns), _cell(row, columns, "status"))


def is_trace_head(row: list[str]) -> bool:
    """Say whether a table's row is the head of the traceability table."""
    names = [cell.strip().lower() for cell in row]
    return bool(names) and names[0] in ("requirement", "req", "id") and "phase" in names


def _phase(row: list[str], columns: dict[str, int]) -> str:
    match = re.search(rf"(?<![\w.]){TOKEN}", _cell(row, columns, "phase"))
    return normal_phase(match[0]) if match else ""


def _cell(row: list[str], columns: dict[str, int], name: str) -> str:
    index = columns.get(name, len(row))
    return row[index] if index < len(row) else ""


def map_requirement(text: str, change: MapRequirement) -> str:
    """Set the requirement's row, adding it to the table if it has none; ``Complete`` ticks its box."""
    lines = Lines.of(text)
    listed = _tick(lines, change)
    traced = _trace(lines, change, listed=listed)
    if not listed and not traced:
        raise PlanningError(
            f"has no requirement {change.requirement}",
            path=".planning/REQUIREMENTS.md",
            hint=f"add a line '- [ ] **{change.requirement}**: …', or take it out of ROADMAP.md",
        )
    return str(lines)


def _tick(lines: Lines, change: MapRequirement) -> bool:
    for at in range(len(lines)):
        match = LINE.match(lines[at])
        if not match or match[5] != change.requirement:
            continue
        if change.status == "Complete" and match[3] == " ":
            lines[at] = f"{lines[at][: match.start(3)]}x{lines[at][match.end(3) :]}"
        return True
    return False


def _trace(lines: Lines, change: MapRequirement, *, listed: bool) -> bool:
    columns: list[str] = []
    last = 0
    for at in range(len(lines)):
        row = [cell.strip() for cell in cells(lines[at])]
        if is_trace_head(row):
            columns = [name.lower() for name in row]
        if not columns:
            continue
        if not row:
            break
        last = at
        if row[0].strip("*` ") == change.requirement:
            lines[at] = _set(lines[at], columns, change)
            return True
    if last and listed:
        blank = "|" + " - |" * len(columns)
        lines.insert(last + 1, [_set(set_cell(blank, 0, change.requirement), columns, change)])
    return bool(last and listed)


def _set(line: str, columns: list[str], change: MapRequirement) -> str:
    values = {"phase": f"Phase {change.phase}", "status": change.status}
    for index, name in enumerate(columns):
        if name in values:
            line = set_cell(line, index, values[name])
    return line


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
    return _document(
        f"# Requirements: {title(name)}",
        f"**Defined:** {inline(date)}\n**Core Value:** {inline(core_value)}",
        "## v1 Requirements",
        *_by_category(requirements, box=True),
        "## v2 Requirements",
        *(_by_category(later, box=False) if later else ["(None)"]),
        "## Out of Scope",
        _table(("Feature", "Reason"), out_of_scope),
        "## Traceability",
        _table(("Requirement", "Phase", "Status"), list(_render_project_trace(requirements, traced))),
        f"**Coverage:**\n- v1 requirements: {len(requirements)} total\n"
        f"- Mapped to phases: {mapped}\n- Unmapped: {missing} {'⚠️' if missing else '✓'}",
        f"---\n*Requirements defined: {inline(date)}*\n"
        f"*Last updated: {inline(date)} after initial definition*",
    )


def _by_category(requirements: Sequence[Requirement], *, box: bool) -> Iterator[str]:
    ordered = sorted(requirements, key=lambda requirement: _first(requirements, requirement.category))
    for category, group in groupby(ordered, key=lambda requirement: requirement.category):
        yield f"### {title(category)}"
        mark = "[ ] " if box else ""
        yield "\n".join(f"- {mark}**{inline(one.id)}**: {inline(one.text)}" for one in group)


def _first(requirements: Sequence[Requirement], category: str) -> int:
    return next(i for i, one in enumerate(requirements) if one.category == category)


def _render_project_trace(
    requirements: Sequence[Requirement], traced: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    for one in requirements:
        yield one.id, f"Phase {traced[one.id]}" if one.id in traced else "Unmapped", "Pending"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join('-' * (len(name) + 2) for name in head)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def _document(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
