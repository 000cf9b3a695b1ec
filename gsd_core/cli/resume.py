"""``gsd resume``: continues the unfinished run."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options_of, gsd_command
from .options import StartCommand
from .output import warn
from .run import start, start_options


@gsd_command(
    "resume",
    "gsd resume",
    "gsd resume --max-budget-usd 40",
    "gsd resume -C my-app --dry-run",
    last=start_options,
    cls=StartCommand,
)
def command(ctx: click.Context, /, **given: Any) -> None:
    """Resume the unfinished run.

    It keeps its agent, its phases and its other options, unless you pass new ones. A handoff of
    'gsd pause' or of GSD's pause-work is shown, and the next plan or execution gets it as context.
    """
    from .project import notes_of

    warn(notes_of(global_options_of(ctx)))
    start(ctx, given, resume=True)
