"""Import a plugin: a module by its name, an entry point, or a file whose content is vouched for."""

from __future__ import annotations

import hashlib
import importlib
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

import attrs

Source: TypeAlias = Literal["default", "entry point", "directory", "file", "module"]


@attrs.frozen(kw_only=True)
class Candidate:
    """A plugin that is known and not imported yet; *trusted*: the user named it, or it is installed."""

    name: str
    source: Source
    target: str | EntryPoint | Path
    trusted: bool = True

    @property
    def asked_for(self) -> bool:
        """It is ours, or the user named it or its folder."""
        return self.source != "entry point" and self.trusted

    @property
    def distribution(self) -> tuple[str, str]:
        """The distribution it came with, and its version; empty for a file."""
        dist = self.target.dist if isinstance(self.target, EntryPoint) else None
        return (dist.name, dist.version) if dist else ("", "")


class Untrusted(Exception):
    """Nobody vouched for a file with this hash."""


def import_candidate(candidate: Candidate, content: bytes) -> object:
    """Return the plugin; *content* is what :func:`read` read. Raises whatever the plugin raises."""
    match candidate.target:
        case EntryPoint():
            return candidate.target.load()
        case Path():
            return _run(candidate.target, content)
        case module:
            return importlib.import_module(module)


def read(candidate: Candidate) -> tuple[bytes, str]:
    """Return a file's content and its SHA-256 in hex; empty for what the import system finds."""
    if not isinstance(candidate.target, Path):
        return b"", ""
    content = candidate.target.read_bytes()
    return content, hashlib.sha256(content).hexdigest()


def _run(path: Path, content: bytes) -> ModuleType:
    """Run the very bytes that were hashed; the import system might run a cached file instead."""
    digest = hashlib.sha256(content).hexdigest()[:12]
    module = ModuleType(f"gsd_local_{path.stem}_{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module
