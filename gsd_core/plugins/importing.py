"""Which of a project's plugins its user has vouched for, by their content.

The list lies in the repository's git folder, where neither a commit nor an agent reaches, and it
says where it lies: one that came with a copied or unpacked folder vouches for nothing.

Import a plugin: a module by its name, an entry point, or a file whose content is vouched for.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias, cast

import attrs

_SCHEMA = 1


@attrs.frozen
class Trust:
    """The hashes that are remembered at *path*, ``<git common dir>/gsd/trust.json``."""

    path: Path

    def trusted(self) -> frozenset[str]:
        """Return the SHA-256, in hex, of each content that is trusted; none if the list is damaged."""
        return frozenset(self._read())

    def add(self, sha256: str, name: str) -> None:
        """Trust the content with that hash from now on; *name* is for humans who read the file."""
        self._write({**self._read(), sha256: name})

    def _read(self) -> dict[str, str]:
        try:
            data: object = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        plugins = _field(data, "plugins") if _field(data, "path") == str(self.path.resolve()) else None
        if not isinstance(plugins, dict):
            return {}
        known = cast("dict[str, object]", plugins)
        return {sha256: str(name) for sha256, name in known.items()}

    def _write(self, plugins: Mapping[str, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {"schema": _SCHEMA, "path": str(self.path.resolve()), "plugins": dict(plugins)}
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _field(data: object, name: str) -> object:
    return cast("dict[str, object]", data).get(name) if isinstance(data, dict) else None


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
