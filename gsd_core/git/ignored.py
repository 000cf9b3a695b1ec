"""What git ignores, and what a second tree of the project needs of it: dependencies and local settings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from attrs import frozen

from gsd_core.files import read_below, write_below

from .command import Command
from .refs import places
from .repository import ignoring_rules, prefix

DEPENDENCIES = frozenset(
    {"node_modules", "bower_components", ".venv", "venv", "vendor", ".bundle", "Pods", "deps"}
)
"""Folders with installed dependencies. Build output (``target``, ``dist``, ``build``) is not among them: it
may have been built from files that are not committed."""
LOCAL_SETTINGS = re.compile(r"\.env(?:\..+)?|\.envrc")
"""Files with local configuration, such as the address of a test database."""
INCLUDED = ".worktreeinclude"
"""Names more ignored files that a second tree needs, by the patterns of a ``.gitignore``. Claude Code reads
it for its own work trees."""
CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gsd", ".DS_Store"}
    | {".cache", ".vite", ".vite-temp", ".vitest"}
)
"""Names that no program needs in order to work. It makes its own, where it may write them."""
MAX_IGNORED = 2_000
MAX_COPIED = 1_000_000
"""The size, in bytes, up to which a file is copied."""


def ignored_paths(git: Command) -> Iterator[str]:
    """Yield the ignored files and folders below the root of *git*; an ignored folder is one path."""
    # Not `ls-files --directory`: it merges a folder whose content is all ignored into its parents.
    arguments = (
        *("--porcelain=v1", "-z", "--ignored=matching", "--untracked-files=all", "--no-renames"),
        *("--ignore-submodules=dirty", "--", "."),
    )
    start = 3 + len(prefix(git))
    lines = [line for line in git("status", *arguments).split("\0") if line.startswith("!! ")]
    for line in lines[:MAX_IGNORED]:
        path = line[start:].rstrip("/")
        if path and PurePosixPath(path).name not in CACHES:
            yield path


def bring_ignored(git: Command, tree: Path) -> None:
    """Bring dependencies, local settings, git's hooks and what ``.worktreeinclude`` names to *tree*.

    *git* is that of another tree of the repository, at its top. Files are copied, large ones linked. A
    folder of dependencies becomes a new folder with links to the packages: what is installed in *tree*
    changes nothing in the other one, and a package that is installed from the project's files is read from
    *tree*. What exists already stays. Raises ``GitError`` and ``OSError``.
    """
    source = git.root.resolve()
    paths = re.compile(re.escape(os.fsencode(source)) + rb"(?![\w.-])")
    to = _Tree(source, tree.resolve(), paths)
    for path in ignored_paths(git):
        pure = PurePosixPath(path)
        if pure.name == ".gitignore":  # venv and uv make folders that ignore themselves
            pure = pure.parent
        folder = git.root / pure
        if pure.name in DEPENDENCIES and folder.is_dir() and not folder.is_symlink():
            to.bring_folder(str(pure), _inner(folder))
        elif LOCAL_SETTINGS.fullmatch(pure.name):
            to.bring_file(path)
    chosen: list[str] = []
    if (found := places(git)).hooks.is_relative_to(source) and not found.hooks.is_relative_to(found.common):
        # husky and others keep them in a folder that git ignores.
        chosen = _others(git, "--exclude-standard", "--", str(found.hooks.relative_to(source)))
    if (source / INCLUDED).is_file():
        chosen += _others(git, f"--exclude-from={INCLUDED}")
    for path in ignoring_rules(git, chosen):
        to.bring_file(path)


def _others(git: Command, *options: str) -> list[str]:
    """Return the files that are not tracked, and match the patterns in *options* of ``git ls-files``."""
    return [path for path in git("ls-files", "-z", "--others", "--ignored", *options).split("\0") if path]


def _inner(folder: Path) -> re.Pattern[str]:
    """Return the names of folders in a folder of dependencies that become new folders, too."""
    if (folder / "pyvenv.cfg").is_file():  # https://docs.python.org/3/library/site.html
        return re.compile(r"bin|Scripts|lib|Lib|python3\.\d+t?|site-packages")
    # Composer's autoloader finds the project by the place of its own files.
    return re.compile(r"bin|composer" if folder.name == "vendor" else r"\.bin|@.+")


@frozen
class _Tree:
    """The tree at *target*, which gets what the tree at *source* has; *paths* finds the latter in texts."""

    source: Path
    target: Path
    paths: re.Pattern[bytes]

    def bring_folder(self, path: str, inner: re.Pattern[str]) -> None:
        """Make the folder at *path*, and the folders in it whose names match *inner*; link the others."""
        if not self._has_place_for(path):
            return
        (self.target / path).mkdir(exist_ok=True)
        with os.scandir(self.source / path) as entries:
            for entry in entries:
                below = f"{path}/{entry.name}"
                if entry.name in CACHES:
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    self.bring_file(below)
                elif inner.fullmatch(entry.name):
                    self.bring_folder(below, inner)
                elif not os.path.lexists(self.target / below):
                    (self.target / below).symlink_to(self.source / below)

    def bring_file(self, path: str) -> None:
        """Copy a file, or link it if it is large; in a text, the path of this tree replaces the other's."""
        source, target = self.source / path, self.target / path
        if os.path.lexists(target) or not self._has_place_for(path):
            return
        about = source.lstat()
        if stat.S_ISLNK(about.st_mode):
            # A relative link leads to the same place of this tree: a package of a monorepo.
            target.symlink_to(os.fsdecode(self._here(os.fsencode(source.readlink()))))
        elif stat.S_ISREG(about.st_mode) and about.st_size > MAX_COPIED:
            target.symlink_to(source)
        elif stat.S_ISREG(about.st_mode):
            # An agent may replace a folder by a link while this goes on.
            content = read_below(self.source, path)
            content = content if b"\0" in content else self._here(content)
            write_below(self.target, path, content, mode=about.st_mode & 0o777, durable=False)

    def _here(self, text: bytes) -> bytes:
        return self.paths.sub(lambda _: os.fsencode(self.target), text)

    def _has_place_for(self, path: str) -> bool:
        """Make the folder of *path*; a component may be a symlink in the commit: never write through it."""
        parent = (self.target / path).parent
        with suppress(FileExistsError, NotADirectoryError):
            parent.mkdir(parents=True, exist_ok=True)
        return parent.is_dir() and parent.resolve().is_relative_to(self.target)
