"""Changes to REQUIREMENTS.md: where a requirement is built and how far it is."""

from __future__ import annotations

from gsd_core.errors import PlanningError
from gsd_core.planning.changes import MapRequirement
from gsd_core.planning.editing import Lines, set_cell
from gsd_core.planning.inline import cells
from gsd_core.planning.requirements import LINE, is_trace_head


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
