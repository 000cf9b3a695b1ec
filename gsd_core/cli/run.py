"""``gsd run``: from an idea to verified, committed code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .global_options import global_options, global_options_of
from .options import LOADED, StartCommand, classes_of, typed

IDEA = click.Path(path_type=Path, allow_dash=True)
OUTPUTS = click.Choice(["text", "json", "stream-json"])


def start_options(command: Any) -> Any:
    """Give a command that starts a run the options that are no settings."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--no-input", is_flag=True, help="never ask at this terminal"),
    click.option(
        "--dry-run", is_flag=True, help="say what would be done first, and with what; write nothing"
    ),
    click.option("--seed", type=int, default=None, metavar="N", help="make an agent that has one repeatable"),
    click.option("--output-format", type=OUTPUTS, default="text", help="what stdout gets (default: text)"),
    click.option("-v", "--verbose", count=True, help="show more (repeatable)"),
    click.option("-q", "--quiet", is_flag=True, help="show questions, errors and the end only"),
)


@click.command("run", cls=StartCommand)
@click.argument("idea", required=False, type=IDEA)
@global_options
@start_options
@click.pass_context
def command(ctx: click.Context, /, idea: Path | None, **given: Any) -> None:
    """Take IDEA, a text file or - for stdin, to verified, committed code; go on if it is under way.

    IDEA is needed only where the project has no roadmap yet.
    """
    begin(ctx, idea, resume=False, given=given)


def begin(ctx: click.Context, idea: Path | None, *, resume: bool, given: dict[str, Any]) -> None:
    """Start or resume a run with what was typed; exits with the run's code."""
    from .launch import RunOptions, execute_run

    ctx.exit(
        execute_run(
            RunOptions(
                where=global_options_of(ctx),
                flags=typed(ctx, classes_of(ctx.meta[LOADED])),
                idea=idea,
                resume=resume,
                no_input=given["no_input"],
                output=given["output_format"],
                verbosity=-1 if given["quiet"] else given["verbose"],
                seed=given["seed"],
                dry=given["dry_run"],
            )
        )
    )
