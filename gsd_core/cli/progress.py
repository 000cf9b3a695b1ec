"""``gsd progress``: shows where the project stands, in GSD's terms."""

from __future__ import annotations

import asyncio

import click

from gsd_core.sanitize import one_line

from .commands import base_command
from .global_options import global_options_of, gsd_command
from .next import find_next, next_lines
from .output import counted, json_flag, print_json, print_line, styled, warn
from .workstream import choose_workstream, workstream_option

SHOWN = 5


@gsd_command("progress", "gsd progress", last=json_flag)
@workstream_option
def command(ctx: click.Context, workstream: str, as_json: bool) -> None:
    """Show where the project stands: phases, recent work, decisions, blockers, todos, what is next.

    It is read from .planning, so it works without any run; 'gsd status' shows a run.
    """
    from gsd_core.git import Git
    from gsd_core.planning.survey import survey
    from gsd_core.planning.todos import pending_todos
    from gsd_core.views.progress import PROGRESS, progress_of

    from .project import load, notes_of, planned_root

    options = global_options_of(ctx)
    project = load(options)
    root = planned_root(options, run=project.state.run)
    name, folder = choose_workstream(root, workstream)
    warn(notes_of(options, name))
    planning, due = find_next(ctx, project, base_command(options), name)
    order = asyncio.run(Git(root).order(f"{folder}/phases")) if planning.phases else {}
    found = progress_of(survey(root, folder), planning, order, pending_todos(root), due)
    if as_json:
        print_json(PROGRESS.dump(found))
        return
    milestone = f", {found.survey.current}" if found.survey.current else ""
    print_line(styled(f"{one_line(found.name, 80) or 'project'}{milestone}", "bold"))
    print_line(f"  {found.measure}")
    for phase in found.phases:
        done_plans = f", {phase.summaries}/{counted(phase.plans, 'plan')}" if phase.plans else ""
        status = "complete" if phase.complete else phase.shown_status
        print_line(f"  {phase.number}  {one_line(phase.name, 60)}  ({status}{done_plans})")
    for summary in found.recent:
        about = one_line(summary.text or summary.name, 120)
        print_line(f"done: {summary.plan} {about}".rstrip())
    for label, items in (("decision", found.decisions), ("blocker", found.blockers)):
        for item in items[-SHOWN:]:
            print_line(f"{label}: {one_line(item, 160)}")
    if found.todos:
        titles = "; ".join(one_line(todo.title, 60) for todo in found.todos[:SHOWN])
        print_line(f"{counted(len(found.todos), 'pending todo')}: {titles}")
    for line in next_lines(found.next, base_command(options)):
        print_line(line)
