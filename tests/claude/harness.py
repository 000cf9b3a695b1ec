"""A harness for tests of the agent: the real SDK and CLI with a scripted model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs

from gsd_core import Activity, AgentResult, AgentTask, Conversation, Usage
from gsd_core.testing import FakeAgentHost
from gsd_plugins.claude import run_claude
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, MessagesApi, Reply, Text, ToolUseBlock


@attrs.define(kw_only=True)
class ObservedHost(FakeAgentHost):
    """A fake host that also calls *on_activity* and *on_start*, which may raise."""

    on_activity: Callable[[Activity], None] = lambda activity: None
    on_start: Callable[[int], None] = lambda pid: None

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        await super().progress(activity, usage)
        self.on_activity(activity)

    def started(self, pid: int) -> None:
        super().started(pid)
        self.on_start(pid)


def activities(host: FakeAgentHost, kind: str) -> list[Activity]:
    """Return the reported activities of one kind."""
    return [activity for activity in host.activities if activity.kind == kind]


def says(text: str, **usage: int) -> Blocks:
    return Blocks((Text(text),), usage=usage) if usage else Blocks((Text(text),))


def uses(name: str, **arguments: Any) -> Blocks:
    return Blocks((ToolUseBlock(name, arguments),))


def by_turn(*replies: Reply) -> Callable[[ApiRequest], Reply]:
    """Answer each request with the reply for the turn of its conversation."""
    return lambda request: replies[request.turn]


@attrs.frozen
class Harness:
    """A project tree, and a home directory without settings or credentials."""

    tree: Path
    home: Path
    conversation: Conversation = attrs.field(factory=lambda: Conversation(id=str(uuid4()), cwd=""))

    def task(self, **changes: Any) -> AgentTask:
        values: dict[str, Any] = {
            "step": "1/execute/01-01",
            "role": "executor",
            "prompt": "do it",
            "system": "You are an engineer.",
            "tree": self.tree,
            **changes,
        }
        return AgentTask(**values)

    def environment(self, api: MessagesApi) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "claude"),
        }

    def run(
        self,
        script: Callable[[ApiRequest], Reply],
        host: FakeAgentHost | None = None,
        env: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> tuple[AgentResult, tuple[ApiRequest, ...]]:
        """Run a task with a model that answers with *script*; return the result and the requests."""
        with MessagesApi(script) as api:
            environment = {**self.environment(api), **(env or {})}
            call = run_claude(self.task(**changes), host or FakeAgentHost(), env=environment)
            result = asyncio.run(limited(call))
        assert not api.errors
        return result, tuple(api.requests)


async def limited(call: Coroutine[Any, Any, AgentResult], seconds: float = 30) -> AgentResult:
    """Wait for the call, at most *seconds*."""
    async with asyncio.timeout(seconds):
        return await call


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
