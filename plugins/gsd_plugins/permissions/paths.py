"""Where an agent may write, and what it may read.

Paths are judged as they are written and as they resolve, so neither ``..`` nor a symbolic link
leads anywhere else; names are compared as a file system would that ignores case and invisible
characters.
"""

from __future__ import annotations

import os
import sys
import tempfile
import unicodedata
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import TypeAlias

from attrs import field, frozen

from gsd_core import Ask, Deny

from .tables import (
    DEVICES,
    LIBRARIES,
    PROTECTED,
    SECRET_FOLDERS,
    SECRET_NAMES,
    SHARED_EXAMPLES,
    SYSTEM,
    SYSTEM_SECRETS,
)

Verdict: TypeAlias = Deny | Ask | None


@frozen(kw_only=True)
class Places:
    """The project's *tree* (resolved), the user's *home*, and the *scratch* folders that anybody may fill."""

    tree: Path
    home: Path = field(factory=lambda: Path(os.path.realpath(Path.home())))
    scratch: tuple[Path, ...] = ()

    @classmethod
    def around(cls, tree: Path) -> Places:
        """Return the places around a project."""
        found = {Path(os.path.realpath(folder)) for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp")}
        return cls(tree=Path(os.path.realpath(tree)), scratch=tuple(sorted(found)))

    def write(self, path: str, cwd: Path | None = None) -> Verdict:
        """Judge writing, replacing or deleting what is at *path*."""
        lexical, real = self._both(path, cwd)
        if str(real) in DEVICES or str(lexical) in DEVICES or str(lexical).startswith("/dev/fd/"):
            return None
        for place in (lexical, real):
            if name := self.protected(place):
                return Deny(reason=f"{name} is not for agents to change")
        if self._inside(real):
            return Ask(reason=f"{path} usually holds secrets") if _is_secret_name(real.name) else None
        if self.is_scratch(real):
            return None
        return Deny(reason=f"{path} lies outside the project")

    def read(self, path: str, cwd: Path | None = None) -> Verdict:
        """Judge reading what is at *path*."""
        lexical, real = self._both(path, cwd)
        if any(self._is_secret(place) for place in (lexical, real)):
            return Deny(reason=f"{path} usually holds secrets")
        if self._inside(real) or self.is_scratch(real) or self._is_library(real):
            return None
        return Ask(reason=f"{path} lies outside the project")

    def protected(self, path: Path) -> str:
        """Return the part of a path that no agent may change, if there is one."""
        parts = path.relative_to(self.tree).parts if path.is_relative_to(self.tree) else path.parts
        return next((part for part in parts if folded(part) in PROTECTED), "")

    def is_scratch(self, path: Path) -> bool:
        """Whether a path lies in a temporary folder, but not in that in which the project lies."""
        for folder in self.scratch:
            if path.is_relative_to(folder) and path != folder:
                top = folder / path.relative_to(folder).parts[0]
                return not self.tree.is_relative_to(top)
        return False

    def holds_tree(self, path: str, cwd: Path | None = None) -> bool:
        """Whether a path is the project itself or a folder around it."""
        return any(self.tree.is_relative_to(place) for place in self._both(path, cwd))

    def resolved(self, path: str, cwd: Path | None = None) -> Path:
        """Return where a path leads."""
        return self._both(path, cwd)[1]

    def _both(self, path: str, cwd: Path | None) -> tuple[Path, Path]:
        whole = os.path.join(cwd or self.tree, path)  # noqa: PTH118 - no normalizing here
        return Path(os.path.normpath(whole)), Path(os.path.realpath(whole))

    def _inside(self, path: Path) -> bool:
        return path.is_relative_to(self.tree)

    def _is_library(self, path: Path) -> bool:
        folders = [Path(sys.prefix), Path(sys.base_prefix), *map(Path, SYSTEM)]
        folders += [self.home / folder for folder in LIBRARIES]
        return "tool-results" in path.parts or any(path.is_relative_to(folder) for folder in folders)

    def _is_secret(self, path: Path) -> bool:
        if _is_secret_name(path.name) or any(fnmatch(str(path), pattern) for pattern in SYSTEM_SECRETS):
            return True
        below = {folded(str(PurePath(*path.parts[i:]))) for i in range(len(path.parts))}
        return not self._inside(path) and any(
            part == folder or part.startswith(f"{folder}/") for part in below for folder in SECRET_FOLDERS
        )


def folded(name: str) -> str:
    """Return a name as a file system sees it that ignores case and what cannot be seen."""
    visible = "".join(
        char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf"
    )
    return visible.casefold().rstrip(" .") or visible


def _is_secret_name(name: str) -> bool:
    plain = folded(name)
    if plain.startswith(".env.") and plain.rsplit(".", 1)[-1] in SHARED_EXAMPLES:
        return False
    return any(fnmatch(plain, pattern) for pattern in SECRET_NAMES)
