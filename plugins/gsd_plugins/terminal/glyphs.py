"""The few signs in front of lines, for terminals that know Unicode and those that do not."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TextIO

UNICODE: Mapping[str, str] = {
    "done": "✓", "bad": "✗", "begin": "▸", "asks": "?", "answer": "→", "phase": "●", "run": "•",
    "skipped": "-", "completed": "✓", "in_progress": "▸", "pending": "·", "": " ",
}  # fmt: skip
ASCII: Mapping[str, str] = {
    "done": "+", "bad": "x", "begin": ">", "asks": "?", "answer": "=", "phase": "#", "run": "*",
    "skipped": "-", "completed": "+", "in_progress": ">", "pending": ".", "": " ",
}  # fmt: skip


def glyphs_for(stream: TextIO) -> Mapping[str, str]:
    """Return the signs that *stream* can show."""
    try:
        "".join(UNICODE.values()).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def visible(text: str) -> str:
    """Return *text* with what a terminal obeys or hides written out (``\\x1b``).

    The core has cleaned what it tells us; this is for whoever calls us besides.
    """
    return "".join(_written(sign) if _acts(sign) else sign for sign in text)


def _acts(sign: str) -> bool:
    return sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cf", "Cs")


def _written(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
