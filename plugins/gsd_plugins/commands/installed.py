"""The GSD commands that are installed for Claude Code, and what is missing.

GSD installs them in one of three forms, by version and options: ``commands/gsd/NAME.md`` is ``/gsd:NAME``,
``commands/gsd-NAME.md`` and the skill ``skills/gsd-NAME/SKILL.md`` are ``/gsd-NAME``. They are in the user's
folder (``$CLAUDE_CONFIG_DIR``, or ``~/.claude``) or in the project's ``.claude``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from gsd_core import Finding

INSTALL = "install GSD's commands with `npx get-shit-done-cc@latest --claude --global`"
FORMS = (
    ("commands/gsd/{name}.md", "/gsd:{name}"),
    ("commands/gsd-{name}.md", "/gsd-{name}"),
    ("skills/gsd-{name}/SKILL.md", "/gsd-{name}"),
)
"""Where a command's file is, and how it is called."""
PROGRAM = "gsd-sdk"
WORKFLOWS = ("get-shit-done/workflows", "gsd-core/workflows")
MAX_BYTES = 2_000_000


def folders(project: Path) -> tuple[Path, ...]:
    """Return the folders in which Claude Code looks for commands, the user's first."""
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(own) if own else Path.home() / ".claude", project / ".claude")


def invocation(name: str, project: Path) -> str:
    """Return how the command *name* is called in *project*, such as ``/gsd:plan-phase``; empty if missing."""
    for folder in folders(project):
        for path, called in FORMS:
            if (folder / path.format(name=name)).is_file():
                return called.format(name=name)
    return ""


def findings(names: Iterable[str], project: Path) -> Iterator[Finding]:
    """Yield a finding about the commands *names*, and one about the program that they run."""
    names = tuple(names)
    missing = [name for name in names if not invocation(name, project)]
    if missing:
        listed = ", ".join(f"/gsd:{name}" for name in missing)
        where = " or ".join(str(folder) for folder in folders(project))
        message = f"these commands of GSD are not installed in {where}: {listed}"
        yield Finding(name="commands", ok=False, message=message, fix=INSTALL)
        return
    yield Finding(name="commands", ok=True, message=f"{len(names)} commands of GSD are installed")
    if _needs_program(project) and not shutil.which(PROGRAM):
        message = f"the installed commands of GSD run {PROGRAM!r}, which is not on PATH"
        fix = f"add the folder of {PROGRAM} to PATH (often ~/.local/bin), or {INSTALL}"
        yield Finding(name=PROGRAM, ok=False, message=message, fix=fix)


def _needs_program(project: Path) -> bool:
    for folder in folders(project):
        for name in WORKFLOWS:
            with suppress(OSError), (folder / name / "plan-phase.md").open("rb") as file:
                return PROGRAM.encode() in file.read(MAX_BYTES)
    return False
