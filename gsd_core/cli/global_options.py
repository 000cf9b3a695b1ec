"""The options that can be given before or after the subcommand: see :data:`_OPTIONS`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from .help import Command, examples

MAX_TRACE = 400
"""How many characters of a traced call are shown."""
F = TypeVar("F", bound=Callable[..., Any])


@attrs.define(kw_only=True)
class GlobalOptions:
    """The project and the plugins that the command line names, on both sides of the subcommand.

    *arguments* is the whole command line after ``gsd``.
    """

    arguments: tuple[str, ...] = ()
    directory: Path = attrs.field(factory=Path)
    directory_given: bool = False
    plugins: tuple[str, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()
    plain: bool = False

    @property
    def plugin_options(self) -> tuple[str, ...]:
        """The options that load the same plugins in another gsd, in whatever folder it is started."""
        names = (word for name in self.plugins for word in ("-p", name))
        folders = (word for path in self.plugin_dirs for word in ("--plugins-dir", str(path)))
        return (*names, *folders)


def global_options_of(ctx: click.Context) -> GlobalOptions:
    """Return the global options that have been parsed so far."""
    return ctx.find_root().ensure_object(GlobalOptions)


def global_options(command: F) -> F:
    """Add the global options to *command*."""
    return with_options(command, _OPTIONS)


def with_options(command: F, options: Sequence[Callable[[Any], Any]]) -> F:
    """Add *options* to *command*, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def _set_directory(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        options = global_options_of(ctx)
        options.directory, options.directory_given = value, True


def _add_plugins(ctx: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    # The hints repeat files and folders, and are followed from other folders too.
    for name in value:
        is_file = name.endswith(".py") and Path(name).is_file()
        global_options_of(ctx).plugins += (str(Path(name).absolute()) if is_file else name,)


def _add_plugin_dirs(ctx: click.Context, _: click.Parameter, value: tuple[Path, ...]) -> None:
    global_options_of(ctx).plugin_dirs += tuple(path.absolute() for path in value)


def _set_plain(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        global_options_of(ctx).plain = True
        _set_no_color(ctx, _, True)


def _set_no_color(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        # All output looks at this variable, that of the programs that gsd starts too.
        os.environ["NO_COLOR"] = "1"
        ctx.color = False


def _trace_hooks(_ctx: click.Context, _: click.Parameter, value: bool) -> None:
    log = logging.getLogger("gsd_core.plugins.trace")
    if value and not log.handlers:  # it may be given on both sides of the subcommand
        from .output import LabeledHandler  # imports rich

        log.addHandler(LabeledHandler("hook", MAX_TRACE))
        log.setLevel(logging.DEBUG)
        log.propagate = False


_option = partial(click.option, expose_value=False)
# Before the plugins are loaded, and before --help, which shows their commands.
_eager = partial(_option, is_eager=True)
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _eager(
        "-C",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        callback=_set_directory,
        help="project folder (default: the current folder)",
    ),
    _eager(
        "-p",
        "plugins",
        multiple=True,
        metavar="NAME",
        callback=_add_plugins,
        help="also load this plugin; no:NAME leaves one out (repeatable)",
    ),
    _eager(
        "--plugins-dir",
        "plugin_dirs",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        callback=_add_plugin_dirs,
        help="load the plugins in this folder (repeatable)",
    ),
    _eager(
        "--trace-hooks",
        is_flag=True,
        callback=_trace_hooks,
        help="show each call of a plugin's hook, its duration and its result on stderr",
    ),
    _option(
        "--no-color",
        is_flag=True,
        callback=_set_no_color,
        help="print without colors, as if NO_COLOR were set",
    ),
    _option(
        "--plain",
        is_flag=True,
        callback=_set_plain,
        help="print lines only: no colors, no live view, no menus",
    ),
)


def json_flag(command: F) -> F:
    """Add ``--json`` to a command that only reads."""
    return click.option("--json", "as_json", is_flag=True, help="print JSON instead")(command)


def gsd_command(
    name: str, *lines: str, last: Callable[[Any], Any] | None = None, cls: type[click.Command] = Command
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function that takes its context and its own parameters; *lines* are examples.

    It gets the global options before its own ones, and those of *last* after them, such as :func:`json_flag`.
    """

    def decorate(function: Any) -> click.Command:
        params: list[click.Parameter] = getattr(function, "__click_params__", [])
        function.__click_params__ = []
        command = last(function) if last else function
        command.__click_params__ += params
        epilog = examples(*lines) if lines else None
        return click.command(name, cls=cls, epilog=epilog)(global_options(click.pass_context(command)))

    return decorate
