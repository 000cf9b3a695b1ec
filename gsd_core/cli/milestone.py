"""``gsd milestone``: audits the milestone in progress, or completes it, as a step of its own."""

from __future__ import annotations

from typing import Any

import click

from gsd_core.errors import ProjectError, UserError
from gsd_core.planning.model import Planning

from .global_options import GlobalOptions
from .help import Group, examples
from .run import start, step_command


@click.group(
    "milestone", cls=Group, epilog=examples("gsd milestone audit", "gsd milestone complete --no-tag")
)
def command() -> None:
    """Audit the milestone in progress, or complete it.

    Both are done by code: no agent is asked, and they cost nothing.
    """


@step_command("audit")
def audit(ctx: click.Context, /, **given: Any) -> None:
    """Write the audit of the milestone: requirements, phases and open items.

    It is .planning/vX.Y-MILESTONE-AUDIT.md. Exits with the code for gaps if a requirement is not met.
    """
    start(ctx, given, lambda options: {f"audit/{_planning(options).milestone}": "gsd milestone audit"})


@step_command("complete")
@click.option("--tag/--no-tag", default=None, help="tag the release (default: git.create_tag in config.json)")
def complete(ctx: click.Context, /, tag: bool | None, **given: Any) -> None:
    """Archive the milestone, whose phases are complete, and tag it.

    Its files move to .planning/milestones/, MILESTONES.md gets an entry, and ROADMAP.md and PROJECT.md say
    what shipped. Start the next one with: gsd run IDEA
    """
    from .project import load

    words = {None: "gsd milestone complete", True: "with a tag", False: "without a tag"}[tag]

    def asked(options: GlobalOptions) -> dict[str, str]:
        planning = _planning(options, idle=True)
        if left := [phase.number for phase in planning.phases if not phase.ticked]:
            which = f"phase {left[0]} is" if len(left) == 1 else f"phases {', '.join(left)} are"
            message = f"{planning.milestone} cannot be completed: {which} not complete"
            raise UserError(message, hint="see what is due with: gsd next")
        if planning.phases:
            return {f"close/{planning.milestone}": words}
        steps = load(options).state.steps.values()
        if any(one.id.kind == "close" and one.status not in ("completed", "skipped") for one in steps):
            interrupted = "the completion of the milestone was interrupted"
            raise ProjectError(interrupted, hint="finish it with: gsd resume")
        return {}

    # Not the words: `gsd next` names the command without them.
    start(ctx, given, asked)


for subcommand in (audit, complete):
    command.add_command(subcommand)


def _planning(options: GlobalOptions, *, idle: bool = False) -> Planning:
    """Return the planning files; raise ``ProjectError`` if no milestone is in progress.

    With *idle*, it may also be complete already.
    """
    from gsd_core.planning.survey import read_planning

    from .project import planned_root

    planning = read_planning(planned_root(options))
    if not planning.phases and not (idle and planning.idle):
        why = planning.idle or "the project has no phases"
        raise ProjectError(f"no milestone to audit or complete: {why}", hint="start one with: gsd run IDEA")
    return planning
