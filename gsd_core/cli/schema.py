"""``gsd schema``: prints the JSON Schema of what a command prints."""

from __future__ import annotations

import json

import click

from .global_options import global_options
from .help import Command, examples
from .output import print_line


@click.command("schema", cls=Command, epilog=examples("gsd schema", "gsd schema status"))
@global_options
@click.argument("names", nargs=-1, metavar="[COMMAND]")
def command(names: tuple[str, ...]) -> None:
    """Print the JSON Schema of what COMMAND prints with --json.

    Without COMMAND, list the names. 'run' is the schema of --output-format json, 'event' that of a line of
    --output-format stream-json.
    """
    from gsd_core.errors import UserError
    from gsd_core.views.schemas import SCHEMAS, schema_of

    if not names:
        for name in SCHEMAS:
            print_line(name)
        return
    name = " ".join(names)
    if name not in SCHEMAS:
        raise UserError(f"no schema for {name!r}", hint="gsd schema lists the names")
    click.echo(json.dumps(schema_of(name), indent=2))
