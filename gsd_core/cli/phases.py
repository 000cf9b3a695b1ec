"""``gsd phases``: lists the phases of the roadmap and the state of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gsd_core.errors import PlanningError
from gsd_core.sanitize import one_line

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, print_table
from .workstream import choose_workstream, workstream_option

if TYPE_CHECKING:
    from gsd_core.planning.survey import Survey

COLUMNS = ("phase", "name", "depends on", "plans", "status", "milestone")
STYLES = {
    "complete": "green",
    "executed": "cyan",
    "partial": "cyan",
    "planned": "cyan",
    "not started": "dim",
    "empty": "dim",
}


@gsd_command("phases", "gsd phases", "gsd phases --all", last=json_flag)
@click.option(
    "--all", "every", is_flag=True, help="list the phases of every milestone, including shipped ones"
)
@workstream_option
def command(ctx: click.Context, every: bool, workstream: str, as_json: bool) -> None:
    """List the phases of the current milestone.

    If no milestone is in progress, it is the last one. A check mark means that ROADMAP.md marks the phase
    as complete; the status is derived from the files in the phase's folder.
    """
    from gsd_core.planning.survey import survey
    from gsd_core.views.planning import MILESTONE, PHASE

    from .project import planned_root

    root = planned_root(global_options_of(ctx))
    found = survey(root, choose_workstream(root, workstream)[1])
    phases = found.phases(every=every)
    if as_json:
        milestones = [*map(MILESTONE.dump, found.milestones)]
        print_json({"milestones": milestones, "phases": [*map(PHASE.dump, phases)]})
        return
    for milestone in found.milestones:
        if every or milestone.version == found.current:
            state = "shipped" if milestone.shipped else "in progress" if milestone.running else "planned"
            print_line(f"{milestone.version} {one_line(milestone.name, 80)} ({state})".replace("  ", " "))
    if phases:
        rows = [
            (
                f"{'✓' if phase.complete else ' '} {phase.number}",
                one_line(phase.name, 60),
                ", ".join(phase.depends_on),
                f"{phase.summaries}/{phase.plans}" if phase.plans else "",
                phase.shown_status,
                phase.milestone,
            )
            for phase in phases
        ]
        print_table(COLUMNS, rows, STYLES)
    else:
        print_line(_why_empty(found, every=every))


def _why_empty(found: Survey, *, every: bool) -> str:
    """Return why the list of phases is empty, and what to do about it."""
    from gsd_core.planning.markdown import read_text
    from gsd_core.planning.roadmap import PHASE_FORMS, check_names_phases, parse_roadmap
    from gsd_core.planning.workstreams import PLANNING, workstreams

    path = f"{found.base}/ROADMAP.md"
    if not (found.root / path).exists():
        names = workstreams(found.root) if found.base == PLANNING else ()
        known = ", ".join(names)
        others = f"; there are workstreams: {known} (choose one with --workstream)" if known else ""
        return f"no phases: {path} does not exist{others}"
    try:
        check_names_phases(parse_roadmap(read_text(found.root, path)))
    except PlanningError as error:
        return f"{error}; {error.hint}"
    if found.roadmap_phases and not every:
        return "no phases in the current milestone; list those of all milestones with --all"
    return f"no phases in {path}; name each phase like {PHASE_FORMS}"
