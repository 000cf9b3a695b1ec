"""Find TODO comments; knows nothing about GSD, so it can be tested and reused without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

MAX_FILE_BYTES = 1_000_000  # a larger file is not written by hand


@attrs.frozen(kw_only=True)
class Todo:
    """One comment: its *line*, counted from 1, and its *text*."""

    line: int
    text: str


def find_todos(
    root: Path, paths: Iterable[str], *, words: Sequence[str], issue: str
) -> dict[str, list[Todo]]:
    """Return the comments without an issue by path, for those of *paths* that are files in *root*."""
    if not words:
        return {}
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    reference = re.compile(issue)
    found: dict[str, list[Todo]] = {}
    for path in paths:
        for number, line in enumerate(_read(root, path).splitlines(), 1):
            if word.search(line) and not reference.search(line):
                found.setdefault(path, []).append(Todo(line=number, text=line.strip()[:200]))
    return found


def _read(root: Path, path: str) -> str:
    """Return the text of a file; empty if it is missing, too large, or outside *root*."""
    file = (root / path).resolve()
    # Plans are written by a model: a path may leave the project, also through a symbolic link.
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        return ""
    if file.stat().st_size > MAX_FILE_BYTES:
        return ""
    return file.read_text(encoding="utf-8", errors="replace")
