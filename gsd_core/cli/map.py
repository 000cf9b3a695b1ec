"""``gsd map``: describes the project's existing code in ``.planning/codebase/``."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command("map", cls=StepCommand, epilog=examples("gsd map"))
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Describe the existing code in .planning/codebase, and do nothing else.

    An existing description is replaced. Later plans, executions and verifications get what it says about
    tests, conventions and modules.
    """
    from .single_steps import survey_step

    start(ctx, None, resume=False, given=given, asked=survey_step(global_options_of(ctx)))
