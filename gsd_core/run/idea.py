"""Read the idea document; whatever is wrong with it is said before anything is written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from gsd_core.errors import IdeaError
from gsd_core.step import Idea

LIMIT_BYTES = 400_000
BOM = b"\xef\xbb\xbf"


def load_idea(path: Path, stdin: BinaryIO) -> Idea:
    """Return the idea at *path*; ``-`` is *stdin*.

    Its identity is the SHA-256 of its text without BOM, with ``\\n`` as the only line end and
    without blank space around it: the same words saved by another editor are the same idea.
    """
    name = "stdin" if str(path) == "-" else path.name
    raw = _read(path, stdin)
    text = _text(raw, name)
    return Idea(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def _read(path: Path, stdin: BinaryIO) -> bytes:
    if str(path) == "-":
        return stdin.read(LIMIT_BYTES + 1)
    try:
        with path.open("rb") as file:
            return file.read(LIMIT_BYTES + 1)
    except FileNotFoundError as error:
        raise IdeaError(
            f"no idea document at {str(path)!r}", hint="name a text file, or - for stdin"
        ) from error
    except IsADirectoryError as error:
        raise IdeaError(
            f"{str(path)!r} is a folder, not an idea document", hint="name a text file"
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise IdeaError(
            f"cannot read {str(path)!r}: {why}", hint="name a text file that you may read"
        ) from error


def _text(raw: bytes, name: str) -> str:
    if len(raw) > LIMIT_BYTES:
        hint = "an idea is a few pages: what to build, for whom, and what done means"
        raise IdeaError(f"{name!r} is larger than {LIMIT_BYTES // 1000} kB", hint=hint)
    if (at := raw.find(b"\0")) >= 0:
        raise IdeaError(
            f"{name!r} is binary: a NUL at byte {at}", hint="save it as plain text or Markdown, in UTF-8"
        )
    try:
        text = raw.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (len(BOM) if raw.startswith(BOM) else 0)
        raise IdeaError(
            f"{name!r} is not UTF-8: byte {raw[at]:#04x} at {at}", hint="save it in UTF-8"
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise IdeaError(f"{name!r} is empty", hint="write down what to build, for whom, and what done means")
    return text + "\n"
