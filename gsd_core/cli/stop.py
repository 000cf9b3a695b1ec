"""``gsd stop``: ask the run to end, wherever it runs."""

from __future__ import annotations

import getpass

import click
from rich_click import RichCommand

from gsd_core.views.status import SCHEMA_VERSION

from .global_options import global_options, global_options_of
from .output import json_flag, print_json, print_line


@click.command("stop", cls=RichCommand)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Ask the run on this project to finish writing and end; gsd resume goes on later."""
    from gsd_core.journal.inbox import put

    from .project import holder_of, journal_path, project_root

    root = project_root(global_options_of(ctx))
    holder = holder_of(root)
    if holder:
        key = f"stop {holder.pid} {holder.host} {holder.since}"
        put(journal_path(root), "stop", {}, by=getpass.getuser(), key=key)
    if as_json:
        pid = holder.pid if holder else None
        print_json({"schema_version": SCHEMA_VERSION, "asked": holder is not None, "pid": pid})
    elif holder:
        print_line(f"asked pid {holder.pid} on {holder.host} to stop; watch it with: gsd log --follow")
    else:
        print_line("nothing is running on this project")
