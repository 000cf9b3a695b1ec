"""What is not committed."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable

from attrs import frozen

from .command import Command


@frozen
class Entry:
    """One line of git's status; *path* is relative to the project's root.

    *staged* and *unstaged* are git's letters for the index and for the work tree.
    """

    path: str
    staged: str
    unstaged: str

    @property
    def tracked(self) -> bool:
        """git knows the path, in the index or in the last commit."""
        return self.staged != "?"


def entries(git: Command) -> tuple[Entry, ...]:
    """Return everything that is not committed and not ignored, in and below the project's root.

    Repositories inside the project that are not its submodules are left out: git would
    commit no file of theirs.
    """
    out = git(
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=dirty",
        "--",
        ".",
    )
    start = len(git("rev-parse", "--show-prefix"))
    lines = [line for line in out.split("\0") if line]
    return tuple(Entry(line[3 + start :], line[0], line[1]) for line in lines if not line.endswith("/"))


def dirty(git: Command) -> tuple[str, ...]:
    """Return the tracked paths that differ from the last commit."""
    return _sorted(entry.path for entry in entries(git) if entry.tracked)


def untracked(git: Command) -> tuple[str, ...]:
    """Return the paths that git does not know and does not ignore."""
    return _sorted(entry.path for entry in entries(git) if not entry.tracked)


def changed(git: Command, since_dirty: Collection[str]) -> tuple[str, ...]:
    """Return all uncommitted paths except *since_dirty*."""
    return _sorted({entry.path for entry in entries(git)} - set(since_dirty))


def within(found: Iterable[Entry], paths: Iterable[str]) -> tuple[Entry, ...]:
    """Return the entries at or below *paths*."""
    roots = {posixpath.normpath(path) for path in paths}
    return tuple(entry for entry in found if not roots.isdisjoint(_self_and_parents(entry.path)))


def _self_and_parents(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)} | {"."}


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))
