"""Temporary folders of a run, named after their project and process: what a kill leaves behind is found."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gsd_core.processes import start_time

PREFIX = "gsd-checkout-"


def make_folder(root: Path) -> Path:
    """Make a private temporary folder for the project at *root*, and return it."""
    pid = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{_digest(root)}-{pid}-{_process_digest(pid)}-"))


def sweep_folders(root: Path) -> int:
    """Remove the folders of the project at *root* whose process has ended; return their number."""
    dead = list(dead_folders(root))
    for folder in dead:
        remove_folder(folder)
    return len(dead)


def dead_folders(root: Path | None) -> Iterator[Path]:
    """Yield this user's folders whose process has ended, of the project at *root*; without it, of all."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}{_digest(root) if root else ''}*"):
        found = re.fullmatch(rf"{PREFIX}[0-9a-f]+-(\d+)-([0-9a-f]+)-.*", folder.name)
        with suppress(OSError):
            if not found or folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if _process_digest(int(found[1])) != found[2]:
                yield folder


def remove_folder(folder: Path) -> None:
    """Remove *folder*, also what programs in it made unreadable or, like Go's module cache, read-only."""
    with suppress(OSError):
        shutil.rmtree(folder)
        return
    locked = [folder]
    for path in locked:  # it grows
        with suppress(OSError):
            path.chmod(stat.S_IRWXU)
            locked += [one for one in path.iterdir() if not one.is_symlink() and one.is_dir()]
    shutil.rmtree(folder, ignore_errors=True)


def _digest(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:8]


def _process_digest(pid: int) -> str:
    # With its start time, because another process may have the id by now.
    return hashlib.sha256((start_time(pid) or "").encode()).hexdigest()[:8]
