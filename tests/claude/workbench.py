"""A bench for the agent: the real SDK and the real CLI, a scripted model, and a host that records."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import define, field, frozen

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


@define
class RecordingHost:
    """Answers by the given functions and remembers what it was asked."""

    policy: Callable[[ToolUse], Permission] = lambda use: Allow()
    human: Callable[[ToolUse], Permission] = lambda use: Allow()
    reply: Callable[[Question], Answer] = _first_option
    function: Callable[[str, Mapping[str, Any]], str] = lambda name, arguments: "ok"
    seen: Callable[[Activity], None] = lambda activity: None
    began: Callable[[int], None] = lambda pid: None
    uses: list[ToolUse] = field(factory=list[ToolUse])
    confirmed: list[tuple[ToolUse, str]] = field(factory=list[tuple[ToolUse, str]])
    questions: list[Question] = field(factory=list[Question])
    calls: list[tuple[str, Mapping[str, Any]]] = field(factory=list[tuple[str, Mapping[str, Any]]])
    activities: list[Activity] = field(factory=list[Activity])
    usages: list[Usage] = field(factory=list[Usage])
    pids: list[int] = field(factory=list[int])
    environment: Mapping[str, str] = field(factory=lambda: {"GSD_RUN": "r-test"})

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
        self.began(pid)

    def kinds(self, kind: str) -> list[Activity]:
        return [activity for activity in self.activities if activity.kind == kind]


def says(text: str, **usage: int) -> Blocks:
    return Blocks((Text(text),), usage=usage) if usage else Blocks((Text(text),))


def uses(name: str, **arguments: Any) -> Blocks:
    return Blocks((ToolUseBlock(name, arguments),))


def in_turn(*replies: Reply) -> Callable[[ApiRequest], Reply]:
    """Answer by the number of the conversation's turn."""
    return lambda request: replies[request.turn]


@frozen
class Bench:
    """A tree to work in, and a home without settings or credentials."""

    tree: Path
    home: Path
    conversation: Conversation = field(factory=lambda: Conversation(id=str(uuid4()), cwd=""))

    def task(self, **changes: Any) -> AgentTask:
        given: dict[str, Any] = {
            "step": "1/execute/01-01",
            "role": "executor",
            "prompt": "do it",
            "system": "You work.",
            "tree": self.tree,
            **changes,
        }
        return AgentTask(**given)

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
        """Have the task done with a model that answers by *script*."""
        with MessagesApi(script) as api:
            seen = {**self.environment(api), **(env or {})}
            work = run_claude(self.task(**changes), host or RecordingHost(), env=seen)
            result = asyncio.run(limited(work))
        assert not api.errors
        return result, api.requests


async def limited(work: Coroutine[Any, Any, AgentResult], seconds: float = 30) -> AgentResult:
    async with asyncio.timeout(seconds):
        return await work


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
