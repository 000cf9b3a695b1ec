"""``gsd stop``: asks the active run to stop, from any terminal."""

from __future__ import annotations

import getpass

import click

from gsd_core.views.status import SCHEMA_VERSION

from .commands import with_global_options
from .global_options import global_options, global_options_of
from .help import Command
from .output import json_flag, print_json, print_line


@click.command("stop", cls=Command)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Ask the active run to stop.

    It finishes what it is writing and then ends; continue it later with 'gsd resume'.
    """
    from gsd_core.journal.inbox import put

    from .caller import refuse_agents
    from .project import holder_of, journal_path, project_root

    options = global_options_of(ctx)
    root = project_root(options)
    holder = holder_of(root)
    refuse_agents("stop a run", run_pid=holder.pid if holder else None)
    if holder:
        # The key names this process, so asking twice is one request, and it cannot stop a later run.
        key = f"stop {holder.pid} {holder.host} {holder.since}"
        put(journal_path(root), "stop", {}, by=getpass.getuser(), key=key)
    if as_json:
        pid = holder.pid if holder else None
        print_json({"schema_version": SCHEMA_VERSION, "asked": holder is not None, "pid": pid})
    elif holder:
        hint = with_global_options("follow it with: gsd log --follow", options)
        print_line(f"asked the active run (pid {holder.pid} on {holder.host}) to stop; {hint}")
    else:
        print_line("no active run in this project")
