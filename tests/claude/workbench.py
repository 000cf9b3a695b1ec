"""A test bench for the agent: the real SDK and CLI, a scripted model, and a host that records."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs

from gsd_core import (
    Activity,
    AgentResult,
    AgentTask,
    Allow,
    Answer,
    Conversation,
    Permission,
    Question,
    ToolUse,
    Usage,
)
from gsd_plugins.claude import run_claude
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, MessagesApi, Reply, Text, ToolUseBlock


def _first_option(question: Question) -> Answer:
    return Answer(question=question.id, chosen=(question.options[0].label,))


@attrs.define
class RecordingHost:
    """An agent host that answers with the given functions and records every call."""

    policy: Callable[[ToolUse], Permission] = lambda use: Allow()
    human: Callable[[ToolUse], Permission] = lambda use: Allow()
    reply: Callable[[Question], Answer] = _first_option
    function: Callable[[str, Mapping[str, Any]], str] = lambda name, arguments: "ok"
    seen: Callable[[Activity], None] = lambda activity: None
    on_start: Callable[[int], None] = lambda pid: None
    uses: list[ToolUse] = attrs.field(factory=list[ToolUse])
    confirmed: list[tuple[ToolUse, str]] = attrs.field(factory=list[tuple[ToolUse, str]])
    questions: list[Question] = attrs.field(factory=list[Question])
    calls: list[tuple[str, Mapping[str, Any]]] = attrs.field(factory=list[tuple[str, Mapping[str, Any]]])
    activities: list[Activity] = attrs.field(factory=list[Activity])
    usages: list[Usage] = attrs.field(factory=list[Usage])
    pids: list[int] = attrs.field(factory=list[int])
    environment: Mapping[str, str] = attrs.field(factory=lambda: {"GSD_RUN": "r-test"})

    async def permit(self, use: ToolUse) -> Permission:
        self.uses.append(use)
        return self.policy(use)

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        self.confirmed.append((use, reason))
        return self.human(use)

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        self.questions.extend(questions)
        return [self.reply(question) for question in questions]

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        self.calls.append((function, arguments))
        return self.function(function, arguments)

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        self.activities.append(activity)
        if usage:
            self.usages.append(usage)
        self.seen(activity)

    def started(self, pid: int) -> None:
        self.pids.append(pid)
        self.on_start(pid)

    def kinds(self, kind: str) -> list[Activity]:
        return [activity for activity in self.activities if activity.kind == kind]


def says(text: str, **usage: int) -> Blocks:
    return Blocks((Text(text),), usage=usage) if usage else Blocks((Text(text),))


def uses(name: str, **arguments: Any) -> Blocks:
    return Blocks((ToolUseBlock(name, arguments),))


def by_turn(*replies: Reply) -> Callable[[ApiRequest], Reply]:
    """Answer each request with the reply for the turn of its conversation."""
    return lambda request: replies[request.turn]


@attrs.frozen
class Bench:
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
        host: RecordingHost | None = None,
        env: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> tuple[AgentResult, tuple[ApiRequest, ...]]:
        """Run a task with a model that answers with *script*; returns the result and the requests."""
        with MessagesApi(script) as api:
            environment = {**self.environment(api), **(env or {})}
            call = run_claude(self.task(**changes), host or RecordingHost(), env=environment)
            result = asyncio.run(limited(call))
        assert not api.errors
        return result, api.requests


async def limited(call: Coroutine[Any, Any, AgentResult], seconds: float = 30) -> AgentResult:
    """Wait for the call, but not for ever."""
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
