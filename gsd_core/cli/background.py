"""Sessions: ``--bg`` starts a run as one, and ``gsd stop SESSION`` stops one.

Where sessions run is a plugin's business (``gsd_session_host``).
"""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gsd_core.errors import ConfigError, GsdError, PluginError, UserError
from gsd_core.hookspecs import gsd_session_host
from gsd_core.model.session import Session, SessionHost, SessionRequest
from gsd_core.processes import refuse_agents
from gsd_core.settings import RunSettings, settings_of

from .commands import with_global_options
from .global_options import global_options_of
from .output import print_json, print_line
from .plugin_loading import Loaded, bound_settings, loaded_plugins

if TYPE_CHECKING:
    from gsd_core.plugins.calling import Hooks

    from .launch import RunOptions
    from .project import ProjectState

FLAG = "--bg"
BUILT_IN_HOST = "sessions"
"""The plugin whose sessions have a terminal to attach to, and output that ``gsd logs`` shows."""


def start_session(options: RunOptions, hooks: Hooks) -> int:
    """Start the command that was typed as a session, without ``--bg``, and say how to reach it."""
    refuse_agents("start a session")
    plugin, host = _pick_host(hooks)
    typed, not_yet = options.global_options.arguments, options.not_yet
    # After ``--`` it is a word like any other.
    end = typed.index("--") if "--" in typed else len(typed)
    arguments = (*(word for word in typed[:end] if word != FLAG), *typed[end:])
    if not arguments:
        raise UserError("there is no command to run as a session")
    session = host.start(
        SessionRequest(
            arguments=arguments,
            folder=Path.cwd(),
            project=options.root,
            not_yet=str(not_yet) if not_yet else "",
            hint=not_yet.hint if not_yet else "",
        )
    )
    if options.output != "text":
        print_json({"session": session.as_json()})
        return 0
    state = f"slot {session.slot}" if session.slot else session.reason or "queued"
    print_line(f"started session {session.id} ({state})")
    stop = f"stop it with: gsd stop {session.id}"
    if plugin == BUILT_IN_HOST:
        print_line(f"watch it with: gsd attach {session.id}; {stop}; all: gsd ps")
    else:
        status = f"gsd -C {shlex.quote(str(session.project))} status"
        print_line(f"run by the plugin {plugin}; see how far it is with: {status}; {stop}")
    return 0


def _pick_host(hooks: Hooks) -> tuple[str, SessionHost]:
    names = settings_of(RunSettings).session_host
    outcome = asyncio.run(hooks.pick(gsd_session_host, names, object))
    if outcome is None or outcome.value is None:
        listed = ", ".join(names) or "none listed"
        raise ConfigError(f"no plugin runs sessions ({listed})", hint="see the setting run.session_host")
    if not isinstance(outcome.value, SessionHost):
        what = f"returned {outcome.value!r:.200}, which is not a session host"
        raise PluginError(outcome.plugin, "gsd_session_host", what)
    return outcome.plugin, outcome.value


def session_hosts(loaded: Loaded) -> dict[str, SessionHost]:
    """Return the hosts that the setting ``run.session_host`` lists, and the built-in one, by plugin.

    The first one gets new sessions; the others may have some that were started when the setting was another.
    The settings have to be bound.
    """
    found: dict[str, SessionHost] = {}
    for name in dict.fromkeys((*settings_of(RunSettings).session_host, BUILT_IN_HOST)):
        outcome = asyncio.run(loaded.hooks.pick(gsd_session_host, (name,), object))
        if outcome is not None and isinstance(outcome.value, SessionHost):
            found[name] = outcome.value
    return found


def stop_session(loaded: Loaded, session: str) -> tuple[str, Session]:
    """Ask *session* to stop; return the name of the plugin that runs it, too."""
    with bound_settings(loaded):
        for plugin, host in session_hosts(loaded).items():
            if any(one.id == session for one in host.list()):
                return plugin, host.stop(session)
        # A host need not list its sessions, and may know other names for them, such as `3` for `s3`.
        plugin, host = _pick_host(loaded.hooks)
        return plugin, host.stop(session)


def sessions_of(ctx: click.Context, root: Path) -> list[Session]:
    """Return the sessions of the project at *root*; none if they cannot be read."""
    with suppress(GsdError, OSError):
        loaded = loaded_plugins(ctx)
        with bound_settings(loaded):
            found = [one for host in session_hosts(loaded).values() for one in host.list()]
        return [one for one in found if one.project == root]
    return []


def after_answer(ctx: click.Context, project: ProjectState) -> str:
    """Return what happens with an answer that is stored: who uses it, or which command continues the run."""
    if project.holder:
        return f"the active run (pid {project.holder.pid}) will use it"
    for one in sessions_of(ctx, project.root):
        if not one.has_ended:
            return f"session {one.id} continues by itself once all its questions are answered"
    return with_global_options("continue the run with: gsd resume", global_options_of(ctx))
