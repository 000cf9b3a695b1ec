"""The lines at the bottom of a terminal that are redrawn in place.

``rich.live`` cannot be used: after a resize it moves up by as many rows as it has drawn, but a terminal that
became narrower has wrapped them to more rows, and the rest would stay behind as debris.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import attrs
from rich.console import Console
from rich.text import Text

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
ERASE_ROW = "\x1b[K"
# Not from the block's first row: if that is the top of the screen, tmux takes this for clearing the screen,
# and keeps a copy of the block in the scroll-back each time that it is redrawn.
ERASE_ROWS = f"{ERASE_ROW}\x1b[B\x1b[J\x1b[A"
DRAIN_SECONDS = 0.5


@attrs.define(eq=False)
class BottomBlock:
    """Draws a block of lines at the cursor, and removes or replaces it later.

    Nothing else may write to the terminal while a block is drawn. Who writes from another thread, such as
    a warning, first takes the *lock* and removes the block.
    """

    stream: TextIO
    console: Console
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    _widths: list[int] = attrs.field(factory=list[int], init=False)
    _cursor: tuple[int, int] | None = attrs.field(default=None, init=False)
    _drawn: str = attrs.field(default="", init=False)
    _size: os.terminal_size = attrs.field(default=os.terminal_size((0, 0)), init=False)

    def size(self) -> os.terminal_size:
        """Return the terminal's current size."""
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError, AttributeError):
            columns, rows = self.console.size
        # A terminal that was just made may report zero.
        return os.terminal_size((columns or 80, rows or 24))

    def draw(
        self, lines: Sequence[Text], cursor: tuple[int, int] | None = None, *, width: int | None = None
    ) -> None:
        """Replace the block; each line is cut to *width* or the terminal's.

        *cursor* is a row and a column, or hidden.
        """
        size = self.size()
        cut = [line.copy() for line in lines[-max(size.lines - 1, 1) :]]
        for line in cut:
            # The last column stays free: some terminals wrap a line that fills it.
            line.truncate(max(min(width or size.columns, size.columns) - 1, 1), overflow="ellipsis")
        rendered = "\n".join(self._render(line) for line in cut)
        with self.lock:
            if (rendered, cursor, size) == (self._drawn, self._cursor, self._size):
                return
            output = self._erasing(size) + rendered
            if cursor is None:
                output += HIDE_CURSOR
            else:
                # Counted from the last row, which is the same however many lines are cut off above.
                up, column = len(lines) - 1 - cursor[0], min(cursor[1], size.columns - 1)
                output += "\r" + (f"\x1b[{up}A" if up > 0 else "") + (f"\x1b[{column}C" if column else "")
                output += SHOW_CURSOR
            self._write(output)
            self._widths = [line.cell_len for line in cut]
            self._drawn, self._cursor, self._size = rendered, cursor, size

    def remove(self) -> None:
        """Remove the block, and leave the cursor, visible, where it began."""
        with self.lock:
            if self._widths:
                self._write(self._erasing(self.size()) + SHOW_CURSOR)
            self.forget()

    def remove_with(self, above: Sequence[int]) -> None:
        """Remove the block, and the lines above it with these lengths if all of them are on the screen."""
        with self.lock:
            size = self.size()
            rows = sum(_rows(length, size) for length in above)
            if rows and rows + sum(_rows(width, size) for width in self._widths) <= size.lines:
                self._write(f"{self._erasing(size)}\x1b[{rows}A{ERASE_ROWS}{SHOW_CURSOR}")
                self.forget()
            self.remove()

    def forget(self) -> None:
        """Begin a new block at the cursor: others have written to the terminal."""
        with self.lock:
            self._widths, self._drawn, self._cursor = [], "", None

    def drain(self) -> None:
        """Wait a moment until everything is written, for example before this process is suspended."""
        if drain := getattr(self.stream, "drain", None):
            drain(DRAIN_SECONDS)
        else:
            self.stream.flush()

    def _erasing(self, size: os.terminal_size) -> str:
        """Return what moves the cursor to the block's first row, as the terminal wraps it now, and erases."""
        if not self._widths:
            return "\r"
        rows = [_rows(width, size) for width in self._widths]
        above = sum(rows) - 1
        if self._cursor is not None:
            row, column = self._cursor
            # After a resize it is anyone's guess; before one, this is exact.
            above = sum(rows[: min(row, len(rows))]) + (column // size.columns if column else 0)
        up = f"\x1b[{above}A" if above > 0 else ""
        return f"\r{up}{ERASE_ROWS if sum(rows) > 1 else ERASE_ROW}"

    def _render(self, line: Text) -> str:
        with self.console.capture() as captured:
            self.console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@attrs.define(eq=False, slots=False)
class LinesAbove(io.TextIOBase):
    """Standard error while a block is drawn: *write_lines* gets whole lines, to write them above the block.

    Warnings, plugins and libraries write to it at any time and from any thread. Written below the block,
    their lines would be erased with it in part, and parts of the block would stay.
    """

    original: TextIO
    write_lines: Callable[[str], None]
    _begun: str = attrs.field(default="", init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute in typeshed
        """The encoding of the original stream."""
        return self.original.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # an attribute in typeshed
        """How characters are written that the encoding lacks."""
        return self.original.errors

    def fileno(self) -> int:
        """Return the descriptor of the original stream."""
        return self.original.fileno()

    def isatty(self) -> bool:
        """Whether the original stream is a terminal."""
        return self.original.isatty()

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, text: Any, /) -> int:
        """Write the lines that *text* completes; the rest waits for its end. A bell rings at once."""
        # click finds out in this way whether a stream takes text or bytes.
        if not isinstance(text, str):
            raise TypeError(f"write() needs text, not {type(text).__name__}")
        if text == "\a":
            return self.original.write(text)
        with self._lock:
            lines, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self.write_lines(lines + newline)
        return len(text)

    def finish(self) -> None:
        """Write a line that was begun, but not ended."""
        with self._lock:
            begun, self._begun = self._begun, ""
        if begun:
            self.write_lines(begun + "\n")


def _rows(width: int, size: os.terminal_size) -> int:
    """Return how many rows of a terminal a line takes."""
    return 1 + max(width - 1, 0) // size.columns


def wrapped(text: str, width: int) -> list[str]:
    """Return *text* in rows of at most *width* cells, broken between words, without losing a character.

    Only a word that is longer than a row is broken. Joined, the rows are the text without its newlines.
    """
    from rich.cells import cell_len, chop_cells

    width = max(width, 2)
    rows: list[str] = []
    for line in text.split("\n"):
        row = ""
        # Spaces stay with the word before them.
        for word in re.split(r"(?<= )(?=[^ ])", line):
            if row and cell_len(row) + cell_len(word.rstrip(" ")) > width:
                rows.append(row)
                row = ""
            *full, last = chop_cells(word, width) if cell_len(word.rstrip(" ")) > width else [word]
            rows += full
            row = row + last if not full else last
        rows.append(row)
    return rows
