"""Work trees of the repository, which are made for plans and removed once the project has their commits."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from .command import Command
from .errors import GitError
from .refs import is_ancestor
from .repository import changed, head, one_writer


def enter_worktree(git: Command, path: Path) -> int:
    """Return a descriptor of the work tree at *path*, outside of the project, which keeps it from removal.

    If there is none, it is made at the project's last commit, and on no branch.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with one_writer(git):
        if not path.exists():
            git("worktree", "prune")
            git("worktree", "add", "--quiet", "--detach", str(path), "HEAD")
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor


def remove_worktrees(git: Command, folder: Path) -> None:
    """Remove the work trees in *folder* in which nobody works, if the project has all that is in them."""
    with one_writer(git):
        for path in sorted(folder.glob("*")):
            # What git refuses to remove has something that is nowhere else.
            with suppress(GitError, OSError):
                _remove(git, path)
    with suppress(OSError):
        folder.rmdir()


def _remove(git: Command, path: Path) -> None:
    tree = Command(root=path, environment=git.environment)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_ancestor(git, head(tree) or "", head(git) or "") and not changed(tree):
            git("worktree", "remove", str(path))
    finally:
        os.close(descriptor)
