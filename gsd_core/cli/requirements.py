"""``gsd requirements``: what has to be built, where, and how far it is."""

from __future__ import annotations

import click
from rich_click import RichCommand

from gsd_core.sanitize import one_line

from .global_options import global_options, global_options_of
from .output import Column, json_flag, print_json, print_line, print_table

COLUMNS: tuple[Column, ...] = ("requirement", "text", "category", "version", "phase", "status")
STYLES = {"Complete": "green", "In Progress": "cyan", "Blocked": "red", "Pending": "dim"}


@click.command("requirements", cls=RichCommand)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the requirements of REQUIREMENTS.md, with phase and status from its traceability table."""
    from gsd_core.planning.requirements import read_requirements
    from gsd_core.views.planning import requirements_json

    from .project import project_root

    found = read_requirements(project_root(global_options_of(ctx)))
    if as_json:
        print_json(requirements_json(found))
    elif not found:
        print_line("no requirements; .planning/REQUIREMENTS.md lists them")
    else:
        print_table(
            COLUMNS,
            [(r.id, one_line(r.text, 300), r.category, r.version, r.phase, r.status) for r in found],
            STYLES,
        )
