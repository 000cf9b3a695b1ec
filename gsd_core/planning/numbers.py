"""The forms in which phases are numbered, and the phases that a text names.

``3``, ``02.1``, ``12A``, with a letter before it (``P0.1``), with its milestone (``2-01``), with
the project's code (``CK-03``). Source: ``phase-id`` of gsd-core 1.14.
"""

from __future__ import annotations

import re

from gsd_core.model.ids import normal_phase

NUMBER = r"\d{1,9}[A-Za-z]?(?:\.\d{1,9}){0,9}(?![A-Za-z\d])"
SERIES = r"\d{1,9}(?:-\d{2}(?!\d)){1,4}[A-Za-z]?(?:\.\d{1,9}){0,9}(?![A-Za-z\d])"
TOKEN = (
    rf"(?:[A-Z][A-Z0-9_]{{0,19}}-(?=\d))?(?:[A-Z]\d{{1,9}}[A-Za-z]?(?:\.\d{{1,9}}){{0,9}}|{SERIES}|{NUMBER})"
)
CODE = r"[A-Z][A-Z0-9_]{0,19}\.\d{2,3}"

MAX_TEXT = 2_000

_JOIN = r"\s*(?:,\s*(?:and\b|or\b|&)?|;|&|\+|/|\band\b|\bor\b|\bplus\b)\s*"
_TO = r"\s*(?:[-–—]|\.\.|to|through|thru)\s*"
_NAMED = re.compile(r"\bPhases?\s+(?:#\s*)?(?=[A-Z]{0,20}-?[A-Z]?\d)", re.IGNORECASE)
_NOTHING = re.compile(r"nothing|none|n/a|[-—–]?$", re.IGNORECASE)
_JOINED = re.compile(rf"{_JOIN}(?:Phases?\s+)?", re.IGNORECASE)
_RANGE = re.compile(rf"(?P<low>{NUMBER}){_TO}(?:Phase\s+)?(?P<high>{NUMBER})", re.IGNORECASE)
_ONE = re.compile(TOKEN)
_PLAIN = re.compile(NUMBER)


def phase_numbers(text: str, *, series: bool = False) -> tuple[str, ...]:
    """Return the phases that a ``Depends on`` names: ``Phases 1-2, 2.1 (auth)`` → 1, 2, 2.1.

    *series*: phases are numbered with their milestone, so that ``1-02`` is one phase and no range.
    """
    text = re.sub(r"\([^()]*\)", " ", text[:MAX_TEXT]).strip()
    if _NOTHING.match(text):
        return ()
    found: dict[str, None] = {}
    starts = [match.end() for match in _NAMED.finditer(text)]
    for at in starts or _bare(text):
        found.update(dict.fromkeys(_listed(text, at, series=series)))
    return tuple(found)


def is_backlog(number: str) -> bool:
    """Say whether a number stands for no phase in the sequence: 0 and 999 are the backlog's."""
    match = re.match(r"\d+", number)
    return match is not None and match[0] in ("0", "999")


def _bare(text: str) -> list[int]:
    """Where numbers stand that no word ``Phase`` introduces: at the beginning only."""
    match = re.match(r"\s*(?=\d)", text)
    return [match.end()] if match else []


def _listed(text: str, at: int, *, series: bool) -> list[str]:
    """Return the numbers of the list that begins at a place: ``1, 2 and 4-6``."""
    found: list[str] = []
    while True:
        several = None if series else _RANGE.match(text, at)
        one = several or _ONE.match(text, at) or _PLAIN.match(text, at)
        if one is None:
            return found
        found += _spread(several["low"], several["high"]) if several else [normal_phase(one[0])]
        joined = _JOINED.match(text, one.end())
        if joined is None:
            return found
        at = joined.end()


def _spread(low: str, high: str) -> list[str]:
    if low.isdecimal() and high.isdecimal() and 0 <= int(high) - int(low) < 100:
        return [str(n) for n in range(int(low), int(high) + 1)]
    return [normal_phase(low), normal_phase(high)]
