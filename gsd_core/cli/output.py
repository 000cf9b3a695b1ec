"""What commands print on stdout: text and tables for people, JSON for programs.

Much of it was written by a model or comes from a cloned repository, so nothing of it may control the
terminal.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gsd_core.model.counts import counted as counted
from gsd_core.own_process import data_output
from gsd_core.sanitize import one_line, safe_data, safe_text
from gsd_core.serializer import SCHEMA_VERSION

from .global_options import json_flag as json_flag

PIPE_WIDTH = 160
MAX_TEXT_WIDTH = 100
"""Longer lines of text are tiring to read, however wide the terminal is."""
_UNITS = re.compile(
    r"(?:`[^`\n]*`"  # a command in a sentence
    r"|(?:(?<=: )|(?<=\bwith )|(?<=\brun ))(?:gsd|git|pip|uv|unset|claude) [^,;()`\n]*[^,;()`\s]"
    r"|\b\d+ min(?: \d+ s)?|\b[\d.]+ s\b"  # a duration
    r"|\S)+ *"
)
"""What is not divided when a line is wrapped: words, and what is copied or read as one."""
MAX_CELL_WORD = 30
MIN_WIDTH = 10
LABEL_COLORS = {
    "error": "red",
    "failed": "red",
    "warning": "yellow",
    "gaps": "yellow",
    "blocked": "yellow",
    "budget": "yellow",
    "stopped": "yellow",
    "hint": "cyan",
    "done": "green",
}
ASCII_SIGNS = str.maketrans({"✓": "+", "✗": "x", "·": "."})
_MORE_ASCII = {**ASCII_SIGNS, **str.maketrans({"▸": ">", "▹": "o", "→": "=", "…": "~"})}


def print_json(data: Mapping[str, Any]) -> None:
    """Print *data* with the version of its schema as JSON, sanitized and redacted.

    It is on one line unless stdout is a terminal. JSON escapes control characters, but what reads it prints
    them as they were, as ``jq -r`` does.
    """
    out = data_output()
    found = safe_data({"schema_version": SCHEMA_VERSION, **data})
    click.echo(json.dumps(found, indent=2 if out.isatty() else None), file=out)


def print_line(line: str | Text = "", *, exact: bool = False) -> None:
    """Print a line, sanitized and redacted; at a terminal, one that is too long wrapped between words.

    *exact* is for what is copied, such as a path, or has its own form, such as a diff.
    """
    out, text = console(), styled(line)
    rows = [text] if exact or not sys.stdout.isatty() else wrapped_text(text, out.width)
    for row in rows:
        out.print(row, soft_wrap=True)


def wrapped(line: str, stream: IO[str] | None, indent: str | None = None) -> list[str]:
    """Return *line* in the width of the terminal that *stream* is; where it is none, as one line."""
    if stream is None or not stream.isatty():
        return [line]
    width = min(_columns(stream), MAX_TEXT_WIDTH)
    return [row.plain for row in wrapped_text(Text(line), width, indent)]


def wrapped_text(text: Text, width: int, indent: str | None = None) -> list[Text]:
    """Return *text* in rows of *width* columns, which begin with *indent* from the second one on.

    A terminal would cut words anywhere. Commands and quantities stay whole, and so do words that are longer
    than a row: they are copied. Without an *indent*, rows are indented two columns more than their line.
    """
    lines, width = text.split("\n", allow_blank=True), max(width, MIN_WIDTH)
    return [row for line in lines for row in _rows(line, width, indent)]


def _rows(line: Text, width: int, indent: str | None) -> list[Text]:
    if line.cell_len <= width:
        return [line]
    plain = line.plain
    lead = len(plain) - len(plain.lstrip(" "))
    hang = Text(" " * (lead + 2) if indent is None else indent)
    breaks: list[int] = []
    used = lead
    for unit in _UNITS.finditer(plain, lead):
        words = unit[0].rstrip(" ")
        # The first words of a row stay in it even if they are too long.
        if used + cell_len(words) > width and used > (hang.cell_len if breaks else lead):
            breaks.append(unit.start())
            used = hang.cell_len
        used += cell_len(unit[0])
    first, *others = line.divide(breaks)
    rows = [first, *(hang.copy().append_text(other) for other in others)]
    for row in rows:
        row.rstrip()
    return rows


def _columns(stream: IO[str]) -> int:
    """Return the width of the terminal *stream*; standard output may be a file."""
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr, sanitized and redacted, so that stdout stays what was asked for.

    Where they cannot be written, the command goes on.
    """
    for line in lines:
        with suppress(OSError):
            print_labeled("warning", safe_text(line, multiline=False))


def print_labeled(label: str, text: str, *, err: bool = True) -> None:
    """Print ``label: text``, the label in its color, on stderr or else stdout; *text* is sanitized."""
    stream = sys.stderr if err else sys.stdout
    rows = with_style(wrapped(f"{label}: {text}", stream), f"{label}:", stream)
    click.echo("\n".join(rows), err=err)


class LabeledHandler(logging.Handler):
    """Prints records on standard error as it is at that time: a live view replaces it while it is shown."""

    def __init__(self, label: str, width: int = sys.maxsize) -> None:
        super().__init__()
        self.label, self.width = label, width

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, sanitized and redacted."""
        try:
            text = self.format(record)
            # A record that is to be short is one line, and redacted before it is cut.
            text = safe_text(text) if self.width == sys.maxsize else one_line(text, self.width)
            print_labeled(self.label, text)
        except Exception:
            self.handleError(record)


def with_style(rows: Sequence[str], label: str, stream: IO[str] | None) -> list[str]:
    """Return *rows* for *stream* with their *label*, if they begin with it, in its style."""
    first, *others = rows
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "")
    if plain or stream is None or not stream.isatty() or not first.startswith(label):
        return [*rows]
    color = LABEL_COLORS.get(label.removesuffix(":"))
    return [click.style(label, bold=True, fg=color) + first[len(label) :], *others]


def show_all(lines: Sequence[str]) -> bool:
    """Show *lines* on stderr, a screen at a time, before something is approved; false if input ends.

    What scrolled away unseen would be approved unseen.
    """
    width, height = shutil.get_terminal_size()
    used = 0
    for line in lines:
        rows = 1 + len(line) // max(width, 1)
        if used + rows > height - 2 and used:
            try:
                click.prompt("more: press Enter", default="", show_default=False, err=True)
            except click.Abort:
                return False
            used = 0
        click.echo(line, err=True)
        used += rows
    return True


def can_show(signs: str) -> bool:
    """Whether the encoding of stdout has these characters."""
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def shown_signs(signs: Mapping[str, str]) -> Mapping[str, str]:
    """Return *signs*, in ASCII if the encoding of stdout lacks one of them."""
    if can_show("".join(signs.values())):
        return signs
    return {name: sign.translate(_MORE_ASCII) for name, sign in signs.items()}


def styled(line: str | Text, style: str = "") -> Text:
    """Return *line* as text to print: sanitized and redacted, without markup."""
    return line if isinstance(line, Text) else Text(safe_text(line), style=style)


class OutputConsole(Console):
    """A console that leaves a closed pipe to the command, because that is not an error."""

    def on_broken_pipe(self) -> None:
        """Raise again what rich would turn into exit code 1."""
        raise BrokenPipeError


def console(stream: IO[str] | None = None) -> Console:
    """Return a console for stdout, or for the *stream* of a pager that shows it on the same terminal.

    NO_COLOR overrides FORCE_COLOR; only a terminal limits the width.
    """
    no_color = bool(os.environ.get("NO_COLOR"))
    terminal = sys.stdout.isatty()
    return OutputConsole(
        file=stream or sys.stdout,
        width=None if terminal else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=no_color,
        force_terminal=terminal if no_color or stream not in (None, sys.stdout) else None,
        color_system=None if no_color else "auto",
    )


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    styles: Mapping[str, str],
    *,
    numbers: Collection[str] = (),
) -> None:
    """Print *rows*; *styles* maps the whole text of a cell to its style, *numbers* are columns of numbers.

    A terminal that is too narrow for the words of a row gets a few lines for each.
    """
    out, ascii_only = console(), not can_show("✓✗·")
    shown = [[_cell(cell, styles, ascii_only=ascii_only) for cell in row] for row in rows]
    if sys.stdout.isatty() and _least_width(columns, shown) > out.width:
        for first, *others in shown:
            first.stylize("bold")
            print_line(first)
            for name, cell in zip(columns[1:], others, strict=True):
                if cell:
                    print_line(Text(f"  {name}: ").append_text(cell))
        return
    lines = box.ASCII if ascii_only else box.SIMPLE_HEAD
    table = Table(box=lines, pad_edge=False, show_edge=False, highlight=False)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in numbers else "left")
    for row in shown:
        table.add_row(*row)
    out.print(table)


def _cell(cell: str | Text, styles: Mapping[str, str], *, ascii_only: bool) -> Text:
    if isinstance(cell, Text):
        return cell
    return styled(cell.translate(ASCII_SIGNS) if ascii_only else cell, styles.get(cell, ""))


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
    """Return the width of a table in which no word of a usual length is divided."""
    cells = zip(columns, *([cell.plain for cell in row] for row in rows), strict=True)
    return sum(
        min(max((cell_len(word) for cell in column for word in cell.split()), default=0), MAX_CELL_WORD) + 3
        for column in cells
    )
