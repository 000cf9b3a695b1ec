"""``gsd log``: what was done, record by record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from rich_click import RichCommand

from .global_options import global_options, global_options_of
from .output import json_flag, print_line

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_core.journal.schema import Record

POLL_SECONDS = 0.25


@click.command("log", cls=RichCommand)
@global_options
@click.option("--follow", "-f", is_flag=True, help="go on with what happens, until the run ends")
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="N", help="records after number N only"
)
@click.option("--since", default="", metavar="TIME", help="records since a time, or a duration like 10m")
@json_flag
@click.pass_context
def command(ctx: click.Context, follow: bool, after: int, since: str, as_json: bool) -> None:
    """Show what was done: one line for each record of the journal, of all runs.

    With --json each line is one JSON object. The number of a record is a cursor for --after.
    """
    from gsd_core.views.log import parse_since

    from .project import now, project_root

    begin = parse_since(since, now()) if since else None
    root = project_root(global_options_of(ctx))
    for record in _followed(root, after) if follow else _records(root, after):
        if begin is None or record.at >= begin:
            _show(record, as_json)


def _show(record: Record, as_json: bool) -> None:
    import json

    from gsd_core.views.log import log_json, log_line

    if as_json:
        click.echo(json.dumps(log_json(record)))
    else:
        print_line(log_line(record))


def _records(root: Path, after: int) -> Iterator[Record]:
    from .project import open_journal

    with open_journal(root) as journal:
        yield from journal.events(after=after)


def _followed(root: Path, after: int) -> Iterator[Record]:
    """Yield what is there, then what comes, up to the end of a run that is going on or begins."""
    for record in _records(root, after):
        after = record.seq
        yield record
    while True:
        for record in _records(root, after):
            after = record.seq
            yield record
            if record.kind == "run.closed":
                return
        time.sleep(POLL_SECONDS)
