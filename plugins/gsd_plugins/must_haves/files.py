"""Files of the project, never outside of it, and read only up to a limit."""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path

import attrs

from gsd_core import read_start

MAX_BYTES = 2_000_000
MAX_MATCHES = 200


@attrs.frozen(kw_only=True)
class FileContent:
    """The beginning of a file: its text, empty if *binary*; *complete* if that is the whole file."""

    text: str = ""
    size: int = 0
    complete: bool = True
    binary: bool = False

    @property
    def lines(self) -> int:
        """The number of lines that were read."""
        return len(self.text.splitlines())


@attrs.frozen(kw_only=True)
class Tree:
    """The project's folder, resolved: no symbolic link in its own path."""

    root: Path

    @classmethod
    def of(cls, project: Path) -> Tree:
        """Return the tree of a project."""
        return cls(root=Path(os.path.realpath(project)))

    def find(self, path: str) -> Path | str:
        """Return the resolved path of a file of the project, or the reason why there is none.

        A path with ``*`` is a pattern that at least one file has to match; a path that ends in
        ``/`` is a folder that has to contain files.
        """
        if "\0" in path:
            return "its path is invalid"
        if "*" in path and not (self.root / path).exists():
            return self._find_match(path)
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            return "it is outside the project"
        try:
            mode = real.stat().st_mode
        except OSError:
            return "it does not exist"
        if stat.S_ISDIR(mode):
            files = (file for file in islice(real.rglob("*"), MAX_MATCHES) if file.is_file())
            return real if path.endswith("/") and any(files) else "it is a folder, not a file"
        return real if stat.S_ISREG(mode) else "it is not a regular file"

    def _find_match(self, pattern: str) -> Path | str:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            return "it is outside the project"
        for path in islice(self.root.glob(pattern), MAX_MATCHES):
            if path.is_file() and Path(os.path.realpath(path)).is_relative_to(self.root):
                return path
        return "no file matches it"


def read(tree: Tree, path: Path) -> FileContent:
    """Read a file of the *tree*, at most its first two megabytes."""
    data = read_start(tree.root, path.relative_to(tree.root), MAX_BYTES + 1)
    size, complete = path.stat().st_size, len(data) <= MAX_BYTES
    if b"\0" in data[:8192]:  # how git recognizes a binary file
        return FileContent(size=size, complete=complete, binary=True)
    text = data[:MAX_BYTES].decode("utf-8", "replace")
    return FileContent(text=text, size=size, complete=complete)
