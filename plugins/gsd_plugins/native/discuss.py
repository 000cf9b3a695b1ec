"""discuss: record the decisions that a phase is planned by.

No questions are asked here: the decisions are the project's constraints, and Claude decides the rest.
"""

from __future__ import annotations

import re

from gsd_core import FileWrite, StepHost, StepRequest, StepResult, padded
from gsd_core.planning.context import render_context

from .paths import date_of, phase_file, phase_of, position

DISCRETION = "Everything that the decisions above, the goal and the requirements leave open."

_SECTION = re.compile(r"^## Constraints\s*$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^[-*] +(?:\*\*(.+?):?\*\*:? *)?(.+)$", re.MULTILINE)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Write the phase's CONTEXT.md."""
    phase = phase_of(step)
    decisions = constraints(step.planning.documents.get("PROJECT.md", ""))
    text = render_context(phase, decisions=decisions, discretion=(DISCRETION,), date=date_of(step))
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): capture phase context",
        files=(FileWrite(path=phase_file(phase, f"{number}-CONTEXT.md"), text=text),),
        changes=(position(step, status="Ready to plan", activity=f"Phase {phase.number} context gathered"),),
    )


def constraints(project: str) -> tuple[tuple[str, str], ...]:
    """Return the constraints listed in a PROJECT.md, each as its type and its text."""
    section = _SECTION.search(project.replace("\r\n", "\n"))
    bullets: list[tuple[str, str]] = _BULLET.findall(section[1]) if section else []
    return tuple((kind or "Constraint", text) for kind, text in bullets)
