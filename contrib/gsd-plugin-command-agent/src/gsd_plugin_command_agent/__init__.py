"""The agent ``command_agent`` for GSD: runs any command-line agent, such as ``codex exec``.

The prompt goes to the command's standard input. The answer is read from its standard output, or from
a file that the command writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from gsd_core import AgentHost, AgentResult, AgentTask, Finding, implements, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent, gsd_settings

from .command import CommandAgentSettings
from .conversation import converse

__all__ = ["CommandAgentSettings", "doctor", "run_agent", "settings"]


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings section ``command_agent``."""
    yield CommandAgentSettings


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Run *task* with the configured command; decline if there is none."""
    configured = settings_of(CommandAgentSettings)
    return await converse(task, host, configured) if configured.command else None


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check that a command is configured and that its program exists."""
    configured = settings_of(CommandAgentSettings)
    command = configured.command
    if not command:
        fix = 'set command in the section command_agent, for example ["codex", "exec", "-"]'
        yield Finding(name="command_agent", ok=False, message="no command is set", fix=fix)
    elif path := shutil.which(command[0]):
        message = f"{command[0]!r} is {path}"
        yield Finding(name="command_agent", ok=True, message=message, reports=configured.reports)
    else:
        message = f"{command[0]!r} is not on PATH"
        yield Finding(name="command_agent", ok=False, message=message, fix=f"install {command[0]}")
