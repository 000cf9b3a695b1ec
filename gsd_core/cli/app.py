"""The ``gsd`` command: finds the subcommand, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import click

from gsd_core import __version__

from .commands import COMMAND_GROUPS, COMMANDS, OTHER_NAMES, PLUGIN_COMMANDS
from .global_options import GlobalOptions, global_options, global_options_of
from .help import CONTEXT_SETTINGS, Group
from .streams import finish_output, is_at_terminal


class Gsd(Group):
    """A group that imports a subcommand when it is used, and asks plugins for one that is not built in."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the built-in subcommands; listing those of plugins would import all plugins."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand *cmd_name*, built in or contributed by a plugin."""
        if cmd_name in COMMANDS:
            entry = COMMANDS[cmd_name]
            module = importlib.import_module(f".{entry.module}", __package__)
            command: click.Command = getattr(module, entry.name)
            return command
        from difflib import get_close_matches

        from .plugin_commands import plugin_commands, with_common_options
        from .plugin_loading import bound_settings, loaded_plugins

        # What plugins print while they are loaded must not be in the command's output.
        with redirect_stdout(sys.stderr):
            loaded = loaded_plugins(ctx)
            contributed = plugin_commands(loaded)
            if cmd_name in contributed:
                ctx.with_resource(bound_settings(loaded))
                return with_common_options(contributed[cmd_name], loaded)
        meant = OTHER_NAMES.get(cmd_name)
        close = [meant] if meant else get_close_matches(cmd_name, [*COMMANDS, *contributed], 1)
        hint = f"; did you mean 'gsd {close[0]}'?" if close else ""
        raise click.UsageError(f"no command {cmd_name!r}{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the built-in subcommands by group, without importing them, then those of plugins, if any."""
        # One width for all groups, so that the summaries are in one column.
        width = max(map(len, COMMANDS))
        for heading, entries in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in entries.items()])
        with formatter.section("Sessions"):
            formatter.write_dl([(name.ljust(width), text) for name, text in PLUGIN_COMMANDS.items()])
        from importlib.metadata import entry_points  # takes as long to import as click

        options = global_options_of(ctx)
        if entry_points(group="gsd") or options.plugins or options.plugin_dirs:
            from .plugin_commands import summaries

            if found := summaries(options):
                with formatter.section("From plugins"):
                    formatter.write_dl([(name.ljust(width), text) for name, text in found.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click's main() would exit with 1, but a reader that closes the pipe is not an error.
            from .failures import report_failure

            return report_failure(error)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, report an error if there is one, and exit with its code."""
        logging.getLogger("gsd_core").addHandler(logging.NullHandler())
        run: Callable[..., Any] = super().main
        if not kwargs.pop("standalone_mode", True):
            return run(*args, standalone_mode=False, **kwargs)
        given: Sequence[str] | None = args[0] if args else kwargs.get("args")
        options = GlobalOptions(arguments=tuple(sys.argv[1:] if given is None else given))
        try:
            code = run(*args, standalone_mode=False, obj=options, **kwargs)
        except BaseException as error:
            from .failures import report_failure, wants_json

            given = [*args[0]] if args else [*(kwargs.get("args") or sys.argv[1:])]
            code = report_failure(error, options, as_json=wants_json(given))
        sys.exit(finish_output(code if isinstance(code, int) else 0))


@click.group(
    cls=Gsd,
    context_settings=CONTEXT_SETTINGS,
    epilog="Run 'gsd COMMAND --help' for details on a command.",
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.version_option(
    __version__,
    "-V",
    "--version",
    prog_name="gsd",
    message="%(prog)s %(version)s",
    help="show the version and exit",
)
@global_options
@click.pass_context
def gsd(ctx: click.Context) -> None:
    """Turn an idea document into verified, committed software, phase by phase."""
    if ctx.invoked_subcommand is not None:
        return
    if not is_at_terminal():
        raise click.exceptions.NoArgsIsHelpError(ctx)
    from .guide import lead_on

    lead_on(ctx)
