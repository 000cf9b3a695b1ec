"""What runs that were killed left behind: found for ``gsd doctor``, and removed by ``gsd doctor --fix``.

The next run of the project removes most of it too (:mod:`gsd_core.run.recovery`). Only what nobody can still
need counts as a leftover: saved work below ``refs/gsd`` and files with an unknown owner are never removed.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.files import DRAFT
from gsd_core.git.command import Command
from gsd_core.git.recovery import lock_files, sweep_locks
from gsd_core.git.repository import worktrees
from gsd_core.journal.lock import OWNER, ProjectLock
from gsd_core.processes import Process, is_git_at_work, processes

from .temporary import dead_folders, remove_folder

SETTLED = timedelta(minutes=10)
"""How old a lock or a draft has to be: its owner may be a process in a container, which is not visible."""

FOREIGN = timedelta(days=1)
"""How old the folder of another project's run has to be, whose lock is not ours to take."""

UNOWNED = ("gsd-claude-*", "gsd-rehearsal-*", "gsd-index-*", "gsd-crash-*.txt")
"""Names of temporary files without a process id in them. Old ones are named, not removed."""


@attrs.frozen(kw_only=True)
class Leftovers:
    """What dead runs left: private *folders*, git's *locks*, *drafts*, and *owner*, the file of the lock."""

    folders: tuple[Path, ...] = ()
    locks: tuple[Path, ...] = ()
    drafts: tuple[Path, ...] = ()
    owner: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return (*self.folders, *self.locks, *self.drafts, *([self.owner] if self.owner else []))


def find_leftovers(root: Path, data: Path | None) -> Leftovers:
    """Return what dead runs left for the project at *root*, and temporary folders of other projects.

    *data* is the folder of the project's lock, ``None`` without a repository. Call it only if no run is
    active in the project. Raises ``GitError`` and ``OSError``.
    """
    own = set(dead_folders(root))
    folders = [folder for folder in dead_folders(None) if folder in own or _is_older(folder, FOREIGN)]
    if data is None:
        return Leftovers(folders=tuple(folders))
    git = Command(root=root)
    locks = {path for path in lock_files(git) if _is_older(path, SETTLED)}
    if locks and is_git_at_work(locks, worktrees(git)):
        locks = set[Path]()
    planning, owner = root / ".planning", data / OWNER
    found = () if planning.is_symlink() else planning.rglob("*".join(DRAFT))
    drafts = [path for path in found if not path.is_dir() and _is_older(path, SETTLED)]
    return Leftovers(
        folders=tuple(sorted(folders)),
        locks=tuple(sorted(locks)),
        drafts=tuple(sorted(drafts)),
        owner=owner if os.path.lexists(owner) else None,
    )


def remove_leftovers(root: Path, data: Path | None) -> tuple[Path, ...]:
    """Remove the leftovers of :func:`find_leftovers`, and return what is gone.

    Raises ``Locked`` if a run is active in the project, ``MachineError`` if its lock cannot be taken.
    """
    found = find_leftovers(root, data)
    if data is None or not (data.is_dir() or found.paths):
        _remove(found.folders)
    else:
        # While this process has the lock, no run starts. Taking and releasing it removes the owner's file.
        with ProjectLock(data, command="gsd doctor --fix"):
            found = attrs.evolve(find_leftovers(root, data), owner=found.owner)
            if found.locks:
                before = time.time() - SETTLED.total_seconds()
                sweep_locks(Command(root=root), before=before, in_use=is_git_at_work)
            _remove([*found.folders, *found.drafts])
    return tuple(path for path in found.paths if not os.path.lexists(path))


def unowned_files() -> tuple[Path, ...]:
    """Return this user's old temporary files of gsd of which nobody can say whether they are still needed."""
    folder = Path(tempfile.gettempdir())
    found: list[Path] = []
    for path in (path for pattern in UNOWNED for path in folder.glob(pattern)):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid() and _is_older(path, FOREIGN):
                found.append(path)
    return tuple(sorted(found))


def leftover_processes(marks: Collection[str]) -> tuple[Process, ...]:
    """Return this user's processes that carry one of these marks of runs; none of them should be active."""
    return tuple(one for one in processes("GSD_RUN") if one.mark in marks and one.pid != os.getpid())


def _is_older(path: Path, age: timedelta) -> bool:
    try:
        changed = path.lstat().st_mtime
    except OSError:
        return False
    return time.time() - changed > age.total_seconds()


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            with suppress(OSError):
                path.unlink()
