"""Comments that say what is left to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

_LONGEST = 1_000_000  # bytes; a larger file is not written by hand


@frozen(kw_only=True)
class Leftover:
    """One comment: its *line*, counted from 1, and its *text*."""

    line: int
    text: str


def find_leftovers(
    root: Path, paths: Sequence[str], words: Sequence[str], issue: str
) -> dict[str, tuple[Leftover, ...]]:
    """Return the leftovers without an issue in those of *paths* that are text files in *root*."""
    found = {path: tuple(_in(_text(root, path), words, issue)) for path in paths}
    return {path: leftovers for path, leftovers in found.items() if leftovers}


def _in(text: str, words: Sequence[str], issue: str) -> Iterator[Leftover]:
    if not words:
        return
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    kept = re.compile(issue)
    for number, line in enumerate(text.splitlines(), 1):
        if word.search(line) and not kept.search(line):
            yield Leftover(line=number, text=line.strip()[:200])


def _text(root: Path, path: str) -> str:
    file = root / path
    if not file.resolve().is_relative_to(root.resolve()) or not file.is_file():
        return ""
    if file.stat().st_size > _LONGEST:
        return ""
    return file.read_text(encoding="utf-8", errors="replace")
