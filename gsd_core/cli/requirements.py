"""``gsd requirements``: lists the requirements with their phase and status."""

from __future__ import annotations

import click

from gsd_core.sanitize import one_line

from .global_options import global_options, global_options_of
from .help import Command
from .output import json_flag, print_json, print_line, print_table

COLUMNS = ("requirement", "text", "category", "version", "phase", "status")
STYLES = {"Complete": "green", "In Progress": "cyan", "Blocked": "red", "Pending": "dim"}
MAX_TEXT = 300


@click.command("requirements", cls=Command)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the requirements with their phase and status.

    They are read from REQUIREMENTS.md; phase and status are those of its traceability table.
    """
    from gsd_core.planning.requirements import read_requirements
    from gsd_core.views.planning import requirements_json

    from .project import project_root

    found = read_requirements(project_root(global_options_of(ctx)))
    if as_json:
        print_json(requirements_json(found))
    elif not found:
        print_line("no requirements in .planning/REQUIREMENTS.md")
    else:
        rows = [(r.id, one_line(r.text, MAX_TEXT), r.category, r.version, r.phase, r.status) for r in found]
        print_table(COLUMNS, rows, STYLES)
