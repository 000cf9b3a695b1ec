"""Plugins before they are loaded: how to read and to import them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

import attrs

DECIDING_HOOKS = (b"gsd_find_gaps", b"gsd_permit_tool", b"gsd_check_budget")
"""The hooks of detectors and policies, as they appear in a plugin's source."""

MAX_PLUGIN_BYTES = 5_000_000

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
    """Return a file's content and its SHA-256 in hex; both empty if the plugin is not a file.

    Raises ``ValueError`` for a file of the project that is a link, reached through one, or no regular file.
    """
    if not isinstance(candidate.target, Path):
        return b"", ""
    content = candidate.target.read_bytes() if candidate.trusted else _read_own(candidate.target)
    return content, hashlib.sha256(content).hexdigest()


def _read_own(path: Path) -> bytes:
    """Return a file of the project, which a stranger may have made: a link, a pipe, or very large."""
    # What a link leads to is not part of the repository, and can be exchanged without a trace in it.
    if path.is_symlink() or path.parent.resolve() != path.parent:
        raise ValueError("a plugin of the project may not be a symbolic link or be reached through one")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("a plugin of the project has to be a regular file")
        content = file.read(MAX_PLUGIN_BYTES + 1)
    if len(content) > MAX_PLUGIN_BYTES:
        raise ValueError(f"a plugin of the project may have at most {MAX_PLUGIN_BYTES} bytes")
    return content


def import_candidate(candidate: Candidate, content: bytes) -> object:
    """Return the plugin; *content* is from :func:`read_candidate`. Raises what the plugin's code raises."""
    match candidate.target:
        case EntryPoint():
            return candidate.target.load()
        case Path():
            return _run_file(candidate.target, content)
        case module:
            return importlib.import_module(module)


def source_names(candidate: Candidate, *names: bytes) -> bool:
    """Whether a plugin's source contains one of these *names*; if there is no source, it may."""
    try:
        files = list(_source_files(candidate))
        return not files or any(name in file.read_bytes() for file in files for name in names)
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
