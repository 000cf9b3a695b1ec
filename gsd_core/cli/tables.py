"""Tables for people: foreign words in cells, on terminals of any width and any character set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from rich import box
from rich.table import Table

from .output import can_show, console, styled

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
