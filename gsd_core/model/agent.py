"""Agent calls: the task for a model, its result, and what the agent may do while it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from .question import Answer, Question
from .sandbox import Place, SandboxedCommand
from .usage import Usage

Role: TypeAlias = str
"""What an agent is asked to be: ``planner``, ``executor``, ``verifier`` …; plugins may use others."""
Ended: TypeAlias = Literal["done", "turns", "dollars", "lost"]


@attrs.frozen(kw_only=True)
class Limits:
    """How much one call may use; ``None`` means no limit.

    The core stops a call that reports no activity for *idle* or takes longer than *hard*; neither
    timeout runs while a human is being asked. The agent itself has to keep to *dollars* and *turns*.
    """

    dollars: Decimal | None = None
    turns: int | None = None
    idle: timedelta = timedelta(minutes=10)
    hard: timedelta = timedelta(hours=1)


@attrs.frozen(kw_only=True)
class Conversation:
    """A conversation with an agent: its *id* (a UUID), its working directory, and whether to resume it."""

    id: str
    cwd: str
    resume: bool = False


@attrs.frozen(kw_only=True)
class AgentFunction:
    """A function of the step that the agent may call as a tool.

    *schema* is the JSON schema of its arguments.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class AgentTask:
    """One task for a model.

    *tools* are the tools that the task needs, by Claude Code's names; ``None`` means all of them.
    *schema*, if any, is the JSON schema of the value to return.
    *model* is an alias (opus, sonnet, haiku), the id of a model, or empty for the agent's default.
    *tree* is the working directory; *writable*: whether the agent may change files in it.
    *user_settings*: whether to load the user's own settings of the agent, such as slash commands.
    The core sets *conversation*.

    *owns_planning*: the agent writes ``.planning/`` and makes commits itself, as GSD's own commands do. Then
    neither the sandbox nor the guard protects these: what it writes there and commits stays. Still protected
    are git's settings and hooks, earlier history, existing tags and other branches, the journal, and the
    settings of gsd and of the agent. *config* are values by dotted key that ``.planning/config.json`` has
    while the agent works; the user's own come back afterwards, also after a crash. It needs *owns_planning*.
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
    limits: Limits = attrs.field(factory=Limits)
    conversation: Conversation | None = None
    user_settings: bool = False
    owns_planning: bool = False
    config: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    run: str = ""


@attrs.frozen(kw_only=True)
class ToolRecord:
    """A tool that was used in a conversation, as far as it counts as evidence.

    *target* is the path that was read or searched (relative to the tree, if it is in it), the command that
    was run, or the address that was fetched. *exit* is the exit code of a command that the core ran itself,
    else ``None``. *pattern* is the regular expression that a search looked for. *shown* are the first and the
    last line that a read asked for, or how many lines a search shows before and after each that it finds;
    ``None`` if that is not known, or if it shows only names of files. *cases* are test cases that passed in a
    command that the core ran: the first of them, if there are many. *passes_without*: the command ended and
    printed the same without the work of the phase. *flaw* says why it proves nothing: it ran no tests.
    """

    tool: str
    target: str
    exit: int | None = None
    pattern: str = ""
    shown: tuple[int, int] | None = None
    cases: tuple[str, ...] = ()
    passes_without: bool = False
    flaw: str = ""


@attrs.frozen(kw_only=True)
class AgentResult:
    """The result of a task; *value* is the structured value if the task has a schema.

    *ended* says how the call ended: ``turns`` and ``dollars`` are limits, ``lost`` is set by the core
    if the process ended during the call. The core sets *uses*: the tools that were used in this
    conversation, in order. It also sets *sent_back*: how many earlier answers of the call were sent back, in
    this process or before a restart. *note* is what the last line of the run has to say about the agent: a
    clause without a full stop.
    """

    text: str = ""
    value: Any = None
    conversation: str = ""
    model: str = ""
    usage: Usage = attrs.field(factory=Usage)
    ended: Ended = "done"
    uses: tuple[ToolRecord, ...] = ()
    sent_back: int = 0
    note: str = ""


@attrs.frozen(kw_only=True)
class ToolUse:
    """A tool that an agent, or a check of a plan, is about to use, with its input.

    A plan's check is a use of ``Bash``. The core sets *confined*: whether it happens in a sandbox, where
    only its effects on other machines are left to judge. *owns_planning*: the agent may write ``.planning/``,
    make commits and start subagents (see :class:`AgentTask`).
    """

    step: str
    name: str
    input: Mapping[str, Any]
    asked_by: Literal["agent", "plan"]
    tree: Path
    writable: bool = True
    confined: bool = False
    owns_planning: bool = False


@attrs.frozen(kw_only=True)
class Allow:
    """The tool may be used."""


@attrs.frozen(kw_only=True)
class Deny:
    """The tool may not be used; the agent gets the *reason*."""

    reason: str


@attrs.frozen(kw_only=True)
class Ask:
    """A human has to decide; *reason* says why."""

    reason: str


Permission: TypeAlias = Allow | Deny | Ask


@attrs.frozen(kw_only=True)
class Activity:
    """A sign of activity of an agent: its *kind*, a short *text*, and the *tool* if it used one."""

    kind: Literal["text", "tool", "result", "retry", "start"]
    text: str = ""
    tool: str = ""


class AgentHost(Protocol):
    """What an agent plugin may ask of the core during a call. Timeouts pause while a human is being asked."""

    async def permit(self, use: ToolUse) -> Permission:
        """Ask the permission policies; never waits for a human. After ``Ask``, call :meth:`confirm`."""
        ...

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Ask a human whether a tool may be used; return ``Allow`` or ``Deny``."""
        ...

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Ask a human; return one answer for each question, in the same order."""
        ...

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Call one of the task's functions; return the text for the model."""
        ...

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """Report activity, which restarts the inactivity timeout. Give the *usage* of each turn once."""
        ...

    async def confine(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """Return *command* and its environment as they have to be started, confined if the run is.

        Every process of an agent has to be started this way, in the task's tree. *environment* is its whole
        environment, *descriptors* are the open file descriptors that it needs. *places* are files and folders
        that it has to see in addition to the project and its home, such as the folder of its conversations.
        """
        ...

    def started(self, pid: int) -> None:
        """Report the id of the agent's process, for the journal."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that every process of the agent must have.

        ``GSD_RUN`` is one of them: if gsd is killed, the next start finds the processes by it and ends them.
        """
        ...
