"""Phases that a step adds to the milestone in progress, with their requirements and success criteria."""

from __future__ import annotations

from gsd_core.errors import PlanningError

from .changes import AddPhase
from .markdown import Lines, inline
from .roadmap import PATH, parse_roadmap
from .roadmap_phases import NewPhase, add_phase


def extend_milestone(text: str, change: AddPhase) -> str:
    """Add the phase to ROADMAP.md; one of the same number and name is left as it is.

    Raises :class:`PlanningError` if another phase has the number, or no milestone is in progress.
    """
    existing = [one for one in parse_roadmap(text).mentions() if one.number == change.number]
    if same := [one for one in existing if not one.shipped]:
        # Titles are written without asterisks and the like: compare words.
        if _words(same[0].name) == _words(change.name):
            return text
        hint = "give it another number, then resume the run"
        raise PlanningError(f"has a phase {change.number} already: {same[0].name!r}", path=PATH, hint=hint)
    new = NewPhase(number=change.number, name=change.name, goal=change.goal, depends_on=change.depends_on)
    edited = add_phase(text, new)
    section = parse_roadmap(edited).section(change.number)
    if section is None:
        return edited
    lines = Lines.of(edited)
    for at in range(section.line + 1, section.end):
        if lines[at].strip() == "**Requirements**: TBD":
            lines[at] = f"**Requirements**: {', '.join(map(inline, change.requirements)) or 'None'}"
            criteria = [f"  {i}. {inline(one)}" for i, one in enumerate(change.criteria, start=1)]
            if criteria:
                lines.insert(at + 1, ["**Success Criteria** (what must be TRUE):", *criteria])
            break
    return str(lines)


def _words(name: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in name.lower()).split()
