"""The steps of GSD, from an idea to a verified phase.

Agents return data; code checks it and writes the planning files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from gsd_core import StepHost, StepRequest, StepResult, StepType, implements
from gsd_core.hookspecs import gsd_execute_step, gsd_steps

from . import audit, close, complete, debug, discuss, execute, init, plan, quick, research, survey, verify
from .audit import Decision, closing_name, gap_of
from .audit import decide as decide_on_gaps
from .close import confirm as confirm_close
from .close import items_of as open_items_of
from .close import kept_open, require_complete
from .verify import undecided

__all__ = [
    "Decision",
    "closing_name",
    "confirm_close",
    "decide_on_gaps",
    "execute_step",
    "gap_of",
    "kept_open",
    "open_items_of",
    "require_complete",
    "steps",
    "undecided",
]
"""The hooks, and what the plugin ``commands`` shares: what is asked about a milestone is asked in one way."""

Execute: TypeAlias = Callable[[StepRequest, StepHost], Awaitable[StepResult]]

STEPS: Mapping[str, Execute] = {
    "init": init.execute,
    "discuss": discuss.execute,
    "research": research.execute,
    "early-research": research.execute,
    "plan": plan.execute,
    "execute": execute.execute,
    "verify": verify.execute,
    "complete": complete.execute,
    "debug": debug.execute,
    "audit": audit.execute,
    "close": close.execute,
    "quick": quick.execute,
    "survey": survey.execute,
}


@implements(gsd_steps)
def steps() -> Iterable[StepType]:
    """Contribute the steps that not every phase has, and those of a milestone that is done.

    Existing code is surveyed before the project is initialized. A phase is researched before it is planned,
    and gaps are diagnosed. A milestone is audited before it is closed.
    """
    yield survey.step_type
    yield research.step_type
    yield research.first_step_type
    yield debug.STEP_TYPE
    yield quick.step_type
    yield audit.step_type
    yield close.step_type


@implements(gsd_execute_step)
async def execute_step(step: StepRequest, host: StepHost) -> StepResult | None:
    """Execute the step if its kind is one of GSD's own; leave others to other plugins."""
    run = STEPS.get(step.kind)
    return await run(step, host) if run else None
