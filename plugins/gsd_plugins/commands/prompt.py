"""``gsd exec``: any prompt or command of the user as one step."""

from __future__ import annotations

import hashlib

from gsd_core import Permanent, StepHost, StepRequest, StepResult

from .session import run_session

EXEC = "exec"


async def execute_prompt(step: StepRequest, host: StepHost) -> StepResult:
    """Run the user's words; the answer is in the journal, from which ``gsd exec`` prints it."""
    if not step.text.strip():
        raise Permanent("there is no prompt", hint='gsd exec "PROMPT or /command"')
    # A step of the same name may have been interrupted with another prompt, whose answer is not this one's.
    digest = hashlib.sha256(step.text.encode("utf-8", "replace")).hexdigest()[:8]
    await run_session(step, host, step.text, name=f"{EXEC} {digest}")
    return StepResult(subject="done by the agent")
