"""The default policy on tools: agents work inside the project; anything else needs a human's approval.

Allowed: reading the project, changing it if the step may, and running commands in it. Denied: the
run's own files (``.git``, ``.planning``, ``.gsd``, ``gsd.toml``, ``.claude``, shell startup files),
git's history, more privileges, other processes, secrets, and writing outside the project. Asked:
commands that publish, deploy, or delete or read something outside, and commands that cannot be
parsed.

This is not a sandbox. The policy checks the text of a command, not what a program does: a script,
a test or a build that the agent wrote can do anything that the user can. It stops mistakes and
careless agents; use a container against malicious ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gsd_core import Allow, Ask, Deny, Permission, ToolUse, implements
from gsd_core.hookspecs import gsd_permit_tool

from .lexer import ParseError
from .paths import Objection, PathPolicy
from .programs import names
from .shell import CommandLine

GSD_TOOLS_PREFIX = "mcp__gsd__"
READ_TOOLS = frozenset({"Read", "NotebookRead", "Glob", "Grep", "LS"})
WRITE_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
HARMLESS_TOOLS = names(
    """
    AskUserQuestion StructuredOutput TodoWrite TodoRead WebFetch WebSearch ToolSearch TaskCreate TaskGet
    TaskList TaskUpdate TaskOutput BashOutput Skill SlashCommand EnterPlanMode ExitPlanMode
    """
)
SHELL_KILL_TOOLS = frozenset({"KillShell", "KillBash", "TaskStop"})
AGENT_TOOLS = frozenset({"Task", "Agent"})


@implements(gsd_permit_tool)
async def default_policy(use: ToolUse) -> Permission | None:
    """Permit one use of a tool; a human decides about a use that cannot be understood."""
    objections = list(_objections(use))
    for kind in (Deny, Ask):
        for objection in objections:
            if isinstance(objection, kind):
                return objection
    return Allow()


def _objections(use: ToolUse) -> Iterator[Objection]:
    policy = PathPolicy.for_project(use.tree)
    if use.name in READ_TOOLS:
        yield from _check_read(use, policy)
    elif use.name in WRITE_TOOLS:
        yield from _check_write(use, policy)
    elif use.name == "Bash":
        yield from _check_command(use, policy)
    elif use.name in AGENT_TOOLS:
        yield Deny(reason="agents may not start other agents")
    elif use.name in SHELL_KILL_TOOLS:
        yield None if use.writable else Deny(reason="this step is read-only")
    elif use.name not in HARMLESS_TOOLS and not use.name.startswith(GSD_TOOLS_PREFIX):
        yield Ask(reason=f"{use.name} is not a tool known to this policy")


def _check_read(use: ToolUse, policy: PathPolicy) -> Iterator[Objection]:
    named = [use.input.get(name) for name in ("file_path", "notebook_path", "path")]
    pattern = use.input.get("pattern") if use.name == "Glob" else None
    for path in [*named, _literal_folder(pattern)]:
        if isinstance(path, str) and path:
            yield policy.check_read(str(Path(path).expanduser()))
        elif path:
            yield Ask(reason=f"{use.name} without a valid path")


def _literal_folder(pattern: object) -> object:
    """Return the folder that a glob pattern begins with, if it may be outside the project."""
    if not isinstance(pattern, str) or not pattern.startswith(("/", "~", "..")):
        return None
    return "/".join(part for part in pattern.split("*")[0].split("/")[:-1]) or "/"


def _check_write(use: ToolUse, policy: PathPolicy) -> Iterator[Objection]:
    if not use.writable:
        yield Deny(reason="this step is read-only")
    path = use.input.get("file_path") or use.input.get("notebook_path")
    if not isinstance(path, str) or "\0" in path:
        yield Ask(reason=f"{use.name} without a valid path")
        return
    yield policy.check_write(str(Path(path).expanduser()))
    real = policy.resolved(str(Path(path).expanduser()))
    if not real.is_relative_to(policy.tree):
        yield Deny(reason=f"{path} is outside the project")


def _check_command(use: ToolUse, policy: PathPolicy) -> Iterator[Objection]:
    command = use.input.get("command")
    if not isinstance(command, str):
        yield Ask(reason="the command is not a string")
        return
    try:
        yield from CommandLine.at(policy, writable=use.writable).check(command)
    except (ParseError, RecursionError, ValueError) as error:
        yield Ask(reason=f"the command cannot be parsed: {error}")
