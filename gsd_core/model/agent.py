"""A piece of work for a model, what it came to, and what an agent may do meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from .question import Answer, Question
from .usage import Usage

Role: TypeAlias = Literal["roadmapper", "planner", "executor", "verifier", "researcher", "discusser"]
Ended: TypeAlias = Literal["done", "turns", "dollars", "lost"]


@frozen(kw_only=True)
class Limits:
    """How much one call may use; ``None`` is no limit.

    The core stops a call that reports no activity for *idle*, or runs for *hard*;
    neither clock runs while a human is asked. *dollars* and *turns* are the agent's to keep.
    """

    dollars: Decimal | None = None
    turns: int | None = None
    idle: timedelta = timedelta(minutes=10)
    hard: timedelta = timedelta(hours=1)


@frozen(kw_only=True)
class Conversation:
    """An agent's conversation: its *id* (a UUID), the *cwd* it belongs to, and whether to resume it."""

    id: str
    cwd: str
    resume: bool = False


@frozen(kw_only=True)
class AgentFunction:
    """A tool of ours that the agent may call; *schema* is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@frozen(kw_only=True)
class AgentTask:
    """One piece of work for a model.

    *tools* are Claude Code's names of the tools that the work needs; ``None`` is all of them.
    *schema*, if any, is the JSON schema of the value to return.
    *model* is an alias (opus, sonnet, haiku), a model's id, or empty for the agent's default.
    *writable*: whether the work may change files in *tree*.
    *user_settings*: whether the user's own settings of the agent are loaded (slash commands).
    *conversation* is stamped by the core.
    """

    step: str
    role: Role
    prompt: str
    system: str = ""
    tools: tuple[str, ...] | None = ()
    functions: tuple[AgentFunction, ...] = ()
    schema: Mapping[str, Any] | None = None
    model: str = ""
    tree: Path
    writable: bool = False
    limits: Limits = field(factory=Limits)
    conversation: Conversation | None = None
    user_settings: bool = False
    run: str = ""


@frozen(kw_only=True)
class AgentResult:
    """What an agent came to; *value* is the structured value if the task has a schema."""

    text: str = ""
    value: Any = None
    conversation: str = ""
    model: str = ""
    usage: Usage = field(factory=Usage)
    ended: Ended = "done"


@frozen(kw_only=True)
class ToolUse:
    """A tool that is about to be used, with its input, by an agent or by a plan's check."""

    step: str
    name: str
    input: Mapping[str, Any]
    asked_by: Literal["agent", "plan"]
    tree: Path
    writable: bool = True


@frozen(kw_only=True)
class Allow:
    """The use is fine."""


@frozen(kw_only=True)
class Deny:
    """The use is refused; *reason* is told to the agent."""

    reason: str


@frozen(kw_only=True)
class Ask:
    """A human has to say."""

    reason: str


Permission: TypeAlias = Allow | Deny | Ask


@frozen(kw_only=True)
class Activity:
    """One thing an agent was seen doing: *kind* with a short *text*, and the *tool* if it used one."""

    kind: Literal["text", "tool", "result", "retry", "start"]
    text: str = ""
    tool: str = ""


class AgentHost(Protocol):
    """What an agent may do; its clocks stop while a human is asked."""

    async def permit(self, use: ToolUse) -> Permission:
        """Ask the policies about a tool's use; ``Ask``: call :meth:`confirm`. Waits for no human."""
        ...

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Ask a human about a tool's use; returns ``Allow`` or ``Deny``."""
        ...

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Ask a human; an answer for each question, in their order."""
        ...

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Call one of the task's functions; returns the text for the model."""
        ...

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """Report that the agent is alive; *usage* is that of one turn, given once for each turn."""
        ...

    def started(self, pid: int) -> None:
        """Report the agent's process, so that a later start can end it if we are killed."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that every process of the agent must carry (``GSD_RUN`` among them)."""
        ...
