"""``gsd discuss``: discusses one phase, and nothing else."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command(
    "discuss", cls=StepCommand, epilog=examples("gsd discuss 2", "gsd discuss 2 'use SQLite, and no ORM'")
)
@click.argument("phase")
@click.argument("text", required=False, default="")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, phase: str, text: str, **given: Any) -> None:
    """Ask what is open about PHASE, and record the decisions.

    TEXT says what you want to discuss. Decisions are added to those that the phase's CONTEXT.md has.
    """
    from .single_steps import discuss_step

    asked = discuss_step(global_options_of(ctx), phase, text)
    start(ctx, None, resume=False, given=given, asked=asked)
