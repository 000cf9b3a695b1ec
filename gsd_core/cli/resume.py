"""``gsd resume``: go on with the run that is under way."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options
from .options import StartCommand
from .run import begin, start_options


@click.command("resume", cls=StartCommand)
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Go on with the run under way, by the same agent and in the same range unless said otherwise."""
    begin(ctx, None, resume=True, given=given)
