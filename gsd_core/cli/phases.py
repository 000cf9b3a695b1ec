"""``gsd phases``: what a project's roadmap says, and how far each phase is on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich_click import RichCommand

from gsd_core.sanitize import one_line

from .global_options import global_options, global_options_of
from .output import Column, json_flag, print_json, print_line, print_table

if TYPE_CHECKING:
    from gsd_core.planning.survey import Survey, Surveyed

COLUMNS: tuple[Column, ...] = ("phase", "name", "depends on", "plans", "status", "milestone")
STYLES = {"complete": "green", "partial": "cyan", "planned": "cyan", "no_directory": "dim", "empty": "dim"}


@click.command("phases", cls=RichCommand)
@global_options
@click.option("--all", "every", is_flag=True, help="the phases of every milestone, shipped ones too")
@json_flag
@click.pass_context
def command(ctx: click.Context, every: bool, as_json: bool) -> None:
    """List the phases of the milestone in progress; of the last one, when none is.

    A check mark is the roadmap's word, the status is what lies in the phase's folder.
    """
    from gsd_core.planning.survey import survey
    from gsd_core.views.planning import phases_json

    from .project import project_root

    found = survey(project_root(global_options_of(ctx)))
    phases = found.phases(every=every)
    if as_json:
        print_json(phases_json(found, phases))
        return
    _show(found, phases, every=every)


def _show(found: Survey, phases: tuple[Surveyed, ...], *, every: bool) -> None:
    for milestone in found.milestones:
        if every or milestone.version == found.current:
            state = "shipped" if milestone.shipped else "in progress" if milestone.running else "planned"
            print_line(f"{milestone.version} {one_line(milestone.name, 80)} ({state})".replace("  ", " "))
    if not phases:
        print_line("no phases; a roadmap names them in .planning/ROADMAP.md")
        return
    print_table(COLUMNS, [_row(phase) for phase in phases], STYLES)


def _row(phase: Surveyed) -> tuple[str, ...]:
    return (
        f"{'✓' if phase.complete else ' '} {phase.number}",
        one_line(phase.name, 60),
        ", ".join(phase.depends_on),
        f"{phase.summaries}/{phase.plans}" if phase.plans else "",
        phase.status,
        phase.milestone,
    )
