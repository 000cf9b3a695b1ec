"""Searches for regular expressions that a model wrote, for a limited time."""

from __future__ import annotations

import asyncio
import re
import sys
from enum import Enum

SEARCH_SECONDS = 5.0

_CAN_REPEAT = re.compile(r"[*+?{]")
_SEARCH_PROGRAM = """
import re, sys
pattern, text = sys.stdin.buffer.read().decode("utf-8", "replace").split("\\0", 1)
sys.exit(10 if re.search(pattern, text, re.MULTILINE) else 11)
"""


class Found(Enum):
    """The result of a search; the first two values are exit codes of the search process."""

    YES = 10
    NO = 11
    TIMEOUT = 12
    INVALID = 13


async def search(pattern: str, text: str, *, seconds: float = SEARCH_SECONDS) -> Found:
    """Search *text* for a regular expression that a model wrote, for a limited time.

    A pattern like ``(a+)+$`` can run for years, and ``re`` holds the interpreter lock while it
    runs, so neither a thread nor a timeout can end it. A pattern that can repeat anything is therefore
    searched in a separate process, which can be killed. Without repetition a pattern cannot
    explode, and is searched here.
    """
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError):
        return Found.INVALID
    if not _CAN_REPEAT.search(pattern):
        return Found.YES if compiled.search(text) else Found.NO
    if "\0" in pattern:  # it separates pattern and text on the process's standard input
        return Found.INVALID
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _SEARCH_PROGRAM, stdin=pipe, stdout=null, stderr=null
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
    except ValueError:  # the process was killed from outside, or ran out of memory
        return Found.TIMEOUT
