"""Texts for the page: without escape sequences, control characters and invisible characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from gsd_core import safe_text
from gsd_plugins.sessions import whole

STYLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def clean(data: Any, safe: Callable[[str], str] = safe_text) -> Any:
    """Return JSON data with all its texts and names made *safe*: sanitized and redacted, or sanitized only.

    Plain ASCII is left as it is: it has passed the redaction where it was read.
    """
    if isinstance(data, str):
        return data if data.isascii() and data.isprintable() else safe(data)
    if isinstance(data, Mapping):
        items = cast("Mapping[str, Any]", data).items()
        return {clean(key, safe): clean(value, safe) for key, value in items}
    if isinstance(data, list | tuple):
        return [clean(value, safe) for value in cast("list[Any]", data)]
    return data


def visible(text: str) -> str:
    """Return *text*, which is redacted already, without control characters and invisible characters."""
    return text if text.replace("\n", "").replace("\t", "").isprintable() else safe_text(text)


def printed_text(data: bytes, *, is_last: bool) -> tuple[str, int]:
    """Return what was printed as text, and how many of the bytes it stands for.

    A character or an escape sequence that is cut at the end is left for the next piece: its rest alone would
    be shown as text. If *is_last*, there is none.
    """
    kept = data if is_last else whole(data)
    return safe_text(kept.decode("utf-8", "replace")), len(kept)


def lines_with(data: bytes, wanted: str) -> list[str]:
    """Return the lines of what was printed that contain *wanted*, which is case-folded, without secrets."""
    # Making a text safe takes 20 times as long, and most texts contain few lines that are searched for.
    if wanted not in STYLE.sub("", data.decode("utf-8", "replace")).casefold():
        return []
    # Whoever may only see what is redacted must not find out the rest by searching.
    return [line for line in printed_text(data, is_last=True)[0].split("\n") if wanted in line.casefold()]
