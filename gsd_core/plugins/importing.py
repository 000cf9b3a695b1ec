"""Plugins before they are loaded: how to import them, and which of a project's files are trusted."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias, cast

import attrs

Source: TypeAlias = Literal["default", "entry point", "directory", "file", "module"]


@attrs.frozen(kw_only=True)
class Candidate:
    """A plugin that was found and is not imported yet.

    *target* is a module's name, an entry point, or a file. *trusted*: it is installed, or the user named
    it or its folder; the files of a project's ``.gsd/plugins`` are not.
    """

    name: str
    source: Source
    target: str | EntryPoint | Path
    trusted: bool = True

    @property
    def asked_for(self) -> bool:
        """Whether it is built in, or the user named it or its folder."""
        return self.source != "entry point" and self.trusted

    @property
    def distribution(self) -> tuple[str, str]:
        """The name and version of the distribution that an entry point belongs to; empty for others."""
        dist = self.target.dist if isinstance(self.target, EntryPoint) else None
        return (dist.name, dist.version) if dist else ("", "")


def read_candidate(candidate: Candidate) -> tuple[bytes, str]:
    """Return a file's content and its SHA-256 in hex; both empty if the plugin is not a file."""
    if not isinstance(candidate.target, Path):
        return b"", ""
    content = candidate.target.read_bytes()
    return content, hashlib.sha256(content).hexdigest()


def import_candidate(candidate: Candidate, content: bytes) -> object:
    """Return the plugin; *content* is from :func:`read_candidate`. Raises what the plugin's code raises."""
    match candidate.target:
        case EntryPoint():
            return candidate.target.load()
        case Path():
            return _run_file(candidate.target, content)
        case module:
            return importlib.import_module(module)


def _run_file(path: Path, content: bytes) -> ModuleType:
    """Run exactly the bytes that were hashed; the import system might run a cached file instead."""
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


@attrs.frozen
class Trust:
    """Which of a project's plugin files its user trusts, by their content.

    The list is stored at *path*, ``<git common dir>/gsd/trust.json``, where neither a commit nor an agent
    can change it. It contains its own path: a list that came with a copied or unpacked folder trusts
    nothing.
    """

    path: Path

    def trusted(self) -> frozenset[str]:
        """Return the SHA-256, in hex, of each trusted content; none if the list is damaged."""
        return frozenset(self._read())

    def add(self, sha256: str, name: str) -> None:
        """Trust the content with that hash from now on; *name* is a hint for people who read the file."""
        data = {"schema": 1, "path": str(self.path.resolve()), "plugins": {**self._read(), sha256: name}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _read(self) -> dict[str, str]:
        """Return the names of the trusted plugins by hash."""
        try:
            data: object = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(data, dict):
            return {}
        table = cast("dict[str, object]", data)
        plugins = table.get("plugins")
        if table.get("path") != str(self.path.resolve()) or not isinstance(plugins, dict):
            return {}
        return {sha256: str(name) for sha256, name in cast("dict[str, object]", plugins).items()}
