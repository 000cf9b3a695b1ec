"""Phase numbers in text: the forms that exist, and the phases that a field names.

The forms are those of ``phase-id`` in gsd-core 1.14: ``3``, ``02.1``, ``12A``, with a letter before
it (``P0.1``), with its milestone (``2-01``), with the project's code (``CK-03``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gsd_core.model.ids import normal_phase

# Every repetition is bounded: roadmaps are untrusted text, and unbounded ones backtrack.
NUMBER = r"\d{1,9}[A-Za-z]?(?:\.\d{1,9}){0,9}(?![A-Za-z\d])"
SERIES = r"\d{1,9}(?:-\d{2}(?!\d)){1,4}[A-Za-z]?(?:\.\d{1,9}){0,9}(?![A-Za-z\d])"
"""A number with its milestone: ``2-01``."""
TOKEN = (
    rf"(?:[A-Z][A-Z0-9_]{{0,19}}-(?=\d))?(?:[A-Z]\d{{1,9}}[A-Za-z]?(?:\.\d{{1,9}}){{0,9}}|{SERIES}|{NUMBER})"
)
"""A number in any form."""
CODE = r"[A-Z][A-Z0-9_]{0,19}\.\d{2,3}"
"""A project and its milestone, as in the heading ``[GSD.02] 05: Name``."""

MAX_TEXT = 2_000

_JOIN = r"\s*(?:,\s*(?:and\b|or\b|&)?|;|&|\+|/|\band\b|\bor\b|\bplus\b)\s*"
_TO = r"\s*(?:-{1,2}|[–—]|\.\.|to|through|thru)\s*"
_PHASE_WORD = re.compile(r"\bPhases?\s+(?:#\s*)?(?=[A-Z]{0,20}-?[A-Z]?\d)", re.IGNORECASE)
_NOTHING = re.compile(r"nothing|none|n/a|[-—–]?$", re.IGNORECASE)
_JOINED = re.compile(rf"{_JOIN}(?:Phases?\s+)?", re.IGNORECASE)
RANGE = re.compile(rf"(?P<low>{NUMBER}){_TO}(?:Phase\s+)?(?P<high>{NUMBER})", re.IGNORECASE)
_TOKEN = re.compile(TOKEN)
_NUMBER = re.compile(NUMBER)


def phase_numbers(text: str, *, series: bool = False) -> tuple[str, ...]:
    """Return the phases that a ``Depends on`` names: ``Phases 1-2, 2.1 (auth)`` → 1, 2, 2.1.

    *series*: phases are numbered with their milestone, so ``1-02`` is one phase and not a range.
    """
    text = re.sub(r"\([^()]*\)", " ", text[:MAX_TEXT]).strip()
    if _NOTHING.match(text):
        return ()
    starts = [match.end() for match in _PHASE_WORD.finditer(text)]
    if not starts and text[:1].isdecimal():
        # Without the word "Phase" only a number at the beginning is one: "v2.0 complete" is not.
        starts = [0]
    found: dict[str, None] = {}
    for at in starts:
        found.update(dict.fromkeys(_read_list(text, at, series=series)))
    return tuple(found)


def last_number(numbers: Iterable[str]) -> int:
    """Return the highest integer that a phase has as its number or before its decimals, 0 if none has one."""
    return max((int(match[0]) for one in numbers if (match := re.match(r"\d{1,9}(?!-)", one))), default=0)


def is_backlog(number: str) -> bool:
    """Return whether a number is outside of the sequence: GSD keeps its backlog in phases 0 and 999."""
    match = re.match(r"\d+", number)
    return match is not None and match[0] in ("0", "999")


def _read_list(text: str, at: int, *, series: bool) -> list[str]:
    """Return the numbers of the list that begins at position *at*: ``1, 2 and 4-6``."""
    found: list[str] = []
    while True:
        several = None if series else RANGE.match(text, at)
        one = several or _TOKEN.match(text, at) or _NUMBER.match(text, at)
        if one is None:
            return found
        found += _expand(several["low"], several["high"]) if several else [normal_phase(one[0])]
        joined = _JOINED.match(text, one.end())
        if joined is None:
            return found
        at = joined.end()


def _expand(low: str, high: str) -> list[str]:
    if low.isdecimal() and high.isdecimal() and 0 <= int(high) - int(low) < 100:
        return [str(n) for n in range(int(low), int(high) + 1)]
    return [normal_phase(low), normal_phase(high)]
