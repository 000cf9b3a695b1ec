"""A plugin for the tests: it kills gsd once, when the reviewer has answered and before that is recorded."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from gsd_core import RunStep, StepRequest, StepResult, implements
from gsd_core.hookspecs import gsd_wrap_step


@implements(gsd_wrap_step)
async def kill_once(step: StepRequest, call_next: RunStep) -> StepResult:
    """Run the step; end the process with the first result of a review."""
    result = await call_next(step)
    if step.kind == "security-review":
        end_first_process()
    return result


def end_first_process() -> None:
    """Kill this process, unless an earlier one was killed already."""
    marker = Path(os.environ["KILLED_ONCE"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
