"""What commands print on stdout: text and tables for people, JSON for programs.

Much of it was written by a model or comes from a cloned repository, so nothing of it may control the
terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gsd_core.model.counts import counted as counted
from gsd_core.sanitize import redact_data, safe_text

F = TypeVar("F")

PIPE_WIDTH = 160
MAX_TEXT_WIDTH = 100
"""Longer lines of text are tiring to read, however wide the terminal is."""
ASCII_SIGNS = str.maketrans({"✓": "+", "✗": "x", "·": "."})


def json_flag(command: F) -> F:
    """Add ``--json`` to a command that only reads."""
    option = click.option("--json", "as_json", is_flag=True, help="print JSON instead")
    return option(command)  # type: ignore[type-var]  # click types decorators by their callable


def print_json(data: Mapping[str, Any]) -> None:
    """Print *data* as JSON, on one line unless stdout is a terminal; as ASCII, which cannot control one.

    Secrets in it are redacted.
    """
    click.echo(json.dumps(redact_data(data), indent=2 if sys.stdout.isatty() else None))


def print_line(line: str | Text = "") -> None:
    """Print one line, sanitized and redacted."""
    console().print(styled(line), soft_wrap=True)


def wrapped(line: str, indent: str, stream: IO[str] | None) -> list[str]:
    """Return *line* in the width of the terminal that *stream* is; where it is none, as one line.

    For text, whose words a terminal would cut anywhere. A command in it, in backticks or after a colon, is
    copied as a whole: it is never broken, however long it is.
    """
    if stream is None or not stream.isatty():
        return [line]
    width = max(min(_columns(stream), MAX_TEXT_WIDTH), 20)
    rows = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", _NO_BREAK), line),
        width,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [row.replace(_NO_BREAK, " ") for row in rows] or [""]


_COMMAND = re.compile(
    r"`[^`\n]+`|(?:(?<=: )|(?<=\bwith )|(?<=\brun ))(?:gsd|git|pip|uv|unset|claude) [^,;()`\n]*[^,;()`\s]"
)
_NO_BREAK = "\0"
"""Stands for a space in a command; the sanitizer has removed this character from texts."""


def _columns(stream: IO[str]) -> int:
    """Return the width of the terminal *stream*; standard output may be a file."""
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr, sanitized and redacted, so that stdout stays what was asked for."""
    for line in lines:
        for part in wrapped(f"warning: {safe_text(line, multiline=False)}", "  ", sys.stderr):
            click.echo(part, err=True)


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


def styled(line: str | Text, style: str = "") -> Text:
    """Return *line* as text to print: sanitized and redacted, without markup."""
    return line if isinstance(line, Text) else Text(safe_text(line), style=style)


class OutputConsole(Console):
    """A console that leaves a closed pipe to the command, because that is not an error."""

    def on_broken_pipe(self) -> None:
        """Raise again what rich would turn into exit code 1."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console for stdout. NO_COLOR overrides FORCE_COLOR; only a terminal limits the width."""
    no_color = bool(os.environ.get("NO_COLOR"))
    terminal = sys.stdout.isatty()
    return OutputConsole(
        file=sys.stdout,
        width=None if terminal else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=no_color,
        force_terminal=terminal if no_color else None,
        color_system=None if no_color else "auto",
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
    """Print *rows*; *styles* maps the whole text of a cell to its style."""
    ascii_only = not can_show("✓✗·")
    table = Table(box=box.ASCII if ascii_only else box.SIMPLE, pad_edge=False, highlight=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = [cell.translate(ASCII_SIGNS) if ascii_only else cell for cell in row]
        table.add_row(*(styled(cell, styles.get(cell, "")) for cell in cells))
    console().print(table)
