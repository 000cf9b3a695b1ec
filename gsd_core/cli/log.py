"""``gsd log``: shows what was done, record by record."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .global_options import global_options, global_options_of
from .help import Command
from .output import json_flag, print_line

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_core.journal.schema import Record

POLL_SECONDS = 0.25


@click.command("log", cls=Command)
@global_options
@click.option("--follow", "-f", is_flag=True, help="keep printing new records until the run ends")
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="N", help="only records after number N"
)
@click.option("--since", default="", metavar="TIME", help="only records since TIME, or a duration like 10m")
@json_flag
@click.pass_context
def command(ctx: click.Context, follow: bool, after: int, since: str, as_json: bool) -> None:
    """Show what was done, one line per record of the journal.

    The journal contains all runs of the project. With --json each line is a JSON object. Each record has a
    number, which you can pass to --after.
    """
    from gsd_core.sanitize import redact_data
    from gsd_core.views.log import log_json, log_line, parse_since

    from .project import now, project_root

    begin = parse_since(since, now()) if since else None
    root = project_root(global_options_of(ctx))
    for record in _follow(root, after) if follow else _records(root, after):
        if begin is None or record.at >= begin:
            click.echo(json.dumps(redact_data(log_json(record)))) if as_json else print_line(log_line(record))


def _records(root: Path, after: int) -> Iterator[Record]:
    from .project import open_journal

    with open_journal(root) as journal:
        yield from journal.events(after=after)


def _follow(root: Path, after: int) -> Iterator[Record]:
    """Yield the records that exist, then new ones until a run ends: the active one, or the next."""
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
