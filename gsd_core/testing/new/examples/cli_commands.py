"""A subcommand: `gsd my-plugin` prints how many plans of each phase are done.

Every subcommand gets `-C` and `--json`; `settings_of(CommandOptions)` has their values.
Plugins are only asked for commands when the subcommand is not built in.
No two plugins may contribute the same name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import click
from gsd_core import CommandOptions, PhaseView, implements, safe_text, settings_of
from gsd_core.hookspecs import gsd_cli_commands
from gsd_core.planning.survey import read_planning


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Add ``gsd my-plugin``."""
    yield tally


@click.command("my-plugin")
def tally() -> None:
    """Print how many plans of each phase are done."""
    options = settings_of(CommandOptions)
    phases = read_planning(options.project).phases
    if options.as_json:
        rows = [{"phase": phase.number, "done": _done(phase), "plans": len(phase.plans)} for phase in phases]
        click.echo(json.dumps({"phases": rows}))
        return
    for phase in phases:
        # A name is text of the project: it may contain escape sequences.
        click.echo(f"{phase.number} {safe_text(phase.name)}: {_done(phase)} of {len(phase.plans)}")
    if not phases:
        click.echo("no phases")


def _done(phase: PhaseView) -> int:
    # A plan has a summary once it has been executed.
    return sum(bool(plan.summary) for plan in phase.plans)
