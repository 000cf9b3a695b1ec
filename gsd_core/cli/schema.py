"""``gsd schema``: prints the JSON Schema of what a command prints."""

from __future__ import annotations

import json

import click

from .global_options import gsd_command
from .output import print_line


@gsd_command("schema", "gsd schema", "gsd schema status")
@click.argument("names", nargs=-1, metavar="[COMMAND]")
def command(_: click.Context, names: tuple[str, ...]) -> None:
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
