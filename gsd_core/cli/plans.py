"""``gsd plans``: lists the plans of a phase."""

from __future__ import annotations

import click

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, print_table, warn

COLUMNS = ("plan", "wave", "depends on", "tasks", "requirements", "files", "summary")
STYLES = {"yes": "green"}


@gsd_command("plans", "gsd plans 2", last=json_flag)
@click.argument("phase")
def command(ctx: click.Context, phase: str, as_json: bool) -> None:
    """List the plans of PHASE.

    PHASE must match exactly: 1 is not 1.1. Waves are computed from the plans' dependencies; the wave in a
    plan's frontmatter is ignored.
    """
    from gsd_core.planning.survey import flaws, survey
    from gsd_core.planning.waves import plan_waves
    from gsd_core.views.planning import PLAN

    from .project import planned_root

    view = survey(planned_root(global_options_of(ctx))).view(phase)
    warn(flaws([view]))
    waves = plan_waves(view.plans)
    if as_json:
        print_json({"plans": [PLAN.dump(plan, wave=waves[plan.id]) for plan in view.plans]})
        return
    print_line(f"phase {view.number} {view.name}".rstrip())
    if not view.plans:
        print_line("no plans yet")
        return
    rows = [
        (
            plan.id + ("" if plan.autonomous else " (with checkpoints)"),
            str(waves[plan.id]),
            ", ".join(plan.depends_on),
            str(len(plan.tasks)),
            ", ".join(plan.requirements),
            str(len(plan.files_modified)),
            "yes" if plan.summary else "",
        )
        for plan in view.plans
    ]
    print_table(COLUMNS, rows, STYLES)
