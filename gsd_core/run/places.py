"""What a confined process of a run sees of the host, and which of it it may change."""

from __future__ import annotations

from pathlib import Path

from gsd_core.model.sandbox import Place


def prepare(project: Path, tree: Path, *, writable: bool, git: Path | None, home: Path) -> tuple[Place, ...]:
    """Return the places for a process that works in *tree*, the project itself or a checkout of it.

    *git* is the result of ``gsd_core.git.throwaway.make`` for *tree*; *home* that of
    ``gsd_core.run.private_home.private_home``. *writable*: whether it may change the files of *tree*.
    """
    raise NotImplementedError
