"""The command ``gsd`` itself: finds the subcommand, and tells what went wrong."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import click
from rich_click import RichGroup, RichHelpConfiguration, rich_config

from gsd_core import __version__

from .failures import tell_failure
from .global_options import global_options, global_options_of

COMMANDS: Mapping[str, str] = {
    "run": "run",
    "resume": "resume",
    "status": "status",
    "log": "log",
    "questions": "questions",
    "answer": "answer",
    "stop": "stop",
    "phases": "phases",
    "plans": "plans",
    "gaps": "gaps",
    "requirements": "requirements",
    "health": "health",
    "plugins": "plugins",
}
"""Each verb, and the module here that holds it as ``command``; in the order of ``--help``."""

HELP = RichHelpConfiguration(text_markup=None, show_arguments=True, max_width=100)


class Gsd(RichGroup):
    """A group that imports a command when it is needed, and asks plugins for unknown ones."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return our own verbs; those of plugins are not searched for a help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, ours or a plugin's."""
        if cmd_name in COMMANDS:
            return _ours(cmd_name)
        return _from_plugins(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; whoever reads our output may go away when he has seen enough."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            return tell_failure(error)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, tell what went wrong in three lines, and exit with the code for it."""
        logging.getLogger("gsd_core").addHandler(logging.NullHandler())
        alone: bool = kwargs.pop("standalone_mode", True)
        run: Callable[..., Any] = super().main
        if not alone:
            return run(*args, standalone_mode=False, **kwargs)
        try:
            code = run(*args, standalone_mode=False, **kwargs)
        except BaseException as error:
            code = tell_failure(error)
        sys.exit(code if isinstance(code, int) else 0)


def _ours(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f".{COMMANDS[name]}", __package__).command
    return command


def _from_plugins(ctx: click.Context, name: str) -> click.Command | None:
    from .plugin_loading import load_installed, plugin_commands

    found = plugin_commands(load_installed(global_options_of(ctx)))
    if name in found:
        return found[name]
    close = get_close_matches(name, [*COMMANDS, *found], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise click.UsageError(f"no command {name!r}{hint}", ctx)


@click.group(
    cls=Gsd, context_settings={"help_option_names": ["-h", "--help"]}, epilog="gsd COMMAND --help says more."
)
@click.version_option(__version__, "-V", "--version", prog_name="gsd", message="%(prog)s %(version)s")
@rich_config(help_config=HELP)
@global_options
def gsd() -> None:
    """From an idea document to verified, committed software, phase by phase."""
