"""The subcommands that plugins contribute: in ``gsd --help``, and with the options that all commands have."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial, wraps
from importlib.metadata import entry_points
from typing import Any

import attrs
import click

from gsd_core.errors import GsdError
from gsd_core.hookspecs import CommandOptions, gsd_cli_commands
from gsd_core.own_process import ProcessEnd, printing_output
from gsd_core.plugins.discovery import ENTRY_POINT_GROUP, discover
from gsd_core.plugins.importing import source_names
from gsd_core.sanitize import one_line, safe_text

from .background import session_hosts
from .global_options import GlobalOptions, global_options, global_options_of
from .help import HelpContext
from .plugin_loading import Loaded, bound_settings, choose_plugins, load_plugins

AS_JSON = "gsd.as_json"
"""The key in a click context's ``meta`` for ``--json`` of a plugin's command."""


def plugin_commands(loaded: Loaded) -> Mapping[str, click.Command]:
    """Return the subcommands that plugins contribute, by name."""
    return {command.name or "": command for _, command in contributed_commands(loaded)}


def contributed_commands(loaded: Loaded) -> tuple[tuple[str, click.Command], ...]:
    """Return the subcommands that plugins contribute, each with its plugin's name."""
    return loaded.hooks.collect(gsd_cli_commands, lambda command: command.name or "").items


def summaries(options: GlobalOptions) -> dict[str, str]:
    """Return the first sentences of plugins' subcommands, by name, for ``gsd --help``.

    Only plugins whose source names the hook are imported: the help has to be quick, and work if one of them
    is broken. The project's own plugins are not imported.
    """
    choice = attrs.evolve(choose_plugins(options), project=None, strict=False)
    try:
        found = discover(choice, entry_points(group=ENTRY_POINT_GROUP))
        wanted = {one.name for one in found if one.source != "default" and source_names(one, _HOOK)}
        if not wanted:
            return {}
        blocked = [f"no:{one.name}" for one in found if one.name not in wanted]
        chosen = attrs.evolve(choice, named=(*choice.named, *blocked))
        commands = plugin_commands(load_plugins(chosen, frozenset()))
    except (GsdError, OSError):
        return {}  # the command that is typed next says what is wrong
    return {
        one_line(name, 40): one_line(command.get_short_help_str(limit=80), 80)
        for name, command in sorted(commands.items())
        if not command.hidden
    }


_HOOK = gsd_cli_commands.__name__.encode()


def with_common_options(command: click.Command, loaded: Loaded) -> click.Command:
    """Return a copy of *command* that takes ``-C``, ``-p``, ``--plugins-dir`` and ``--json``.

    An option that the command has already stays its own. Subcommands get them too.
    """
    found = copy.copy(command)
    if found.context_class is click.Context:
        found.context_class = HelpContext
    taken = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    found.params = [*command.params, *(one for one in _common() if taken.isdisjoint(one.opts))]
    if isinstance(found, click.Group) and isinstance(command, click.Group):
        found.commands = {
            name: with_common_options(inner, loaded) for name, inner in command.commands.items()
        }
    if command.callback is not None:
        found.callback = _with_settings(command.callback, loaded)
    return found


def _with_settings(callback: Callable[..., Any], loaded: Loaded) -> Callable[..., Any]:
    @wraps(callback)
    def run(*args: Any, **kwargs: Any) -> Any:
        ctx = click.get_current_context()
        given = global_options_of(ctx)
        options = CommandOptions(
            project=given.directory.resolve(),
            as_json=bool(ctx.meta.get(AS_JSON)),
            plugin_options=given.plugin_options,
            session_hosts=partial(session_hosts, loaded),
        )
        # What the command prints is its output; only what others print is diverted.
        with bound_settings(loaded, options), printing_output():
            try:
                return callback(*args, **kwargs)
            except SystemExit as end:
                if isinstance(end, ProcessEnd):
                    raise
                if isinstance(end.code, str):
                    click.echo(safe_text(end.code), err=True)
                code = end.code if isinstance(end.code, int) else int(bool(end.code))
                raise click.exceptions.Exit(code) from end

    return run


def _common() -> list[click.Parameter]:
    def keep(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[AS_JSON] = True

    @click.command("common")
    @global_options
    @click.option("--json", is_flag=True, expose_value=False, callback=keep, help="print JSON instead")
    def common() -> None:
        """Have the options."""

    return common.params
