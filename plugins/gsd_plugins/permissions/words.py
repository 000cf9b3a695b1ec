"""Words as a shell expands them, as far as that can be known without running it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from attrs import frozen

from .lexer import UNKNOWN, Piece, Unreadable

MAX_WORDS = 256

# A character and whether it is quoted; ``None`` parts two words.
Char: TypeAlias = "tuple[str, bool] | None"


@frozen
class Word:
    """A word; *pattern* is its text as a pattern of file names, empty if it is none."""

    text: str
    pattern: str = ""

    @property
    def known(self) -> bool:
        """Whether the whole text is known."""
        return UNKNOWN not in self.text


def followed(words: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """Yield each word with the one that follows it, an empty one at the end."""
    yield from pairwise([*words, Word("")])


def expand(words: Sequence[Sequence[Piece]], variables: Mapping[str, str]) -> list[Word]:
    """Expand variables, braces and ``~``; raise ``Unreadable`` if that makes too many words."""
    found: list[Word] = []
    for pieces in words:
        for word in _expanded(pieces, variables):
            found.append(word)
            if len(found) > MAX_WORDS:
                raise Unreadable("the command has too many words")
    return found


def _expanded(pieces: Sequence[Piece], variables: Mapping[str, str]) -> Iterator[Word]:
    chars = [char for piece in pieces for char in _chars(piece, variables)]
    if not chars and any(piece.quoted for piece in pieces):
        yield Word("")
    for part in _split(chars):
        for one in _braces(part, 0):
            yield _word(one)


def _chars(piece: Piece, variables: Mapping[str, str]) -> Iterator[Char]:
    text = variables.get(piece.variable, UNKNOWN) if piece.variable else piece.text
    for char in text:
        splits = piece.variable and not piece.quoted and char.isspace()
        yield None if splits else (char, piece.quoted)


def _split(chars: Sequence[Char]) -> Iterator[list[tuple[str, bool]]]:
    part: list[tuple[str, bool]] = []
    for char in [*chars, None]:
        if char is not None:
            part.append(char)
        elif part:
            yield part
            part = []


def _braces(chars: list[tuple[str, bool]], depth: int) -> Iterator[list[tuple[str, bool]]]:
    """Expand the first ``{a,b}``, then those in what comes of it."""
    place = _first_braces(chars)
    if place is None:
        yield chars
        return
    if depth > 6:
        raise Unreadable("the command has too many braces")
    start, commas, end = place
    bounds = [start, *commas, end]
    for left, right in pairwise(bounds):
        yield from _braces([*chars[:start], *chars[left + 1 : right], *chars[end + 1 :]], depth + 1)


def _first_braces(chars: Sequence[tuple[str, bool]]) -> tuple[int, list[int], int] | None:
    for start, char in enumerate(chars):
        if char == ("{", False) and (found := _closing(chars, start)):
            return start, found[0], found[1]
    return None


def _closing(chars: Sequence[tuple[str, bool]], start: int) -> tuple[list[int], int] | None:
    depth = 0
    commas: list[int] = []
    for place in range(start, len(chars)):
        char = chars[place]
        depth += (char == ("{", False)) - (char == ("}", False))
        if depth == 1 and char == (",", False):
            commas.append(place)
        if depth == 0:
            return (commas, place) if commas else None
    return None


def _word(chars: Sequence[tuple[str, bool]]) -> Word:
    text = "".join(char for char, _ in chars)
    if chars and chars[0] == ("~", False):
        text = os.path.expanduser(text)  # noqa: PTH111 - text, not a path yet
    if any(char in "*?[" and not quoted for char, quoted in chars):
        return Word(
            text, "".join(f"[{char}]" if quoted and char in "*?[" else char for char, quoted in chars)
        )
    return Word(text)
