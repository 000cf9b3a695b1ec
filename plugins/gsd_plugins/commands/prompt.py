"""``gsd exec``: any prompt or command of the user as one step."""

from __future__ import annotations

from gsd_core import Permanent, StepHost, StepRequest, StepResult

from .session import run_session

EXEC = "exec"


async def execute_prompt(step: StepRequest, host: StepHost) -> StepResult:
    """Run the user's words; the answer is in the journal, from which ``gsd exec`` prints it."""
    if not step.text.strip():
        raise Permanent("there is no prompt", hint='gsd exec "PROMPT or /command"')
    await run_session(step, host, step.text, name=EXEC)
    return StepResult(subject=f"docs: {step.id}")
