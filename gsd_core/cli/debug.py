"""``gsd debug``: investigates a problem, and nothing else."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command("debug", cls=StepCommand, epilog=examples("gsd debug 'the list is empty after a restart'"))
@click.argument("text")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, text: str, **given: Any) -> None:
    """Find the root cause of the problem that TEXT describes, and change nothing.

    The result is a file in .planning/debug/, with symptoms, evidence, root cause and a suggested fix.
    """
    from .single_steps import debug_step

    asked = debug_step(global_options_of(ctx), text)
    start(ctx, None, resume=False, given=given, asked=asked)
