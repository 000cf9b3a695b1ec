"""``gsd quick``: one small task outside of the roadmap, as one recorded step."""

from __future__ import annotations

from typing import Any

import click

from .global_options import global_options, global_options_of
from .help import examples
from .options import StepCommand
from .run import start, start_options


@click.command(
    "quick",
    cls=StepCommand,
    epilog=examples("gsd quick 'add a --version option'", "gsd quick --full 'add a --version option'"),
)
@click.argument("text", nargs=-1, required=True)
@click.option("--full", is_flag=True, help="verify the result, as that of a phase")
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, text: tuple[str, ...], full: bool, **given: Any) -> None:
    """Do a small task outside of the roadmap: plan it, execute it, commit it.

    Its files are in .planning/quick. An unfinished run stays where it is. After a crash or an answered
    question, the same command continues.
    """
    from .single_steps import quick_step

    asked = quick_step(global_options_of(ctx), " ".join(text), full=full)
    start(ctx, None, resume=False, given=given, asked=asked)
