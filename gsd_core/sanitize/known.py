"""The values of this process's own secrets: those of its environment, and those of its settings."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

MIN_LENGTH = 8
"""Shorter values are not redacted: too much ordinary text contains them."""

_NAME = re.compile(
    r"token|secret|passw|passphrase|(?:^|_)pass$|pwd$|credential|api_?key|(?:^|_)key$|private|(?:^|_)auth$|"
    r"dsn$|cookie|webhook|connection_?string|access_?key",
    re.IGNORECASE,
)
_ORDINARY = re.compile(r"[a-zA-Z]{1,15}|[0-9.,:]{1,11}|[/~.].*|[a-z]+(?:[-_ ][a-z]+){0,3}|https?://[^@?]*")
"""Words, numbers, paths and addresses, which may be the value of `TOKEN` too: `true`, `development`."""
_LOGIN = re.compile(r"://[^\s/:@]*:([^\s/]+)@")

_registered: set[str] = set()
_pattern: re.Pattern[str] | None = None


def register_secrets(values: Iterable[str]) -> None:
    """Redact *values* from now on, such as the URLs of notifications, and the parts that are secret."""
    global _pattern
    for value in values:
        _registered.update(_parts(value) if "://" in value else (value,))
    _pattern = None


def known_values() -> re.Pattern[str]:
    """Return a pattern for the known values in all the forms in which they may appear in text."""
    global _pattern
    if _pattern is None:
        values = {*secret_values(os.environ), *(value for value in _registered if not is_ordinary(value))}
        forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        _pattern = re.compile("|".join(map(re.escape, forms)) or r"(?!)")
    return _pattern


def secret_values(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of *environment* that are secrets: by their name, or as a password in a URL."""
    ordinary = {value for name, value in environment.items() if not _NAME.search(name)}
    for name, value in environment.items():
        if _NAME.search(name) and value not in ordinary and not is_ordinary(value):
            yield value
        yield from (p for p in _LOGIN.findall(value) if not is_ordinary(p))


def is_ordinary(value: str) -> bool:
    """Whether *value* is too short or too common to be redacted wherever it occurs."""
    return len(value) < MIN_LENGTH or len(set(value)) < 4 or _ORDINARY.fullmatch(value) is not None


def _parts(url: str) -> Iterator[str]:
    yield url
    scheme, _, rest = url.partition("://")
    yield rest
    # Services put tokens into any part of the address: user, password, host or path.
    for part in re.split(r"[/:@?&=]", rest):
        if scheme not in ("http", "https", "mailto", "mailtos") or "." not in part:
            yield from {part, unquote(part)}


def _forms(value: str) -> Iterator[str]:
    yield from (value, quote(value, safe=""), quote(value), quote_plus(value))
    for escaped in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield from (escaped, json.dumps(escaped)[1:-1])
    data = value.encode("utf-8", "surrogateescape")
    yield from (data.hex(), data.hex().upper())
    # Of a short value, only the form that begins with it: other parts that do not depend on the text around
    # it would be too short.
    for shift in range(3 if len(data) >= 12 else 1):
        # Base64 of text that contains the value, which may begin at any of three positions.
        encoded = base64.b64encode(b"\0" * shift + data).decode("ascii")
        core = encoded[(0, 2, 3)[shift] : len(encoded) - (0, 3, 2)[(len(data) + shift) % 3] - 1]
        yield from {core, core.replace("+", "-").replace("/", "_")}
