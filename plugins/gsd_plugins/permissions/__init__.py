"""The default policy on tools: agents work inside the project; anything else needs a human's approval.

In a sandbox (``ToolUse.confined``), commands may do anything but have effects on other machines: what
publishes, deploys, pushes, sends mail or data, or connects to another machine is asked about.
An agent that owns the planning (``ToolUse.owns_planning``) may also change ``.planning/``, add and commit,
make branches and tags, and start subagents.

Without a sandbox, the policy is conservative. Allowed: reading the project, changing it if the step may,
and running known programs in it. Denied: changing the run's own files (``.git``, ``.planning``, ``.gsd``,
``gsd.toml``, ``.claude``, shell startup files), git's history, more privileges, other processes, secrets,
and writing outside the project. Asked: effects on other machines, unknown programs, a path that is written
to and not visible, code that does not show what it changes, and commands that cannot be parsed.

This is not a sandbox. The policy reads the text of a command; what it does not see:

- what a script, a test, a build or a program of the project does, also one that the agent has just written;
- what an installed package does, and a program that a registry delivers (``npx``, ``uvx``);
- code in an interpreter's argument that hides what it does: only literals and names are read, so a name that
  is bound to something else (``w = open; …``) or a path from a library call can go unnoticed;
- which files an archive, a patch or a version of the project's own tool replaces;
- what the output of a program is, beyond that of ``echo``, ``find`` and the like: it is unknown, and asked
  about where it is written to or run;
- in a sandbox, a command whose program or text is known only at run time (``$CMD``, ``eval "$X"``);
- links and files that appear between the check and the command, and links inside an archive;
- where ``PATH``, an alias or a function of the user's shell leads.

It stops mistakes and careless agents; a sandbox stops the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from gsd_core import Allow, Ask, Deny, Permission, ToolUse, implements, setting, settings_of
from gsd_core.hookspecs import gsd_permit_tool, gsd_settings

from .findings import Findings
from .paths import Objection, Paths, strictest
from .shell import Shell
from .table import entry_of
from .words import TooComplex

GSD_TOOLS_PREFIX = "mcp__gsd__"
GSD_PROGRAMS = frozenset({"gsd-sdk", "gsd-tools"})
"""The programs of GSD's own commands, which an agent that owns the planning may run."""
MAX_SEARCHED = 1_000_000


@attrs.frozen(kw_only=True)
class PermissionSettings:
    """Names of further *programs* that agents may run without being asked about.

    Their arguments are still checked as paths.
    """

    programs: tuple[str, ...] = setting(
        (), help="names of further programs that agents may run without asking"
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the list of programs."""
    yield PermissionSettings


@implements(gsd_permit_tool)
async def default_policy(use: ToolUse) -> Permission | None:
    """Permit one use of a tool; a human decides about a use that cannot be understood."""
    policy = Paths.for_project(use.tree, owns_planning=use.owns_planning)
    if use.name == "Bash":
        return _check_command(use, policy)
    return strictest(_objections(use, policy)) or Allow()


def _objections(use: ToolUse, policy: Paths) -> Iterator[Objection]:
    match entry_of("tools", use.name):
        case "read":
            yield from _check_read(use, policy)
        case "write":
            yield from _check_write(use, policy)
        case "agents" if not use.owns_planning:
            # With it, the same policies decide about what a subagent does.
            yield Deny(reason="agents may not start other agents")
        case "ends" if not use.writable:
            yield Deny(reason="this step is read-only")
        case "" if not use.name.startswith(GSD_TOOLS_PREFIX):
            yield Ask(reason=f"{use.name} is not a tool known to this policy")
        case _:
            pass


def _check_read(use: ToolUse, policy: Paths) -> Iterator[Objection]:
    named = [use.input.get(name) for name in ("file_path", "notebook_path", "path")]
    pattern = use.input.get("pattern") if use.name == "Glob" else None
    for path in [*named, _literal_folder(pattern)]:
        if isinstance(path, str) and path:
            yield policy.check_read_path(str(Path(path).expanduser()))
        elif path:
            yield Ask(reason=f"{use.name} without a valid path")


def _literal_folder(pattern: object) -> object:
    """Return the folder that a glob pattern begins with, if it may be outside the project."""
    if not isinstance(pattern, str) or not pattern.startswith(("/", "~", "..")):
        return None
    return "/".join(part for part in pattern.split("*")[0].split("/")[:-1]) or "/"


def _check_write(use: ToolUse, policy: Paths) -> Iterator[Objection]:
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


def _check_command(use: ToolUse, policy: Paths) -> Permission:
    command = use.input.get("command")
    if not isinstance(command, str):
        return Ask(reason="the command is not a string")
    findings = Findings()
    allowed = frozenset(settings_of(PermissionSettings).programs)
    if use.owns_planning:
        allowed |= GSD_PROGRAMS
    shell = Shell(paths=policy, findings=findings, writable=use.writable, allowed=allowed)
    try:
        shell.run_text(command)
    except (TooComplex, RecursionError, ValueError, OSError, re.error) as error:
        findings.unparsed(command[:MAX_SEARCHED], str(error))
    return findings.decide(confined=use.confined)
