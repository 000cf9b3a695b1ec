"""``gsd resume``: continues the unfinished run."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options
from .options import StartCommand
from .run import start, start_options


@click.command("resume", cls=StartCommand)
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Resume the unfinished run.

    It keeps its agent, its phases and its other options, unless you pass new ones.
    """
    start(ctx, None, resume=True, given=given)
