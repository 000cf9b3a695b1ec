"""The default policy on tools: agents work inside the project; anything else needs a human's approval.

In a sandbox (``ToolUse.confined``), commands may do anything but have effects on other machines
(``effects``), which are asked about. Without one, a flat list of programs may read and change the project
(``checks``). Changing the run's own files or git's history, more privileges, other processes, secrets and
writing outside the project are denied where they are plain to see, and all that is not plain is asked about.
The page on security lists what this does not see: it stops mistakes and careless agents; a sandbox stops the
others.

``shell`` reads a command, ``checks`` judges each program in it by the table in ``programs.toml``, ``paths``
says what may be read and written, and ``effects`` collects what was found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import attrs

from gsd_core import Allow, Ask, Deny, Permission, ToolUse, implements, setting, settings_of
from gsd_core.hookspecs import gsd_permit_tool, gsd_settings

from .effects import Findings
from .paths import Objection, Paths, strictest
from .shell import Shell, TooComplex
from .table import entry_of

GSD_TOOLS_PREFIX = "mcp__gsd__"
GSD_PROGRAMS = frozenset({"gsd-sdk", "gsd-tools"})
"""The programs of GSD's own commands, which an agent that owns the planning may run."""
MAX_SEARCHED = 100_000


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
    paths = Paths(tree=use.tree, owns_planning=use.owns_planning)
    if use.name != "Bash":
        return strictest(_objections(use, paths)) or Allow()
    command = use.input.get("command")
    if not isinstance(command, str):
        return Ask(reason="the command is not a string")
    findings = Findings(source=command[:MAX_SEARCHED])
    allowed = {*settings_of(PermissionSettings).programs, *(GSD_PROGRAMS if use.owns_planning else ())}
    try:
        Shell(paths=paths, findings=findings, allowed=allowed).run_text(command)
    except (TooComplex, RecursionError, ValueError, OSError, re.error) as error:
        findings.add("hidden", f"the command cannot be checked: {error}")
    return findings.decide(confined=use.confined, writable=use.writable)


def _objections(use: ToolUse, paths: Paths) -> Iterator[Objection]:
    rule = entry_of("tools", use.name)
    given = [use.input.get(name) for name in ("file_path", "notebook_path", "path")]
    named = [os.path.expanduser(path) for path in given if isinstance(path, str) and path]  # noqa: PTH111 - text
    if rule in ("write", "ends") and not use.writable:
        yield Deny(reason="this step is read-only")
    wrong = any(path and not isinstance(path, str) for path in given) or any("\0" in path for path in named)
    if wrong or (rule == "write" and not named):
        yield Ask(reason=f"{use.name} without a valid path")
    elif rule == "read":
        pattern = str(use.input.get("pattern")) if use.name == "Glob" else ""
        if pattern.startswith(("/", "~", "..")):
            named.append(os.path.expanduser(pattern.partition("*")[0].rpartition("/")[0] or "/"))  # noqa: PTH111
        for path in named:
            yield paths.check_read_path(path)
    elif rule == "write":
        for path in named:
            yield paths.check_write_path(path)
            if not paths.places(path)[1].is_relative_to(paths.tree):
                yield Deny(reason=f"{path} is outside the project")
    elif rule == "agents" and not use.owns_planning:
        # With it, the same policies decide about what a subagent does.
        yield Deny(reason="agents may not start other agents")
    elif not rule and not use.name.startswith(GSD_TOOLS_PREFIX):
        yield Ask(reason=f"{use.name} is not a tool known to this policy")
