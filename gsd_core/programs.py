"""Programs that gsd starts itself, found on ``PATH`` but never in the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


def open_in_browser(url: str, tree: Path) -> bool:
    """Open *url* in the user's browser, which is found as by :func:`find_program`; false if there is none.

    It waits for a browser that runs in the terminal.
    """
    folders = _folders(_work_tree(tree.resolve()), os.environ.get("PATH", os.defpath))
    # A process of its own: Python's module and the scripts that it starts, such as xdg-open, look for
    # further programs on PATH.
    command = [sys.executable, "-P", "-c", _OPEN, url]
    environment = {**os.environ, "PATH": os.pathsep.join(map(str, folders))}
    return subprocess.run(command, env=environment, check=False).returncode == 0


_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


@lru_cache
def _find(name: str, tree: Path | None, path: str) -> Path | None:
    for folder in _folders(tree, path):
        if found := shutil.which(name, path=str(folder)):
            return Path(found)
    return None


def _folders(tree: Path | None, path: str) -> Iterator[Path]:
    """Yield the folders of *path* that a program may be taken from."""
    for folder in map(Path, path.split(os.pathsep)):
        # The root folder is not a project: everything is in it.
        is_inside = bool(tree and tree != Path("/") and folder.resolve().is_relative_to(tree))
        if folder.is_absolute() and not is_inside:
            yield folder


def _work_tree(folder: Path) -> Path:
    """Return the root of the repository that *folder* is in, or *folder* itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
