"""The agent ``rehearsal``: the real Claude Code CLI against a scripted model on loopback.

It needs no account and no network, and plays a :class:`Scenario` for any idea. There are two ways
to play one: this agent, which exercises everything but the model, and :class:`FakeAgent` (as a
plugin: ``gsd_plugins.rehearsal.fake``), which starts no process and takes milliseconds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from gsd_core import AgentHost, AgentResult, AgentTask, Permanent, RunInfo, implements, setting, settings_of
from gsd_core.hookspecs import gsd_lifespan, gsd_run_agent, gsd_settings

from .fake import FakeAgent
from .scenario import Scenario

if TYPE_CHECKING:
    from .server import RehearsalServer

__all__ = ["FakeAgent", "RehearsalSettings", "Scenario", "lifespan", "run_agent", "settings"]

_servers: dict[str, RehearsalServer] = {}
"""The servers of the runs in this process, by the run's id."""


@attrs.frozen(kw_only=True)
class RehearsalSettings:
    """The scenario to rehearse; *phases* is 1, 2 or 3, and 0 means that the seed decides."""

    phases: int = setting(0, help="number of phases in the roadmap", harmless=True)
    question: bool = setting(True, help="whether the model asks its question", harmless=True)
    gap: bool = setting(True, help="whether the model leaves a gap", harmless=True)
    overloaded: bool = setting(
        True, help="whether one request is refused as if the API were overloaded", harmless=True
    )

    def scenario(self, run: RunInfo) -> Scenario:
        """Return the scenario for a run's idea and seed."""
        return Scenario(
            run.idea,
            run.seed or 0,
            phases=self.phases or None,
            question=self.question,
            gap=self.gap,
            overloaded=self.overloaded,
        )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``rehearsal``."""
    return (RehearsalSettings,)


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Provide a server for the run; nothing is started before the first task."""
    return (_serve(run),)


@asynccontextmanager
async def _serve(run: RunInfo) -> AsyncGenerator[None]:
    # Imported late: http.server takes longer to import than everything else that `gsd --help` needs.
    from .server import RehearsalServer

    scenario = settings_of(RehearsalSettings).scenario(run)
    async with RehearsalServer.open(run, scenario) as server:
        _servers[run.id] = server
        try:
            yield
        finally:
            del _servers[run.id]


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have Claude Code do *task* with the answers of the scenario."""
    from gsd_plugins.claude import run_claude

    server = _servers.get(task.run)
    if server is None:
        raise Permanent(
            f"no rehearsal server for run {task.run!r}",
            hint="enter the lifespan of the plugin for this run before running a task",
        )
    return await run_claude(task, host, env=await server.environment(task))
