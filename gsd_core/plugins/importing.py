"""Plugins before they are loaded: how to import them, and which of a project's files are trusted."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias, cast

import attrs

DECIDING_HOOKS = (b"gsd_find_gaps", b"gsd_permit_tool", b"gsd_check_budget")
"""The hooks of detectors and policies, as they appear in a plugin's source."""

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


def may_decide(candidate: Candidate) -> bool:
    """Whether a plugin that cannot be imported may be a detector or a policy: without one, a run is not safe.

    Its source decides: it implements such a hook only if it names it. If the source is not found, it may.
    """
    try:
        files = list(_source_files(candidate))
        return not files or any(name in file.read_bytes() for file in files for name in DECIDING_HOOKS)
    except (OSError, ImportError, ValueError):
        return True


def _source_files(candidate: Candidate) -> Iterator[Path]:
    """Yield the files with a plugin's source, without importing anything."""
    if isinstance(candidate.target, Path):
        yield candidate.target
        return
    is_entry_point = isinstance(candidate.target, EntryPoint)
    module = candidate.target.module if isinstance(candidate.target, EntryPoint) else candidate.target
    # Only for a name with dots would the packages above it be imported.
    package, *below = module.split(".")
    spec = importlib.util.find_spec(package)
    if spec is None:
        return
    for folder in map(Path, spec.submodule_search_locations or ()):
        # A built-in plugin is one module of many; a separate package may have its hooks anywhere.
        start = folder if is_entry_point else folder.joinpath(*below)
        yield from start.rglob("*.py") if start.is_dir() else [start.with_suffix(".py")]
    if not spec.submodule_search_locations and spec.origin:
        yield Path(spec.origin)


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
