"""discuss: what is decided before a phase is planned.

Without a conversation, that is what the project's constraints say; the rest is left to discretion.
"""

from __future__ import annotations

import re

from gsd_core import FileWrite, StepHost, StepRequest, StepResult, padded
from gsd_core.planning.context import render_context

from .place import day, phase_file, phase_of, position

DISCRETION = "Everything that the decisions above, the goal and the requirements leave open."

_SECTION = re.compile(r"^## Constraints\s*$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^[-*] +(?:\*\*(.+?):?\*\*:? *)?(.+)$", re.MULTILINE)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Write the phase's CONTEXT: the project's constraints, and everything else at discretion."""
    phase = phase_of(step)
    decisions = constraints(step.planning.documents.get("PROJECT.md", ""))
    text = render_context(phase, decisions=decisions, discretion=(DISCRETION,), date=day(step))
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): capture phase context",
        files=(FileWrite(path=phase_file(phase, f"{number}-CONTEXT.md"), text=text),),
        changes=(position(step, status="Ready to plan", activity=f"Phase {phase.number} context gathered"),),
    )


def constraints(project: str) -> tuple[tuple[str, str], ...]:
    """Return the constraints that a PROJECT.md lists: what each is about, and its text."""
    section = _SECTION.search(project.replace("\r\n", "\n"))
    return tuple(
        (kind or "Constraint", text) for kind, text in _BULLET.findall(section[1] if section else "")
    )
