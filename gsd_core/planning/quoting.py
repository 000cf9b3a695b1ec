"""Writes YAML for a frontmatter, one line for each scalar, so that no text can end it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Node: TypeAlias = "str | int | bool | Sequence[Node] | Mapping[str, Node]"

_PLAIN = re.compile(r"(?:[A-Za-z_/]|\d[\d.]*-[A-Za-z])[A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_UNPRINTABLE = re.compile("[\x7f-\x9f\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def scalar(value: str | int | bool) -> str:
    """Return a scalar on one line, quoted wherever a reader might take it for something else.

    Backslashes stand in single quotes where they can: early readers do not undo escapes.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def flow(values: Sequence[str]) -> str:
    """Return a list of scalars on one line."""
    return f"[{', '.join(scalar(value) for value in values)}]"


def block(key: str, value: Node, indent: int = 0) -> list[str]:
    """Return the lines of ``key: value``; lists hang under their key, two spaces deeper."""
    head = f"{' ' * indent}{key}:"
    if isinstance(value, (str, int)):
        return [f"{head} {scalar(value)}"]
    if not value:
        return [f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"]
    if isinstance(value, Mapping):
        return [head, *(line for k, v in value.items() for line in block(k, v, indent + 2))]
    return [head, *(line for item in value for line in _item(item, indent + 2))]


def frontmatter(values: Mapping[str, Node]) -> str:
    """Return a whole frontmatter, with both of its lines."""
    lines = [line for key, value in values.items() for line in block(key, value)]
    return "\n".join(["---", *lines, "---", ""])


def _item(value: Node, indent: int) -> list[str]:
    if isinstance(value, (str, int)):
        return [f"{' ' * indent}- {scalar(value)}"]
    if not isinstance(value, Mapping):
        raise TypeError("a list inside of a list")
    lines = [line for key, inner in value.items() for line in block(key, inner, indent + 2)]
    return [f"{' ' * indent}- {lines[0].lstrip()}", *lines[1:]] if lines else []
