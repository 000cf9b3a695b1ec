"""``gsd verify``: verifies one phase again, and nothing else."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command(
    "verify", cls=StepCommand, epilog=examples("gsd verify 2", "gsd verify 2 --output-format json")
)
@click.argument("phase")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, phase: str, **given: Any) -> None:
    """Verify PHASE again, and do nothing else.

    What a person checked before and passed is not asked again. An unfinished run stays where it is.
    """
    from .single_steps import NotYet, verify_step

    not_yet: NotYet | None = None
    try:
        asked = verify_step(global_options_of(ctx), phase)
    except NotYet as error:
        if not given["bg"] or given["dry_run"]:
            raise
        asked, not_yet = dict(error.steps), error
    start(ctx, None, resume=False, given=given, asked=asked, not_yet=not_yet)
