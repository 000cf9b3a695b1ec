"""Functions that other files implement: in Go for other platforms or builds, elsewhere in subclasses.

``lock_other.go`` does nothing on purpose if ``lock_unix.go`` does the work.
What makes a function a variant is a twin with real code, and a condition that chooses.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

import attrs

from .modules import Sources, project_files
from .source import Source

MAX_FILES = 1000
"""How many files are searched for a variant."""

_GO_CONDITION = re.compile(r"^//(?:go:build|\s*\+build)\s+(?!ignore\b)", re.MULTILINE)
_GO_SUFFIX = re.compile(
    r"_(?:aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|wasip1|windows"
    r"|386|amd64|arm|arm64|loong64|mips\w*|ppc64\w*|riscv64|s390x|wasm)(?:_test)?\.go$"
)


def without_variants(sources: Sources, path: str, source: Source) -> Source:
    """Return *source* without the functions that do nothing here because a variant does it elsewhere."""
    source = _without_overridden(sources, path, source)
    suspects = {f.name for f in source.functions if f.body != "code"}
    if not suspects:
        return source
    real = {
        function.name
        for file in _variant_files(sources, path)
        if (other := sources.source(file))
        for function in other.functions
        if function.body in ("code", "print", "empty")
    }
    # A variant that fails is not complete, whatever the others do.
    kept = [f for f in source.functions if f.body in ("code", "unfinished") or f.name not in real]
    return attrs.evolve(source, functions=tuple(kept))


def _without_overridden(sources: Sources, path: str, source: Source) -> Source:
    """Return *source* without the methods that a subclass in another file of the folder implements."""
    kinds = ("unfinished", "empty", "constant")
    suspects = {f.name for f in source.functions if f.method and f.body in kinds}
    if not suspects or source.language not in ("python", "javascript"):
        return source
    classes = {name.rpartition(".")[0] for name in suspects}
    derived = re.compile(rf"(?:\(|extends\s+|,\s*)(?:\w+\.)?(?:{'|'.join(map(re.escape, classes))})\b")
    # The other files of the package that contains the file's folder.
    package, suffix = posixpath.dirname(posixpath.dirname(path)), PurePosixPath(path).suffix
    overridden = {
        name
        for file in islice(project_files(sources.tree, suffix, package), MAX_FILES)
        if file != path and derived.search(sources.text(file) or "") and (other := sources.source(file))
        for name in other.overrides
    }
    kept = [f for f in source.functions if not (f.name in suspects and f.name in overridden)]
    return attrs.evolve(source, functions=tuple(kept))


def _variant_files(sources: Sources, path: str) -> Iterator[str]:
    """Yield the other files of a Go package that are built under a condition, if this one is."""

    def is_conditional(file: str) -> bool:
        text = sources.text(file) or ""
        return file.endswith(".go") and bool(_GO_CONDITION.search(text) or _GO_SUFFIX.search(file))

    if is_conditional(path):
        folder = posixpath.dirname(path)
        for file in islice(project_files(sources.tree, ".go", folder), MAX_FILES):
            if file != path and posixpath.dirname(file) == folder and is_conditional(file):
                yield file
