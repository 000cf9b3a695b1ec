"""The default policy on tools: work in the project, and nothing else, unless a human says so.

Allowed: reading the project, changing it where the work may, and commands in it. Denied: what
belongs to the run (``.git``, ``.planning``, ``.gsd``, ``gsd.toml``, ``.claude``, shell start
files), git's history, more rights, other processes, secrets, and writing outside of the project.
Asked: whatever publishes, deploys, deletes or reads outside, and what cannot be read.

This is a gate, not a sandbox. It reads what a command says, not what a program does: a script,
a test or a build that the agent wrote may do anything that the user may. It stops mistakes and
careless agents; against malice use a container.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gsd_core import Allow, Ask, Deny, Permission, ToolUse, implements
from gsd_core.hookspecs import gsd_permit_tool

from .lexer import Unreadable
from .paths import Places, Verdict
from .shell import Line
from .tables import AGENT_TOOLS, QUIET_TOOLS, READ_TOOLS, SHELL_ENDING_TOOLS, WRITE_TOOLS

OUR_TOOLS = "mcp__gsd__"


@implements(gsd_permit_tool)
async def default_policy(use: ToolUse) -> Permission | None:
    """Judge one use of a tool; a use that cannot be understood is for a human to judge."""
    verdicts = list(_verdicts(use))
    for kind in (Deny, Ask):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return Allow()


def _verdicts(use: ToolUse) -> Iterator[Verdict]:
    places = Places.around(use.tree)
    if use.name in READ_TOOLS:
        yield from _reads(use, places)
    elif use.name in WRITE_TOOLS:
        yield from _writes(use, places)
    elif use.name == "Bash":
        yield from _runs(use, places)
    elif use.name in AGENT_TOOLS:
        yield Deny(reason="agents do not start agents")
    elif use.name in SHELL_ENDING_TOOLS:
        yield None if use.writable else Deny(reason="this work only reads")
    elif use.name not in QUIET_TOOLS and not use.name.startswith(OUR_TOOLS):
        yield Ask(reason=f"{use.name} is not a tool that the policy knows")


def _reads(use: ToolUse, places: Places) -> Iterator[Verdict]:
    named = [use.input.get(name) for name in ("file_path", "notebook_path", "path")]
    pattern = use.input.get("pattern") if use.name == "Glob" else None
    for path in [*named, _literal(pattern)]:
        if isinstance(path, str) and path:
            yield places.read(str(Path(path).expanduser()))
        elif path:
            yield Ask(reason=f"{use.name} without a path that can be read")


def _literal(pattern: object) -> object:
    """Return the folder that a pattern begins with, if it says one of its own."""
    if not isinstance(pattern, str) or not pattern.startswith(("/", "~", "..")):
        return None
    return "/".join(part for part in pattern.split("*")[0].split("/")[:-1]) or "/"


def _writes(use: ToolUse, places: Places) -> Iterator[Verdict]:
    if not use.writable:
        yield Deny(reason="this work only reads")
    path = use.input.get("file_path") or use.input.get("notebook_path")
    if not isinstance(path, str) or "\0" in path:
        yield Ask(reason=f"{use.name} without a path that can be read")
        return
    yield places.write(str(Path(path).expanduser()))
    real = places.resolved(str(Path(path).expanduser()))
    if not real.is_relative_to(places.tree):
        yield Deny(reason=f"{path} lies outside the project")


def _runs(use: ToolUse, places: Places) -> Iterator[Verdict]:
    command = use.input.get("command")
    if not isinstance(command, str):
        yield Ask(reason="a command that is no text")
        return
    try:
        yield from Line.at(places, writable=use.writable).judge(command)
    except (Unreadable, RecursionError, ValueError) as error:
        yield Ask(reason=f"the command cannot be read: {error}")
