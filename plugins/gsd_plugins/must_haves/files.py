"""Files of the project, read within bounds and never outside of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from attrs import frozen

MAX_BYTES = 2_000_000
MAX_MATCHES = 200


@frozen(kw_only=True)
class Content:
    """A file's text, as much as was read of it; *whole*: that is all; *binary*: it is no text."""

    text: str = ""
    size: int = 0
    whole: bool = True
    binary: bool = False

    @property
    def lines(self) -> int:
        """The number of lines that were read."""
        return len(self.text.splitlines())


@frozen(kw_only=True)
class Tree:
    """The project's folder, without symbolic links in its own path."""

    root: Path

    @classmethod
    def of(cls, project: Path) -> Tree:
        """Return the tree of a project."""
        return cls(root=Path(os.path.realpath(project)))

    def find(self, path: str) -> Path | str:
        """Return where *path* lies, or say why it is no file of the project."""
        if "\0" in path:
            return "its name is not valid"
        if not (self.root / path).exists() and "*" in path:
            return self._matching(path)
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            return "it lies outside the project"
        try:
            mode = real.stat().st_mode
        except OSError:
            return "it does not exist"
        if stat.S_ISDIR(mode):
            return real if path.endswith("/") and any(_files(real)) else "it is a folder, not a file"
        return real if stat.S_ISREG(mode) else "it is no regular file"

    def _matching(self, pattern: str) -> Path | str:
        """A promise like ``migrations/*.sql`` holds if some file of the project is like that."""
        if pattern.startswith("/") or ".." in pattern.split("/"):
            return "it lies outside the project"
        found = (path for path in islice(self.root.glob(pattern), MAX_MATCHES) if path.is_file())
        inside = (path for path in found if Path(os.path.realpath(path)).is_relative_to(self.root))
        return next(inside, "no file has such a name")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in islice(folder.rglob("*"), MAX_MATCHES) if path.is_file())


def read(path: Path) -> Content:
    """Read a file, its first two megabytes at most."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    size = path.stat().st_size
    if b"\0" in data[:8192]:
        return Content(size=size, whole=len(data) <= MAX_BYTES, binary=True)
    text = data[:MAX_BYTES].decode("utf-8", "replace")
    return Content(text=text, size=size, whole=len(data) <= MAX_BYTES)
