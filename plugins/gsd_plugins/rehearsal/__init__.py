"""The agent ``rehearsal``: the real Claude Code at work, with a scripted model on loopback.

It needs no account and reaches no network. For any idea it plays the scenario of
:mod:`gsd_core.testing.scenario`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from gsd_core import AgentHost, AgentResult, AgentTask, Permanent, RunInfo, implements
from gsd_core.hookspecs import gsd_lifespan, gsd_run_agent, gsd_settings

from .settings import RehearsalSettings
from .stage import Stages

__all__ = ["RehearsalSettings", "lifespan", "run_agent", "settings"]

_stages = Stages()


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``rehearsal``."""
    return (RehearsalSettings,)


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Hold a stage ready for the run; nothing is started before the first task."""
    return (_stages.of(run),)


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have Claude Code do *task*, as the scenario has it."""
    from gsd_plugins.claude import run_claude

    stage = _stages.find(task.run)
    if stage is None:
        raise Permanent(
            f"nothing is rehearsed for run {task.run!r}", hint="the run's lifespan was not entered"
        )
    return await run_claude(task, host, env=await stage.environment(task))
