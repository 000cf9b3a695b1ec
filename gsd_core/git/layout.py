"""Where a repository keeps its files, and whether git may be run there at all.

A folder that was copied or unpacked comes with its own ``.git``. That may be a file which points to another
repository, its settings may name another work tree, and links in it lead git's writes anywhere: git follows
``.git/COMMIT_EDITMSG``, ``.git/index`` and ``.git/logs`` wherever they lead. All this is checked without git,
because git would have followed it by then.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import attrs

from .errors import LayoutError

READ_BY_GIT = (
    *("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "commondir", "gitdir"),
    *("info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "objects/info/alternates"),
)
"""Files in git's directory. git waits forever for one that is a pipe."""

READ_IN_TREE = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")

NOT_WRITTEN = frozenset({"hooks", "lfs", "modules", "annex"})
"""Folders in git's directory that gsd's git only reads. People link hooks to their own files."""

MAX_POINTER = 4096
MAX_LOOKED_AT = 20_000
"""Folders of the work tree that are searched for a pipe when git does not end."""


@attrs.frozen(kw_only=True)
class Layout:
    """The repository of a folder: *top* of the work tree, *own* directory of git, and the *common* one."""

    top: Path
    own: Path
    common: Path

    @property
    def configs(self) -> tuple[Path, Path]:
        """The files with the repository's own settings."""
        return self.common / "config", self.own / "config.worktree"


def locate(root: Path) -> Layout | None:
    """Return the repository that git would use in *root*; ``None`` if git would find none.

    Raise ``LayoutError`` for a bare repository, and for a ``.git`` that belongs to another folder.
    """
    start = Path(os.path.realpath(root))  # git starts there as well
    for folder in (start, *start.parents):
        entry = folder / ".git"
        if entry.is_dir() and _is_git_directory(entry):
            own = Path(os.path.realpath(entry))
            layout = Layout(top=folder, own=own, common=_common(own))
        elif entry.is_file():
            pointer = _first_line(entry).removeprefix("gitdir:").strip()
            if not pointer:
                raise LayoutError(f"{entry} does not say where the repository is", hint=f"remove {entry}")
            own = Path(os.path.realpath(folder / pointer))
            layout = Layout(top=folder, own=own, common=_common(own))
        elif _is_git_directory(folder):
            message = f"{folder} is git's own directory or a bare repository, not a project"
            raise LayoutError(message, hint="name the project's folder with -C")
        else:
            continue
        if not _belongs(layout):
            message = f"{entry} points to the repository {layout.own}, which belongs to another folder"
            fix = f"git --git-dir={layout.own} config core.worktree {layout.top}"
            raise LayoutError(message, hint=f"remove {entry}; or, if that is your repository: {fix}")
        return layout
    return None


def check(layout: Layout) -> None:
    """Raise ``LayoutError`` if a file that git reads at every call is not a regular file."""
    for path in _read_by_git(layout):
        with suppress(OSError):
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode) and not (stat.S_ISDIR(mode) and path.parent == layout.top):
                raise not_regular(path)


@lru_cache
def _read_by_git(layout: Layout) -> tuple[Path, ...]:
    # Kept, because putting the paths together takes longer than looking at the files.
    files = [folder / name for folder in {layout.own, layout.common} for name in READ_BY_GIT]
    return (*files, *(layout.top / name for name in READ_IN_TREE))


def not_regular(path: Path) -> LayoutError:
    """Return the error for a pipe or a device in place of a file that git reads."""
    return LayoutError(f"{path} is not a regular file, and git would wait for it", hint=f"remove {path}")


def check_links(layout: Layout) -> None:
    """Raise ``LayoutError`` if git would write through a link that leads out of its directory."""
    inside = (layout.common, layout.own)
    for path in _links(layout.common):
        target = Path(os.path.realpath(path))
        if not any(target.is_relative_to(folder) for folder in inside):
            hint = f"replace the link by what it points to, or remove it: rm {path}"
            raise LayoutError(f"{path} is a link to {target}: git would write there", hint=hint)


def blocking_file(layout: Layout) -> Path | None:
    """Return a pipe or device of the work tree that git reads as settings, if there is one."""
    for number, (folder, folders, names) in enumerate(os.walk(layout.top)):
        if number > MAX_LOOKED_AT:
            break
        folders[:] = [name for name in folders if name != ".git"]
        for name in READ_IN_TREE:
            path = Path(folder) / name
            if name in names and not stat.S_ISREG(path.lstat().st_mode):
                return path
    return None


def _is_git_directory(folder: Path) -> bool:
    # As git itself recognizes one; in that of a linked worktree, "commondir" replaces the folders.
    has_head = os.path.lexists(folder / "HEAD")
    return has_head and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _common(own: Path) -> Path:
    pointer = _first_line(own / "commondir")
    return Path(os.path.realpath(own / pointer)) if pointer else own


def _belongs(layout: Layout) -> bool:
    """Whether git's directory is that of this folder: it is inside, or says so itself."""
    top = Path(os.path.realpath(layout.top))
    if layout.own.is_relative_to(top) and layout.common.is_relative_to(top):
        return _work_tree(layout, default=top) == top
    if back := _first_line(layout.own / "gitdir"):  # a linked worktree
        return Path(os.path.realpath(layout.own / back)) == top / ".git"
    return _work_tree(layout, default=None) == top  # a submodule, or a separate directory


_WORK_TREE = re.compile(rb"^\s*(?:\[core\]\s*)?worktree\s*=\s*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)


def _work_tree(layout: Layout, *, default: Path | None) -> Path | None:
    """Return the work tree that the repository's settings name."""
    for config in reversed(layout.configs):
        if found := _WORK_TREE.findall(read_bytes(config)):
            value = os.fsdecode(found[-1]).strip('"')
            return Path(os.path.realpath(layout.own / value))
    return default


def _first_line(path: Path) -> str:
    return os.fsdecode(read_bytes(path, MAX_POINTER).split(b"\n", 1)[0]).strip()


def read_bytes(path: Path, limit: int = 2**20) -> bytes:
    """Return the beginning of a regular file; empty if it is none, or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        return file.read(limit) if is_file else b""


def _links(folder: Path, *, is_objects: bool = False) -> Iterator[Path]:
    """Yield the links below git's directory, without what is only read."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in NOT_WRITTEN and not is_objects:
                continue
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir() and not is_objects:
                # Objects are in folders that git makes itself, and there are many of them.
                yield from _links(Path(entry.path), is_objects=entry.name == "objects")
