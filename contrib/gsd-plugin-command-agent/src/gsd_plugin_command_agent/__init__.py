"""The agent ``command_agent`` for GSD: any command-line agent, such as ``codex exec``.

The prompt goes to the command's standard input; its answer is taken from its standard output, or
from a file that the command writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from gsd_core import AgentHost, AgentResult, AgentTask, Finding, implements, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent, gsd_settings

from .conversation import converse
from .settings import CommandAgentSettings

__all__ = ["CommandAgentSettings", "doctor", "run_agent", "settings"]


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``command_agent``."""
    yield CommandAgentSettings


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have the command do *task*; decline if no command is set."""
    chosen = settings_of(CommandAgentSettings)
    return await converse(task, host, chosen) if chosen.command else None


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Say whether a command is set, and whether its program is there."""
    command = settings_of(CommandAgentSettings).command
    if not command:
        fix = 'set command = ["codex", "exec", "-"] in the section command_agent'
        yield Finding(name="command_agent", ok=False, message="no command is set", fix=fix)
        return
    found = shutil.which(command[0])
    message = f"{command[0]!r} is {found}" if found else f"{command[0]!r} is not on the path"
    yield Finding(name="command_agent", ok=found is not None, message=message, fix=f"install {command[0]}")
