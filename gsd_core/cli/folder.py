"""The project's folder: one that is there and a repository, or a new one that becomes one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from gsd_core.errors import ProjectError
from gsd_core.git import Git, git_common_dir


def check_folder(root: Path) -> bool:
    """Return whether *root* has yet to be made; raise ``ProjectError`` if it can be no project."""
    if not root.exists():
        return True
    if not root.is_dir():
        raise ProjectError(f"{str(root)!r} is not a folder", hint="name the project's folder after -C")
    if git_common_dir(root):
        return False
    if any(root.iterdir()):
        hint = "look at what is in it; if it is the project, run `git init` there first"
        raise ProjectError(f"{str(root)!r} is not empty and no git repository", hint=hint)
    return True


REHEARSED = ("rehearsal",)
REHEARSER = ("GSD rehearsal", "rehearsal@localhost")
"""Who commits in a repository that is made for a rehearsal, where git knows nobody: it is nobody's work."""


def make_folder(root: Path, agents: Sequence[str]) -> None:
    """Make *root* a repository for *agents* to work in; refuse first if nobody could commit there."""
    asyncio.run(_make(root, rehearsed=tuple(agents) == REHEARSED))


async def _make(root: Path, *, rehearsed: bool) -> None:
    nearest = next(parent for parent in (root, *root.parents) if parent.is_dir())
    unknown = await Git(nearest).identity() is None
    if unknown and not rehearsed:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know who you are, so it cannot commit", hint=hint)
    await asyncio.to_thread(root.mkdir, parents=True, exist_ok=True)
    await Git(root).init()
    if unknown:
        await Git(root).identify(*REHEARSER)
