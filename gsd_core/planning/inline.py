"""Foreign text in one line of markdown: written so that it stays there, and read back."""

from __future__ import annotations

import re

_TAG = r"(?=[!/?A-Za-z])"
_MARKER = re.compile(
    r"^(\s*)(#|>|[-*+](?=\s|[-*]|$)|\d+[.)](?=\s)|\||~~~|```|===|---|Phase:|Plan:|Status:|@)"
)


def inline(text: str) -> str:
    """Return *text* as one line in which no tag, comment or line break is left."""
    text = re.sub(rf"&((?:amp;)*lt;){_TAG}", r"&amp;\1", " ".join(clean(text).split()))
    return re.sub(rf"<{_TAG}", "&lt;", text)


def prose(text: str) -> str:
    """Return the text that :func:`inline` was given, but for its white space."""
    text = re.sub(rf"&lt;{_TAG}", "<", text.strip())
    return re.sub(rf"&amp;((?:amp;)*lt;){_TAG}", r"&\1", text)


def title(text: str) -> str:
    """Return *text* as a name in a heading or between asterisks."""
    return inline(text.replace("*", "").replace("`", "'")) or "Untitled"


def cell(text: str) -> str:
    """Return *text* as a cell of a table."""
    return inline(text).replace("|", r"\|") or "-"


def paragraphs(text: str) -> str:
    """Return *text* as paragraphs of one line each, none of which is a heading, list or table."""
    parts = (inline(part) for part in re.split(r"\n\s*\n", clean(text)))
    return "\n\n".join(_MARKER.sub(r"\1\\\2", _plain(part)) for part in parts if part)


def clean(text: str) -> str:
    """Return *text* with simple line ends, without control characters and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


def cells(line: str) -> list[str]:
    """Return the cells of a table's row as they stand, empty if the line is none."""
    stripped = line.strip()
    if not stripped.startswith("|"):
        return []
    parts = re.split(r"(?<!\\)\|", stripped[1:])
    return parts[:-1] if parts and not parts[-1].strip() else parts


def clipped(text: str, characters: int) -> str:
    """Return *text*, or its beginning with a mark if it is longer."""
    return text if len(text) <= characters else f"{text[:characters].rstrip()}…"


def _plain(text: str) -> str:
    """Take the marks off a paragraph that begins like one of GSD's fields."""
    return re.sub(r"^\*\*", r"\\*\\*", text)
