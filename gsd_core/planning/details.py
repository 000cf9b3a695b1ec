"""Reads the details of one phase in ROADMAP.md: its fields, its criteria, its list of plans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from gsd_core.ids import normal_phase
from gsd_core.planning.inline import prose
from gsd_core.planning.numbers import phase_numbers
from gsd_core.planning.plans import full_plan_id
from gsd_core.planning.requirements import requirement_ids

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
