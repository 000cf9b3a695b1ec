"""A subcommand: `gsd my-plugin` prints how many plans of each phase are done.

Plugins are only asked for commands when the subcommand is not built in.
No two plugins may contribute the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from gsd_core import PhaseView, implements
from gsd_core.hookspecs import gsd_cli_commands
from gsd_core.planning.survey import read_planning


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Add ``gsd my-plugin``."""
    yield tally


@click.command("my-plugin")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
def tally(folder: Path) -> None:
    """Print how many plans of each phase are done, for the project in FOLDER."""
    planning = read_planning(folder)
    if not planning.phases:
        click.echo("no phases")
    for phase in planning.phases:
        click.echo(_line(phase))


def _line(phase: PhaseView) -> str:
    # A plan has a summary once it has been executed.
    done = sum(bool(plan.summary) for plan in phase.plans)
    return f"{phase.number} {phase.name}: {done} of {len(phase.plans)}"
