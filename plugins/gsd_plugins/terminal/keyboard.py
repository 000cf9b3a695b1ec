"""Single keys from a terminal: its mode, and what bytes mean.

Signals stay on, so Ctrl-C and Ctrl-Z work as in any program; echo is off, because what is typed would be
written into lines that are redrawn in place.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

import attrs

MAX_CHUNK = 65_536
ESCAPE_SECONDS = 0.05
"""How long the rest of a key that begins with Esc may take."""
_SEQUENCES = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x1b[C", "\x1bOC"), "right"),
    **dict.fromkeys(("\x1b[D", "\x1bOD"), "left"),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~"), "home"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~"), "end"),
    "\x1b[3~": "delete",
}
_CONTROLS = {
    **dict.fromkeys(("\r", "\n"), "enter"),
    **dict.fromkeys(("\x7f", "\x08"), "backspace"),
    **dict.fromkeys(("\x0e", "\t"), "down"),
    **dict.fromkeys(("\x10", "\x1b[Z"), "up"),
    "\x01": "home",
    "\x04": "eof",
    "\x05": "end",
    "\x0b": "kill_right",
    "\x15": "kill",
    "\x17": "kill_word",
}
_PARTS = re.compile(r"\x1b(?:\[[0-9;]*[ -/]*[@-~]|O.)|\x1b\[[0-9;]*|\x1bO?|[^\x1b]", re.DOTALL)


class Readable(Protocol):
    """Standard input, or a substitute."""

    def fileno(self) -> int:
        """Return the descriptor to read."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


def can_read(stdin: Readable) -> bool:
    """Whether *stdin* is a terminal and we are in its foreground: a background read stops the process."""
    try:
        return stdin.isatty() and os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):  # sys.stdin is None, or closed
        return False


def read_typed(stdin: Readable, limit: int) -> bytes:
    """Return what was typed, at most *limit* bytes; nothing at the end of input, or in the background."""
    try:
        return os.read(stdin.fileno(), limit) if can_read(stdin) else b""
    except OSError:
        return b""


def discard_typed(stdin: Readable) -> None:
    """Discard what was typed and not yet read."""
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(stdin.fileno(), termios.TCIFLUSH)


def keys_of(text: str) -> Iterator[str]:
    """Yield the keys in *text*: names such as ``up``, and printable characters as they are."""
    for part in _PARTS.findall(text):
        if key := _SEQUENCES.get(part) or _CONTROLS.get(part) or ("escape" if part == "\x1b" else ""):
            yield key
        elif part.isprintable():
            yield part


@attrs.define(eq=False)
class Keyboard:
    """Reads keys while it is open, and passes those of one read together to *pressed*.

    *pressed* gets ``["closed"]`` when input ends. Opening and closing may be repeated.
    """

    stdin: Readable
    pressed: Callable[[list[str]], None]
    _before: list[Any] | None = attrs.field(default=None, init=False)
    _decoder: codecs.IncrementalDecoder = attrs.field(init=False)
    _begun: str = attrs.field(default="", init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_open(self) -> bool:
        """Whether keys are read now."""
        return self._before is not None

    def open(self) -> bool:
        """Read single keys from now on; false if that is not possible."""
        if self.is_open or not can_read(self.stdin):
            return self.is_open
        try:
            self._before = termios.tcgetattr(self.stdin.fileno())
            tty.setcbreak(self.stdin.fileno(), termios.TCSANOW)
            asyncio.get_running_loop().add_reader(self.stdin.fileno(), self._read)
        except (termios.error, OSError, ValueError):
            self.close()
        return self.is_open

    def close(self) -> None:
        """Stop reading, and restore the terminal's mode."""
        if self._timer:
            self._timer.cancel()
        self._begun, self._timer = "", None
        with suppress(OSError, ValueError):
            asyncio.get_running_loop().remove_reader(self.stdin.fileno())
        # Changing the mode in the background would stop the process; the shell has set its own by then.
        if self._before is not None and can_read(self.stdin):
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(self.stdin.fileno(), termios.TCSANOW, self._before)
        self._before = None

    def _read(self) -> None:
        chunk = read_typed(self.stdin, MAX_CHUNK)
        if not chunk:
            asyncio.get_running_loop().remove_reader(self.stdin.fileno())
            self.pressed(["closed"])
            return
        if self._timer:
            self._timer.cancel()
            self._timer = None
        text, self._begun = self._begun + self._decoder.decode(chunk), ""
        if begun := re.search(r"\x1b(?:\[[0-9;]*|O)?\Z", text):
            text, self._begun = text[: begun.start()], begun[0]
            self._timer = asyncio.get_running_loop().call_later(ESCAPE_SECONDS, self._give_up)
        self._press(text)

    def _give_up(self) -> None:
        text, self._begun, self._timer = self._begun, "", None
        self._press(text)

    def _press(self, text: str) -> None:
        if keys := list(keys_of(text)):
            self.pressed(keys)
