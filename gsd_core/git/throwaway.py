"""A throwaway copy of the repository's git directory, for an agent that may use git as it likes."""

from __future__ import annotations

from pathlib import Path

from gsd_core.model.sandbox import Place

from .command import Command


def make(git: Command, folder: Path) -> Path | None:
    """Make a throwaway git directory in *folder*, an empty private folder of the caller; return *folder*.

    ``None`` if the folder of *git* is in no repository. Make one for each agent call, and remove *folder* at
    its end. Raises ``GitError``.
    """
    raise NotImplementedError


def refresh(git: Command, folder: Path) -> None:
    """Show the processes that use *folder* the repository's current commit, after the core has made one."""
    raise NotImplementedError


def places(folder: Path) -> tuple[Place, ...]:
    """Return what a confined process has to see so that git uses the copy that :func:`make` made."""
    raise NotImplementedError
