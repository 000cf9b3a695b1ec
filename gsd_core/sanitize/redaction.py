"""Replace secrets in text: known values, the formats of services, and passwords in their usual places."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, cast

from .known import known_values
from .text import sanitize

if TYPE_CHECKING:
    from .shapes import Shape

REDACTED = "[redacted]"

_ASSIGNED = ("token", "secret", "passw", "passphrase", "pwd", "credential", "key", "auth")


_WRITTEN = re.compile(
    r"(?<!\\)\\++(?:(?:x1b|u001b|033|e(?=\[)|x9b|u009b)(?:\[[0-?]{0,20}[ -/]{0,5}[@-~])?"
    r"|u200[b-f]|u202[a-e]|u20[67][0-9a-f]|ufeff)",
    re.IGNORECASE,
)
"""Escape sequences and invisible characters as literals of source code, JSON or a shell."""


@cache
def _shapes() -> tuple[Shape, ...]:
    # Imported late: to compile its patterns takes longer than all the rest of a short command.
    from .shapes import shapes

    return tuple(shapes())


@cache
def _hints() -> tuple[str, ...]:
    return tuple({hint: None for shape in _shapes() for hint in shape.hints})


def redact(text: str, *, strict: bool = False) -> str:
    """Return *text* with everything that looks like a secret replaced by ``[redacted]``.

    That is: values of this process's secrets, tokens of common services, private keys, passwords in URLs,
    headers and commands, and the values of names such as ``*_TOKEN`` and ``PASSWORD``. With *strict*, a
    value that only its name makes suspicious has to look like a real secret: for text that is read back, such
    as a plan with the check ``API_TOKEN=test pytest``. Takes linear time. Sanitize the text first: an
    invisible character inside a secret would hide it.
    """
    if len(text) < 4:
        return text
    if len(text) > MAX_REMEMBERED:
        return _redact_all(text, strict)
    return _redact_short(text, strict, known_values())


MAX_REMEMBERED = 120
"""How long a text is at most whose result is kept: names of tools, states and steps come again and again."""


@lru_cache(maxsize=4096)
def _redact_short(text: str, strict: bool, known: re.Pattern[str]) -> str:
    """Return *text* redacted; *known*, the known values, is there so that new ones make a new result."""
    return _redact_all(text, strict)


def _redact_all(text: str, strict: bool) -> str:
    found = _redact(text, strict)
    # The repr of an error or JSON has a sequence in writing (`\\x1b[0m`), which hides a secret around it too.
    if "\\" in text and (plain := _WRITTEN.sub("", text)) != text:
        other = _redact(plain, strict)
        if other != _WRITTEN.sub("", found):
            return other
    return found


# Base64, base32 and hex of at least 16 bytes, on one line or several, also with line ends as literals.
_ENCODED = re.compile(
    r"[A-Za-z0-9+/_-]{22,}(?:(?:\\{1,4}[nr]|[\r\n]){1,4}[ \t>|+]{0,8}[A-Za-z0-9+/_-]{4,})*={0,2}"
    r"|(?:(?:\\x|0x)?[0-9a-fA-F]{2}[\s:,]{0,2}){16,}"
)
_HEX = re.compile(r"\\x|0x|[^0-9a-fA-F]")


def _encoded(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the encoded parts of *text* that contain a secret, each with the kind of secret.

    What is decoded may begin within a group of characters, behind other text of the same alphabet.
    """
    from .shapes import formats

    for found in _ENCODED.finditer(text):
        plain = re.sub(r"\\+[nr]|[^A-Za-z0-9+/_-]", "", found[0]).replace("-", "+").replace("_", "/")
        digits = _HEX.sub("", found[0])
        readings = [base64.b64decode(plain[n:] + "A" * (-len(plain[n:]) % 4)) for n in range(4)]
        if len(digits) * 2 >= len(found[0]):
            readings += [bytes.fromhex(digits[n : len(digits) - (len(digits) - n) % 2]) for n in range(2)]
        if re.fullmatch(r"[A-Z2-7]+|[a-z2-7]+", plain):
            ends = [plain[n:] for n in range(8)]
            readings += [base64.b32decode(end + "A" * (-len(end) % 8), casefold=True) for end in ends]
        for reading in readings:
            decoded = reading.decode("latin-1")
            lower = decoded.lower()
            kinds = (
                shape.name
                for shape in formats()
                if any(hint in lower for hint in shape.hints)
                for match in shape.pattern.finditer(decoded)
                if shape.check is None or shape.check(match)
            )
            if kind := "a known secret" if known_values().search(decoded) else next(kinds, ""):
                yield f"{kind}, encoded", found
                break


def _redact(text: str, strict: bool) -> str:
    text = known_values().sub(REDACTED, text)
    lower = text.lower()
    # Nearly all texts have no hint, so each hint is looked for once, and not once for each shape that has it.
    if hints := {hint for hint in _hints() if hint in lower}:
        for shape in _shapes():
            if hints.isdisjoint(shape.hints):
                continue
            text = shape.pattern.sub(partial(_replaced, shape, strict), text)
    for _, found in reversed(list(_encoded(text))):
        text = f"{text[: found.start()]}{REDACTED}{text[found.end() :]}"
    return text


def safe_text(text: str, *, multiline: bool = True, strict: bool = False) -> str:
    """Return *text* sanitized and redacted, as every place where text leaves the run needs it."""
    # Its lines are joined last: a secret that continues on the next line would not be recognized any more.
    return sanitize(redact(sanitize(text), strict=strict), multiline=multiline)


def one_line(text: str, width: int) -> str:
    """Return *text* sanitized and redacted, on one line with single spaces, and cut to *width* characters."""
    line = " ".join(safe_text(text).split())
    if len(line) <= width:
        return line
    return line[: width - 1] + "…" if width > 0 else ""


def first_line(text: str, width: int) -> str:
    """Return the first line of *text* as :func:`one_line` does; it ends with "…" if that is not all."""
    lines = [line for line in safe_text(text).splitlines() if line.strip()]
    first = one_line(lines[0], width) if lines else ""
    return f"{first} …" if len(lines) > 1 and not first.endswith("…") else first


MIN_SECRET = 16
"""A shorter key of JSON data is a name."""


def redact_data(data: Any, *, strict: bool = False, verbatim: Collection[str] = ()) -> Any:
    """Return JSON data with all its texts redacted, except for the values of the keys *verbatim*."""
    return _mapped(data, redact, strict, verbatim)


def safe_data(data: Any, *, strict: bool = False, verbatim: Collection[str] = ()) -> Any:
    """Return JSON data with all its texts sanitized and redacted, except for the keys *verbatim*."""
    return _mapped(data, safe_text, strict, verbatim)


class _Change(Protocol):
    def __call__(self, text: str, /, *, strict: bool) -> str: ...


def _mapped(data: Any, change: _Change, strict: bool, verbatim: Collection[str]) -> Any:
    if isinstance(data, str):
        return change(data, strict=strict)
    if isinstance(data, Mapping):
        found: dict[str, Any] = {}
        for key, value in cast("Mapping[str, Any]", data).items():
            if key in verbatim:
                found[key] = value
                continue
            # A key as long as a secret is changed too: it may be a path.
            name = key if len(key) < MIN_SECRET else change(key, strict=strict)
            is_secret = isinstance(value, str) and _is_secret(key, value, strict)
            found[name] = REDACTED if is_secret else _mapped(value, change, strict, verbatim)
        return found
    if isinstance(data, list | tuple):
        return [_mapped(value, change, strict, verbatim) for value in cast("list[Any]", data)]
    return data


def _is_secret(name: str, value: str, strict: bool) -> bool:
    """Whether the *name* makes a secret of *value*, as in ``{"password": "…"}``."""
    if not _may_be_secret(name) or len(value) > 500:
        return False
    line = f"{name}: {json.dumps(value)}"
    return redact(line, strict=strict) != line


@lru_cache(maxsize=4096)
def _may_be_secret(name: str) -> bool:
    return any(hint in name.lower() for hint in _ASSIGNED)


def safe_file(text: str, before: str = "") -> str:
    """Return the *text* of a planning file sanitized and redacted, where it differs from *before*.

    Lines that the file already had stay as they are, with their line ends: people wrote them.
    """
    if safe_text(text, strict=True) == text:
        return text
    known = set(before.splitlines(keepends=True))
    done: list[str] = []
    # Adjacent new lines together: a private key has several.
    for is_known, group in groupby(text.splitlines(keepends=True), known.__contains__):
        lines = list(group)
        if is_known:
            done += lines
        else:
            end = "\r\n" if lines[0].endswith("\r\n") else "\n"
            done.append(safe_text("".join(lines), strict=True).replace("\n", end))
    return "".join(done)


def find_secrets(text: str, *, suspect: bool = False) -> Iterator[tuple[str, int, str]]:
    """Yield what a file must not contain when it is committed: the kind of secret, its line, and its value.

    Examples and placeholders do not count, nor names of variables; a value of this process's own secrets
    does. With *suspect*, a password need not look generated. Callers show the kind and the line only.
    """
    from .shapes import assigned, is_example, is_placeholder, is_random, secret_of

    for found in known_values().finditer(text):
        yield "a secret of your environment or settings", _line(found), found[0]
    lower = text.lower()
    for shape in _shapes():
        if not any(hint in lower for hint in shape.hints):
            continue
        for found in shape.pattern.finditer(text):
            secret = assigned(found) if shape.name == "assignment" else secret_of(found)
            if shape.strict is not None:
                # In source code, a word after `password:` is usually a fixture: generated values count.
                is_one = shape.strict(found) and (suspect or is_random(secret, 12))
                is_one = is_one and not is_placeholder(secret)
            else:
                is_one = (shape.check is None or shape.check(found)) and not is_example(secret)
            if is_one:
                yield shape.name, _line(found), secret
    for kind, found in _encoded(text):
        yield kind, _line(found), found[0]


def _line(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start()) + 1


def _replaced(shape: Shape, strict: bool, found: re.Match[str]) -> str:
    check = (shape.strict if strict else None) or shape.check
    if check is not None and not check(found):
        return found[0]
    groups = found.re.groupindex
    if "bare" in groups:
        group = next(name for name in ("q1", "q2", "q3", "bare") if found[name] is not None)
    elif "secret" in groups:
        group = "secret"
    else:
        return REDACTED
    start, end = found.start(group) - found.start(), found.end(group) - found.start()
    return f"{found[0][:start]}{REDACTED}{found[0][end:]}"
