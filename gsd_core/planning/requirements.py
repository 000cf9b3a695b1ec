"""Reads REQUIREMENTS.md: the lines with an id, and the traceability table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from gsd_core.ids import normal_phase
from gsd_core.planning.inline import cells, prose
from gsd_core.planning.model import Requirement
from gsd_core.planning.numbers import TOKEN
from gsd_core.planning.texts import read_text

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
