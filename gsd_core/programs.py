"""Programs that gsd starts itself, found on ``PATH`` but never in the project."""

from __future__ import annotations

import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path


def own_command() -> tuple[str, ...]:
    """Return the command that starts this gsd again; its arguments are to be added.

    ``-P``: Python would otherwise look for modules in the working directory first, and that may be a
    repository that nobody trusts: its ``click.py`` would be executed.
    """
    return (sys.executable, "-P", "-m", "gsd_core")


def find_program(name: str, tree: Path | None = None) -> Path | None:
    """Return the absolute path of the program *name*; ``None`` if it is not on ``PATH``.

    Entries of ``PATH`` that are relative are skipped, and so are those in the repository that *tree* belongs
    to: with ``.`` or ``node_modules/.bin`` on it, a repository could bring its own ``git``.
    """
    return _find(name, _work_tree(tree.resolve()) if tree else None, os.environ.get("PATH", os.defpath))


@lru_cache
def _find(name: str, tree: Path | None, path: str) -> Path | None:
    for folder in map(Path, path.split(os.pathsep)):
        # The root folder is not a project: everything is in it.
        is_inside = bool(tree and tree != Path("/") and folder.resolve().is_relative_to(tree))
        if not folder.is_absolute() or is_inside:
            continue
        if found := shutil.which(name, path=str(folder)):
            return Path(found)
    return None


def _work_tree(folder: Path) -> Path:
    """Return the root of the repository that *folder* is in, or *folder* itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
