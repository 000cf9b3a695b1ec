"""The agent ``claude``: Claude Code, through the Claude Agent SDK and the CLI that it brings.

Importing this loads neither the SDK nor ``mcp``; the first call does, in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from gsd_core import AgentHost, AgentResult, AgentTask, Finding, implements
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent, gsd_settings

from .call import run_claude
from .doctor import credentials
from .settings import ClaudeSettings

__all__ = ["ClaudeSettings", "credentials", "doctor", "run_agent", "run_claude", "settings"]


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have Claude Code do *task*."""
    return await run_claude(task, host)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``claude``."""
    return (ClaudeSettings,)


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Say whether Claude Code is there and logged in; asks no model."""
    return (credentials(),)
