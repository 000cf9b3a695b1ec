"""Where the Claude Code CLI is, and the command line that makes it serve one task."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gsd_core import AgentTask, Permanent

HINT = "reinstall claude-agent-sdk, which brings it, or set claude.cli_path"
SERVER = "gsd"


def find_cli(configured: str = "") -> Path:
    """Return the CLI that is *configured*, else the one in the SDK's wheel, else the one on the PATH.

    Raises :class:`~gsd_core.Permanent` if there is none. Does not import the SDK.
    """
    found = _usable(configured) if configured else _bundled() or _usable("claude")
    if found:
        return found
    raise Permanent(f"no Claude Code CLI {configured!r}" if configured else "no Claude Code CLI", hint=HINT)


def _usable(command: str) -> Path | None:
    found = shutil.which(Path(command).expanduser())
    return Path(found) if found else None


def _bundled() -> Path | None:
    spec = find_spec("claude_agent_sdk")
    folders = spec.submodule_search_locations if spec else None
    return next((found for folder in folders or () if (found := _usable(f"{folder}/_bundled/claude"))), None)


def command_line(cli: Path, task: AgentTask, *, resume: bool) -> list[str]:
    """Return the CLI's arguments for *task*; the prompt follows on its standard input."""
    return [
        *(str(cli), "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--permission-prompt-tool", "stdio", "--strict-mcp-config"),
        *("--system-prompt", task.system),
        *("--permission-mode", "acceptEdits" if task.writable else "default"),
        *_settings(task),
        *_tools(task),
        *_limits(task),
        *_conversation(task, resume=resume),
        *(["--model", task.model] if task.model else []),
        *(["--json-schema", json.dumps(task.schema)] if task.schema else []),
    ]


def _settings(task: AgentTask) -> Iterator[str]:
    if task.user_settings:
        yield "--setting-sources=user,project"
        return
    yield "--setting-sources="
    # Commits are the core's: without this, each request explains how to sign them.
    yield from ("--settings", json.dumps({"attribution": {"commit": "", "pr": ""}}))


def _tools(task: AgentTask) -> Iterator[str]:
    if task.tools is not None:
        yield from ("--tools", ",".join(task.tools))
    if task.functions:
        yield from ("--mcp-config", json.dumps({"mcpServers": {SERVER: _server()}}))
        yield from ("--allowedTools", ",".join(f"mcp__{SERVER}__{each.name}" for each in task.functions))


def _server() -> Mapping[str, Any]:
    return {"type": "sdk", "name": SERVER}


def _limits(task: AgentTask) -> Iterator[str]:
    if task.limits.turns is not None:
        yield from ("--max-turns", str(task.limits.turns))
    if task.limits.dollars is not None:
        yield from ("--max-budget-usd", str(task.limits.dollars))


def _conversation(task: AgentTask, *, resume: bool) -> Iterator[str]:
    if task.conversation:
        yield f"--{'resume' if resume else 'session-id'}={task.conversation.id}"
