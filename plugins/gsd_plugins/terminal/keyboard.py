"""Lines from the keyboard, without a thread: a wait that can be cancelled at any moment."""

from __future__ import annotations

import asyncio
import os
import termios
from contextlib import suppress
from typing import Protocol

LONGEST = 65_536


class Readable(Protocol):
    """Standard input, or what stands in for it."""

    def fileno(self) -> int:
        """Return the descriptor to read."""
        ...

    def isatty(self) -> bool:
        """Whether a human may sit there."""
        ...


def may_read(stdin: Readable) -> bool:
    """Whether *stdin* is a terminal and ours now: reading in the background would stop the process."""
    try:
        return stdin.isatty() and os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):  # closed: None, or a descriptor that is none
        return False


def forget_typed(stdin: Readable) -> None:
    """Throw away what was typed before it was asked for: it is no answer."""
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(stdin.fileno(), termios.TCIFLUSH)


async def read_line(stdin: Readable) -> str | None:
    """Return the next line without its end; ``None`` at the end of input or if it cannot be read."""
    loop = asyncio.get_running_loop()
    chunks = bytearray()
    came: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        try:
            chunk = os.read(stdin.fileno(), LONGEST) if may_read(stdin) else b""
        except OSError:
            chunk = b""
        chunks.extend(chunk)
        if not came.done() and (not chunk or b"\n" in chunk or len(chunks) > LONGEST):
            came.set_result(None)

    try:
        loop.add_reader(stdin.fileno(), readable)
    except (PermissionError, OSError, ValueError):  # a regular file, or closed
        return None
    try:
        await came
    finally:
        loop.remove_reader(stdin.fileno())
    line, newline, _ = bytes(chunks).partition(b"\n")
    return line.decode("utf-8", "replace").rstrip("\r") if newline else None
