"""Repeat a command whenever a file changes, for people who edit a plugin and look at what it does.

The command runs in a new process each time, because a module that was imported does not change any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gsd_core.own_process import data_output
from gsd_core.programs import own_command
from gsd_core.sanitize import one_line

from .output import counted, print_line, styled

POLL_SECONDS = 0.3
MAX_FILES = 50_000
"""More files than this are not watched: comparing them would take as long as the pause between two looks."""
MAX_NAMES = 3
IGNORED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "target", ".mypy_cache"})

Stamp = tuple[int, int]


def watch(arguments: Sequence[str], folder: Path, files: Iterable[Path] = ()) -> NoReturn:
    """Run ``gsd`` with *arguments*, and again after each change in *folder* or of one of the *files*.

    It ends with ``KeyboardInterrupt``. A command that fails is run again like any other.
    """
    others = [*files]
    before = _stamps(folder, others)
    while True:
        out = data_output()
        subprocess.run([*own_command(), *arguments], check=False, stdout=None if out is sys.stdout else out)
        changed = _wait(folder, others, before)
        before = _stamps(folder, others)
        names = ", ".join(sorted({Path(name).name for name in changed})[:MAX_NAMES])
        more = f" (of {counted(len(changed), 'file')})" if len(changed) > MAX_NAMES else ""
        print_line(styled(f"\nchanged: {one_line(names, 200)}{more}", "dim"))
        sys.stdout.flush()


def _wait(folder: Path, files: Sequence[Path], before: Mapping[str, Stamp]) -> set[str]:
    """Return the paths that differ from *before*, once there are some and nothing changes any more."""
    latest, changed = before, set[str]()
    while True:
        time.sleep(POLL_SECONDS)
        now = _stamps(folder, files)
        if now == latest and changed:
            return changed
        changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        latest = now


def _stamps(folder: Path, files: Iterable[Path]) -> dict[str, Stamp]:
    """Return the time and size of each file, by path; of *folder*, at most ``MAX_FILES``."""
    found: dict[str, Stamp] = {}
    for path in (*map(str, files), *_paths(folder)):
        try:
            about = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - called for each file, several times a second
        except OSError:
            continue
        found[path] = (about.st_mtime_ns, about.st_size)
        if len(found) >= MAX_FILES:
            break
    return found


def _paths(folder: Path) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        yield from (os.path.join(base, name) for name in sorted(names))  # noqa: PTH118
