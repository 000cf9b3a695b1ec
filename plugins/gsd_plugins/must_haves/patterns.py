"""Search a text for a regular expression that a model wrote, within a bound of time.

A pattern like ``(a+)+$`` can run for years, and Python's ``re`` holds the interpreter while it
does: neither a thread nor a time-out can end it. So a pattern that can repeat anything is
searched by a process of its own, which can be ended; one without repetition cannot explode and
is searched here.
"""

from __future__ import annotations

import asyncio
import re
import sys
from enum import Enum

SECONDS = 5.0

_REPEATS = re.compile(r"[*+?{]")
_SEARCH = (
    "import re, sys\n"
    "pattern, text = sys.stdin.buffer.read().decode('utf-8', 'replace').split('\\0', 1)\n"
    "sys.exit(10 if re.search(pattern, text, re.MULTILINE) else 11)\n"
)


class Found(Enum):
    """What came of a search."""

    YES = 10
    NO = 11
    TIMEOUT = 12
    INVALID = 13


async def search(pattern: str, text: str, *, seconds: float = SECONDS) -> Found:
    """Search *text* for *pattern*."""
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError):
        return Found.INVALID
    if not _REPEATS.search(pattern):
        return Found.YES if compiled.search(text) else Found.NO
    if "\0" in pattern:
        return Found.INVALID
    return await _search_apart(pattern, text, seconds)


async def _search_apart(pattern: str, text: str, seconds: float) -> Found:
    pipe = asyncio.subprocess.PIPE
    none = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _SEARCH, stdin=pipe, stdout=none, stderr=none
    )
    try:
        await asyncio.wait_for(process.communicate(f"{pattern}\0{text}".encode()), seconds)
    except TimeoutError:
        return Found.TIMEOUT
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return Found(process.returncode)
    except ValueError:
        return Found.TIMEOUT
