"""The agent ``claude``: runs Claude Code through the Claude Agent SDK and its bundled CLI.

Importing this package loads neither the SDK nor ``mcp``, which take more than a second each; the
first call does, in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from gsd_core import AgentHost, AgentResult, AgentTask, Finding, implements
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent, gsd_settings

from .call import run_claude as run_claude
from .cli import ClaudeSettings as ClaudeSettings
from .config_folder import git_common_dir as git_common_dir
from .failures import api_error as api_error
from .failures import credentials as credentials
from .failures import installed
from .permissions import format_answers as format_answers
from .permissions import parse_questions as parse_questions
from .permissions import tool_use as tool_use
from .usage import with_price as with_price


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings section ``claude``."""
    return (ClaudeSettings,)


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Run *task* with Claude Code."""
    return await run_claude(task, host)


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check that Claude Code is installed and logged in, without a request to a model."""
    cli = installed()
    return (cli, credentials()) if cli.ok else (cli,)
