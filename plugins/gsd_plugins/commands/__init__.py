"""The steps of GSD, executed by the user's own GSD commands in Claude Code (``--workflow commands``).

The commands write ``.planning/`` and make commits themselves. What a step has reached is read from the
planning files afterwards: a command that ended without it has failed, whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gsd_core import Finding, StepHost, StepRequest, StepResult, StepType, implements
from gsd_core.hookspecs import gsd_doctor, gsd_execute_step, gsd_steps

from .installed import findings
from .milestone import execute_audit, execute_close
from .session import EXEC, execute_prompt
from .steps import COMMANDS, NEXT, command_of, execute_command
from .verify import execute_verify

STEPS = {EXEC: execute_prompt, "verify": execute_verify, "audit": execute_audit, "close": execute_close}
"""The steps that are more than one command."""
OTHERS = ("verify-work", "audit-milestone", "complete-milestone", NEXT)

__all__ = ["doctor", "execute_step", "steps"]


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check that the commands are installed."""
    needed = dict.fromkeys([*(command.name for command in COMMANDS.values()), *OTHERS])
    return tuple(findings(needed, Path.cwd()))


@implements(gsd_steps)
def steps() -> Iterable[StepType]:
    """Contribute the step of ``gsd exec``."""
    yield StepType(kind=EXEC, title="Run a command or prompt of the user")


@implements(gsd_execute_step)
async def execute_step(step: StepRequest, host: StepHost) -> StepResult | None:
    """Execute the step with its command; leave a step without one to the next plugin."""
    if execute := STEPS.get(step.kind):
        return await execute(step, host)
    # execute-phase does that after its verification.
    if step.kind == "complete" and step.phase and step.phase.ticked:
        return StepResult(subject="the phase is marked as complete already")
    command = command_of(step)
    return await execute_command(step, host, command) if command else None
