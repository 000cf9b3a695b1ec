"""``gsd execute``: executes the plans of one phase, and nothing else."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command("execute", cls=StepCommand, epilog=examples("gsd execute 2", "gsd execute 2 --dry-run"))
@click.argument("phase")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, phase: str, **given: Any) -> None:
    """Execute the plans of PHASE that have no summary, and do nothing else.

    The phase is not verified. An unfinished run stays where it is; 'gsd resume' continues it.
    """
    from .single_steps import NotYet, execute_steps

    not_yet: NotYet | None = None
    try:
        asked = execute_steps(global_options_of(ctx), phase)
    except NotYet as error:
        if not given["bg"] or given["dry_run"]:
            raise
        asked, not_yet = dict(error.steps), error
    start(ctx, None, resume=False, given=given, asked=asked, not_yet=not_yet)
