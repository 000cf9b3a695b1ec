"""``gsd next``: shows which step is due, why, and the command for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from gsd_core.sanitize import one_line

from .commands import base_command
from .global_options import global_options, global_options_of
from .help import Command
from .output import json_flag, print_json, print_line, styled, warn
from .workstream import choose_workstream, workstream_option

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_core.machine.state import Options
    from gsd_core.planning.model import Planning
    from gsd_core.views.next import Next

    from .project import ProjectState

MAX_REASON = 400


@click.command("next", cls=Command)
@global_options
@workstream_option
@json_flag
@click.pass_context
def command(ctx: click.Context, workstream: str, as_json: bool) -> None:
    """Show which step is due, why, and the command for it.

    Works in every project with a .planning folder. If there is an unfinished run, its state counts, else
    the files alone. Nothing is written.
    """
    from gsd_core.planning.survey import flaws
    from gsd_core.views.next import next_json

    from .project import load, notes_of, planned_root

    options = global_options_of(ctx)
    project = load(options)
    root = planned_root(options, run=project.state.run)
    name, _ = choose_workstream(root, workstream)
    warn(notes_of(root, name))
    planning, found = find_next(project, root, base_command(options), name)
    warn(flaws(planning.phases))
    if as_json:
        print_json(next_json(found))
        return
    if not found.step:
        print_line(f"nothing is due: {one_line(found.reason, MAX_REASON)}")
        if not name and planning.phases and all(phase.ticked for phase in planning.phases):
            print_line(f"archive the milestone with: {base_command(options)} milestone complete")
        return
    print_line(styled(found.step, "bold").append_text(styled(f": {one_line(found.reason, MAX_REASON)}")))
    print_line(f"continue with: {found.command}")
    if len(found.ready) > 1:
        print_line(f"ready: {', '.join(found.ready)}")


def find_next(project: ProjectState, root: Path, gsd: str, workstream: str = "") -> tuple[Planning, Next]:
    """Return the planning files and what is due; *gsd* is how to call gsd for the project.

    With a *workstream*, they are its own. The run is not: it is about ``.planning`` itself.
    """
    import attrs

    from gsd_core.machine.state import State
    from gsd_core.planning.workstreams import planning_folder, resume_command
    from gsd_core.run.snapshot import snapshot_of
    from gsd_core.views.next import next_of

    planning = asyncio.run(_read(root, planning_folder(root, workstream)))
    if workstream:
        found = next_of(State(options=_options(root, planning)), planning, snapshot_of(planning), gsd=gsd)
        return planning, attrs.evolve(found, command=resume_command(workstream) if found.step else "")
    state = project.state
    # A finished run says nothing about what is due now; its options were for what it did.
    if state.lifecycle is None or state.closed == "done":
        options = _options(root, planning)
        state = attrs.evolve(state, options=options, lifecycle=options)
    found = next_of(
        state,
        planning,
        snapshot_of(planning),
        holder=project.holder,
        pending_answers=project.pending_answers,
        gsd=gsd,
    )
    return planning, found


async def _read(root: Path, folder: str) -> Planning:
    from gsd_core.git import Git
    from gsd_core.planning.survey import read_planning
    from gsd_core.run.snapshot import read_project

    git = Git(root)
    if await git.is_repository():
        return await read_project(root, git, folder)
    return read_planning(root, folder)


def _options(root: Path, planning: Planning) -> Options:
    """Return the options that a run would have, from the settings files and the environment."""
    from gsd_core.machine.state import Options

    from .options import parse_phases
    from .project_settings import run_settings

    run = run_settings(root, planning.config)
    known = [phase.number for phase in planning.phases]
    return Options(
        phases=parse_phases(run.only or run.phases, known),
        skip_verify=run.skip_verify,
        skip_discuss=run.skip_discuss,
        gap_rounds=run.gap_rounds,
    )
