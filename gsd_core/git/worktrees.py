"""Work trees of the repository, which are made for plans and removed once the project has their commits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .command import Command
from .errors import GitError
from .refs import is_ancestor
from .repository import changed, head, one_writer


def add_worktree(git: Command, path: Path) -> None:
    """Make a work tree at *path*, outside of the project, at the project's last commit and on no branch."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with one_writer(git):
        git("worktree", "prune")
        git("worktree", "add", "--quiet", "--detach", str(path), "HEAD")


def remove_worktrees(git: Command, folder: Path) -> None:
    """Remove the work trees in *folder* in which nothing is that the project does not have."""
    with one_writer(git):
        for path in sorted(folder.glob("*")):
            tree = Command(root=path, environment=git.environment)
            # What git refuses to remove has something that is nowhere else.
            with suppress(GitError, OSError):
                if is_ancestor(git, head(tree) or "", head(git) or "") and not changed(tree):
                    git("worktree", "remove", str(path))
    with suppress(OSError):
        folder.rmdir()
