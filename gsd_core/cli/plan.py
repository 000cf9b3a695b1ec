"""``gsd plan``: plans one phase, and nothing else."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command(
    "plan",
    cls=StepCommand,
    epilog=examples(
        "gsd plan 2", "# Plan how to close the gaps that the verification found.", "gsd plan 2 --gaps"
    ),
)
@click.argument("phase")
@click.option("--gaps", is_flag=True, help="plan how to close the gaps of the phase's last verification")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, phase: str, gaps: bool, **given: Any) -> None:
    """Plan PHASE, and do nothing else.

    An unfinished run stays where it is; 'gsd resume' continues it with these plans.
    """
    from .single_steps import plan_steps

    asked = plan_steps(global_options_of(ctx), phase, gaps=gaps)
    start(ctx, None, resume=False, given=given, asked=asked)
