"""Ranges of phases as one types them: ``1-3,5,7.1``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gsd_core.errors import ConfigError
from gsd_core.ids import normal_phase, phase_order

HINT = "phases look like 1-3,5,7.1"
_NUMBER = re.compile(r"\d+[A-Za-z]?(\.\d+[A-Za-z]?)*")


def parse_phases(text: str, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the numbers that *text* means, ``None`` (all) if it is empty.

    A range holds the whole numbers between its ends, and those of the *known* phases that lie
    between them: ``1-3`` includes an inserted 2.1, but not 3.1.
    """
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, dash, high = (end.strip() for end in part.partition("-"))
        found += _between(low, high, known, text) if dash else [_number(low, text)]
    return tuple(dict.fromkeys(found)) or None


def _between(low: str, high: str, known: Sequence[str], text: str) -> list[str]:
    first, last = phase_order(_number(low, text)), phase_order(_number(high, text))
    if first > last:
        raise ConfigError(f"not a range of phases: {text!r}: {low} comes after {high}", hint=HINT)
    whole = [str(n) for n in range(first[0][0], last[0][0] + 1)]
    everything = sorted({normal_phase(low), normal_phase(high), *whole, *known}, key=phase_order)
    return [number for number in everything if first <= phase_order(number) <= last]


def _number(text: str, whole: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ConfigError(f"not a range of phases: {whole!r}", hint=HINT)
    return normal_phase(text)
