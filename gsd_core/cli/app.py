"""The ``gsd`` command: finds the subcommand, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import click

from gsd_core import __version__
from gsd_core.own_process import data_output, printing_output, stdout_reserved

from .commands import COMMAND_GROUPS, COMMANDS, OTHER_NAMES, PLUGIN_COMMANDS, place_of
from .global_options import GlobalOptions, global_options, global_options_of
from .help import CONTEXT_SETTINGS, Group
from .streams import finish_output, is_at_terminal, wants_json

VARIABLE = "_GSD_COMPLETE"
"""click answers a shell's request if this variable is set; its name follows from that of the program."""


class Gsd(Group):
    """A group that imports a subcommand when it is used, and asks plugins for one that is not built in."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the built-in subcommands; listing those of plugins would import all plugins."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand *cmd_name*, built in or contributed by a plugin."""
        if cmd_name in COMMANDS:
            module, name = place_of(cmd_name)
            command: click.Command = getattr(importlib.import_module(f".{module}", __package__), name)
            return command
        from contextlib import ExitStack
        from difflib import get_close_matches

        from .plugin_commands import plugin_commands, with_common_options
        from .plugin_loading import bound_settings, loaded_plugins

        # What plugins print while they are loaded must not be in the command's output.
        with ExitStack() as stack:
            stack.enter_context(stdout_reserved())
            loaded = loaded_plugins(ctx)
            contributed = plugin_commands(loaded)
            if found := contributed.get(cmd_name):
                ctx.with_resource(bound_settings(loaded))
                if getattr(found, "serves_stdout", False):
                    # It stays reserved: plugins may have threads, and a client reads it from the first byte.
                    ctx.with_resource(stack.pop_all())
                    ctx.with_resource(printing_output())
                return with_common_options(found, loaded)
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
                formatter.write_dl([(name.ljust(width), text) for name, text in entries.items()])
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

    def _main_shell_completion(
        self, ctx_args: MutableMapping[str, Any], prog_name: str, complete_var: str | None = None
    ) -> None:
        """Answer a shell; what plugins print while they are loaded is no part of the answer."""
        shell, _, instruction = os.environ.get(VARIABLE, "").partition("_")
        if instruction == "complete":
            from click.shell_completion import get_completion_class

            if kind := get_completion_class(shell):
                out = data_output(reserve=True)
                click.echo(kind(self, ctx_args, prog_name, VARIABLE).complete(), file=out)
                sys.exit(finish_output(0))
        super()._main_shell_completion(ctx_args, prog_name, complete_var)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, report an error if there is one, and exit with its code."""
        logging.getLogger("gsd_core").addHandler(logging.NullHandler())
        # What an earlier command in the same process has traced.
        logging.getLogger("gsd_core.plugins.trace").handlers.clear()
        logging.getLogger("gsd_core.plugins.trace").setLevel(logging.NOTSET)
        run: Callable[..., Any] = super().main
        if not kwargs.pop("standalone_mode", True):
            return run(*args, standalone_mode=False, **kwargs)
        found: Sequence[str] | None = args[0] if args else kwargs.get("args")
        given = tuple(sys.argv[1:] if found is None else found)
        options, as_json = GlobalOptions(arguments=given), wants_json(given)
        if as_json:
            data_output(reserve=True)
        try:
            code = run(*args, standalone_mode=False, obj=options, **kwargs)
        except BaseException as error:
            if isinstance(error, SystemExit) and VARIABLE in os.environ:
                raise  # click ends what a shell asks for in this way
            from .failures import report_failure

            code = report_failure(error, options, as_json=as_json)
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
