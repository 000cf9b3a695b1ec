"""``gsd stop``: asks the active run, or a session, to stop, from any terminal."""

from __future__ import annotations

import getpass
import shlex

import click

from gsd_core.sanitize import safe_text

from .commands import with_global_options
from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line


@gsd_command("stop", "gsd stop", "gsd stop s3", last=json_flag)
@click.argument("session", required=False)
def command(ctx: click.Context, session: str | None, as_json: bool) -> None:
    """Ask the active run to stop, or SESSION, wherever its project is.

    It finishes what it is writing and then ends; continue it later with 'gsd resume'. A session that waits in
    the queue does not start. See 'gsd ps' for the sessions.
    """
    # An empty name is a mistake of a script, and not the run of this folder.
    if session is not None:
        _stop_session(ctx, session, as_json=as_json)
        return
    from gsd_core.journal.inbox import put

    from .project import journal_path, project_root, refuse_agents_at

    options = global_options_of(ctx)
    root = project_root(options)
    holder = refuse_agents_at(root, "stop a run")
    if holder:
        # The key names this process, so asking twice is one request, and it cannot stop a later run.
        key = f"stop {holder.pid} {holder.host} {holder.since}"
        put(journal_path(root), "stop", {}, by=getpass.getuser(), key=key)
    if as_json:
        print_json({"asked": holder is not None, "pid": holder.pid if holder else None})
    elif holder:
        hint = with_global_options("follow it with: gsd log --follow", options)
        print_line(f"asked the active run (pid {holder.pid} on {holder.host}) to stop; {hint}")
    else:
        print_line("no active run in this project")


def _stop_session(ctx: click.Context, name: str, *, as_json: bool) -> None:
    from gsd_core.processes import refuse_agents

    from .background import BUILT_IN_HOST, stop_session
    from .plugin_loading import loaded_plugins

    refuse_agents("stop a session")
    plugin, session = stop_session(loaded_plugins(ctx), name)
    if as_json:
        print_json({"session": session.as_json()})
        return
    project = safe_text(session.project.name, multiline=False)
    if session.state == "idle":
        print_line(f"session {session.id} of {project} has not started and will not")
        return
    # The host of another plugin has its own output, which gsd logs does not know.
    watch = f"see how far it is with: gsd -C {shlex.quote(str(session.project))} status"
    if plugin == BUILT_IN_HOST:
        watch = f"watch it with: gsd logs -f {session.id}"
    print_line(f"asked session {session.id} of {project} to stop; {watch}")
