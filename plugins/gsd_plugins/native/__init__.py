"""The steps of GSD, from an idea to a verified phase.

Agents return data; code checks it and writes the planning files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from gsd_core import StepHost, StepRequest, StepResult, StepType, implements
from gsd_core.hookspecs import gsd_execute_step, gsd_steps

from . import complete, discuss, execute, init, plan, quick, survey, verify

Execute: TypeAlias = Callable[[StepRequest, StepHost], Awaitable[StepResult]]

STEPS: Mapping[str, Execute] = {
    "init": init.execute,
    "discuss": discuss.execute,
    "plan": plan.execute,
    "execute": execute.execute,
    "verify": verify.execute,
    "complete": complete.execute,
    "quick": quick.execute,
    "survey": survey.execute,
}


@implements(gsd_steps)
def steps() -> Iterable[StepType]:
    """Contribute the steps that the core does not know."""
    yield survey.step_type
    yield quick.step_type


@implements(gsd_execute_step)
async def execute_step(step: StepRequest, host: StepHost) -> StepResult | None:
    """Execute the step if its kind is one of GSD's own; leave others to other plugins."""
    run = STEPS.get(step.kind)
    return await run(step, host) if run else None
