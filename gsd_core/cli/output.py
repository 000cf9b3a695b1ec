"""What commands print: text for people, JSON for programs, on stdout.

Tables for people: foreign words in cells, on terminals of any width and any character set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gsd_core.sanitize import sanitize

F = TypeVar("F")
PLAIN_WIDTH = 160


def json_flag(command: F) -> F:
    """Give a reading command ``--json``."""
    option = click.option("--json", "as_json", is_flag=True, help="print JSON (with schema_version) instead")
    return option(command)  # type: ignore[type-var]  # click types decorators by their callable


def print_json(data: Mapping[str, Any]) -> None:
    """Print *data* as one line of JSON on a pipe, indented on a terminal; in ASCII, so nothing acts."""
    click.echo(json.dumps(data, indent=2 if sys.stdout.isatty() else None))


def print_line(line: str | Text = "") -> None:
    """Print one line of foreign or own words, without what a terminal would obey."""
    console().print(styled(line), soft_wrap=True)


def can_show(signs: str) -> bool:
    """Whether stdout has these characters."""
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def styled(line: str | Text, style: str = "") -> Text:
    """Return *line* as text to print: no markup, sanitized."""
    return line if isinstance(line, Text) else Text(sanitize(line), style=style)


class Output(Console):
    """A console that leaves a closed pipe to the command: it is no failure."""

    def on_broken_pipe(self) -> None:
        """Let the error of the write pass, where rich would exit with 1."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on stdout; NO_COLOR beats FORCE_COLOR, and nothing is cut where nobody looks."""
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    plain = bool(os.environ.get("NO_COLOR"))
    return Output(
        file=sys.stdout,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=plain,
        force_terminal=sys.stdout.isatty() if plain else None,
        color_system=None if plain else "auto",
    )


Column: TypeAlias = str
SIGNS = str.maketrans({"✓": "+", "✗": "x", "·": "."})


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
    """Print *rows*; a cell whose whole text is in *styles* is printed so."""
    plain = not can_show("✓✗·")
    table = Table(box=box.ASCII if plain else box.SIMPLE, pad_edge=False, highlight=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = [cell.translate(SIGNS) if plain else cell for cell in row]
        table.add_row(*(styled(cell, styles.get(cell, "")) for cell in cells))
    console().print(table)
