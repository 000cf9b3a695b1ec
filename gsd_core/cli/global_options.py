"""What may stand before or after the verb: ``-C DIR``, ``-p NAME``, ``--plugins-dir DIR``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import define, field

F = TypeVar("F", bound=Callable[..., Any])


@define(kw_only=True)
class GlobalOptions:
    """The project and the plugins that the command line names, from both sides of the verb."""

    directory: Path = field(factory=Path)
    plugins: tuple[str, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()


def global_options_of(ctx: click.Context) -> GlobalOptions:
    """Return what the command line has said so far."""
    return ctx.find_root().ensure_object(GlobalOptions)


def global_options(command: F) -> F:
    """Give *command* the options that may stand on either side of the verb."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _directory(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        global_options_of(ctx).directory = value


def _plugins(ctx: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    global_options_of(ctx).plugins += value


def _plugin_dirs(ctx: click.Context, _: click.Parameter, value: tuple[Path, ...]) -> None:
    global_options_of(ctx).plugin_dirs += value


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "-C",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        expose_value=False,
        callback=_directory,
        help="the project's folder instead of the current one",
    ),
    click.option(
        "-p",
        "plugins",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        callback=_plugins,
        help="use this plugin too; no:NAME leaves one out (repeatable)",
    ),
    click.option(
        "--plugins-dir",
        "plugin_dirs",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        expose_value=False,
        callback=_plugin_dirs,
        help="load the plugins of this folder (repeatable)",
    ),
)
