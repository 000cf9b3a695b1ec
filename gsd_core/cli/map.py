"""``gsd map``: describes the project's existing code in ``.planning/codebase/``."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .options import StartCommand
from .run import start, start_options

KIND = "survey"


@click.command("map", cls=StartCommand)
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Describe the existing code in .planning/codebase, and do nothing else.

    An existing description is replaced. Later plans, executions and verifications get what it says about
    tests, conventions and modules.
    """
    from gsd_core.model.ids import StepId

    from .project import load, project_root

    options = global_options_of(ctx)
    project_root(options)
    done = [
        record for record in load(options).state.of(KIND, "") if record.status in ("completed", "skipped")
    ]
    number = max((record.id.round + 1 for record in done), default=0)
    start(ctx, None, resume=False, given=given, asked={str(StepId(kind=KIND, round=number)): ""})
