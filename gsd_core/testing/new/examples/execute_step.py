"""A step executor that writes a phase's context from its goal, without an agent.

Executors are asked in the order of the setting `run.execute`; one that does not handle a step returns `None`.
With `execute = ["my_plugin", "native"]` in the section `run`, this one comes first.
An executor reads `step`, uses `host`, and returns files and changes; the core writes and commits them.
"""

from __future__ import annotations

from gsd_core import FileWrite, PhaseView, StepHost, StepRequest, StepResult, implements, padded
from gsd_core.hookspecs import gsd_execute_step

_CONTEXT = """\
# Phase {number}: {name} - Context

## Phase Boundary

{goal}

## Implementation Decisions

- None made in advance: the plans decide, guided by the success criteria.

## Success Criteria

{criteria}
"""


@implements(gsd_execute_step)
async def write_context(step: StepRequest, host: StepHost) -> StepResult | None:
    """Handle the step ``discuss``; leave every other kind to the executors listed after this one."""
    if step.kind != "discuss" or step.phase is None:
        return None
    number = padded(step.phase.number)
    path = f"{step.phase.directory}/{number}-CONTEXT.md"
    return StepResult(
        subject=f"docs({number}): capture phase context",
        files=(FileWrite(path=path, text=_context(step.phase)),),
    )


def _context(phase: PhaseView) -> str:
    criteria = "\n".join(f"- {criterion}" for criterion in phase.criteria) or "- none"
    return _CONTEXT.format(number=phase.number, name=phase.name, goal=phase.goal, criteria=criteria)
