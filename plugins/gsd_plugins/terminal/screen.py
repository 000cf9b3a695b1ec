"""The lines at the bottom of a terminal that are redrawn in place.

``rich.live`` cannot be used: after a resize it moves up by as many rows as it has drawn, but a terminal that
became narrower has wrapped them to more rows, and the rest would stay behind as debris.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

import attrs
from rich.console import Console
from rich.text import Text

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
ERASE_BELOW = "\x1b[J"
DRAIN_SECONDS = 0.5


@attrs.frozen
class Size:
    """The size of a terminal in characters."""

    columns: int
    rows: int


@attrs.define(eq=False)
class BottomBlock:
    """Draws a block of lines at the cursor, and removes or replaces it later.

    Nothing else may write to the terminal while a block is drawn.
    """

    stream: TextIO
    console: Console
    _widths: list[int] = attrs.field(factory=list[int], init=False)
    _cursor: tuple[int, int] | None = attrs.field(default=None, init=False)
    _drawn: str = attrs.field(default="", init=False)
    _size: Size = attrs.field(default=Size(0, 0), init=False)

    def size(self) -> Size:
        """Return the terminal's current size."""
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError, AttributeError):
            columns, rows = self.console.size
        # A terminal that was just made may report zero.
        return Size(columns or 80, rows or 24)

    def draw(self, lines: Sequence[Text], cursor: tuple[int, int] | None = None) -> None:
        """Replace the block; each line is cut to the width. *cursor* is a row and a column, or hidden."""
        size = self.size()
        # The last column stays free: some terminals wrap a line that fills it.
        cut = [_cut(line, max(size.columns - 1, 1)) for line in lines[-max(size.rows - 1, 1) :]]
        rendered = "\n".join(self._render(line) for line in cut)
        if (rendered, cursor, size) == (self._drawn, self._cursor, self._size):
            return
        output = self._erasing(size) + rendered
        if cursor is None:
            output += HIDE_CURSOR
        else:
            row, column = cursor[0] - (len(lines) - len(cut)), min(cursor[1], size.columns - 1)
            up = len(cut) - 1 - row
            output += "\r" + (f"\x1b[{up}A" if up > 0 else "") + (f"\x1b[{column}C" if column else "")
            output += SHOW_CURSOR
        self._write(output)
        self._widths = [line.cell_len for line in cut]
        self._drawn, self._cursor, self._size = rendered, cursor, size

    def remove(self) -> None:
        """Remove the block, and leave the cursor, visible, where it began."""
        if self._widths:
            self._write(self._erasing(self.size()) + SHOW_CURSOR)
        self._widths, self._drawn, self._cursor = [], "", None

    def forget(self) -> None:
        """Begin a new block at the cursor: others have written to the terminal."""
        self._widths, self._drawn, self._cursor = [], "", None

    def drain(self) -> None:
        """Wait a moment until everything is written, for example before this process is suspended."""
        if drain := getattr(self.stream, "drain", None):
            drain(DRAIN_SECONDS)
        else:
            self.stream.flush()

    def _erasing(self, size: Size) -> str:
        """Return what moves the cursor to the block's first row, as the terminal wraps it now, and erases."""
        if not self._widths:
            return "\r"
        rows = [1 + max(width - 1, 0) // size.columns for width in self._widths]
        above = sum(rows) - 1
        if self._cursor is not None:
            row, column = self._cursor
            # After a resize it is anyone's guess; before one, this is exact.
            above = sum(rows[: min(row, len(rows))]) + (column // size.columns if column else 0)
        return "\r" + (f"\x1b[{above}A" if above > 0 else "") + ERASE_BELOW

    def _render(self, line: Text) -> str:
        with self.console.capture() as captured:
            self.console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _cut(line: Text, width: int) -> Text:
    line = line.copy()
    line.truncate(width, overflow="ellipsis")
    return line


def wrapped(text: str, width: int) -> list[str]:
    """Return *text* in rows of at most *width* cells, broken between words, without losing a character.

    Only a word that is longer than a row is broken. Joined, the rows are the text without its newlines.
    """
    from rich.cells import cell_len, chop_cells

    width = max(width, 2)
    rows: list[str] = []
    for line in text.split("\n"):
        row = ""
        for word in _words(line):
            if row and cell_len(row) + cell_len(word.rstrip(" ")) > width:
                rows.append(row)
                row = ""
            *full, last = chop_cells(word, width) if cell_len(word.rstrip(" ")) > width else [word]
            rows += full
            row = row + last if not full else last
        rows.append(row)
    return rows


def _words(line: str) -> list[str]:
    """Split a line after its spaces, which stay with the word before them."""
    words: list[str] = []
    start = 0
    for at in range(1, len(line)):
        if line[at - 1] == " " and line[at] != " ":
            words.append(line[start:at])
            start = at
    return [*words, line[start:]]
