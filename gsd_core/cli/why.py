"""``gsd why``: shows what each thing waits for that is neither running nor done, and each way out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import click
from attrs import evolve
from rich.text import Text

from gsd_core.errors import NotFound
from gsd_core.sanitize import one_line

from .commands import base_command, with_global_options
from .editing import interrupted
from .global_options import GlobalOptions, global_options_of, gsd_command
from .output import json_flag, print_json, print_line, styled, warn

if TYPE_CHECKING:
    from pathlib import Path

    from gsd_core.views.why import Waiting, Way, Why

    from .project import ProjectState

MAX_REASON = 400


@gsd_command("why", "gsd why", "gsd why 01-02", "gsd why --json", last=json_flag)
@click.argument("step", required=False)
def command(ctx: click.Context, step: str | None, as_json: bool) -> None:
    """Show what each step waits for that is neither running nor done, and each way out.

    Such as other plans, a slot, another session, an answer, a time, the budget, a person; with the command
    for each way out. A start that would be refused is named with the reason: trust, a login, uncommitted
    changes. STEP is a step, a plan or a phase. Works with and without a run. Nothing is written or paid for;
    without a STEP and an active run, the agent is asked for its login, as by gsd doctor.
    """
    from gsd_core.views.why import WHY

    from .project import load

    options = global_options_of(ctx)
    project = load(options)
    queued = [] if step else [*_queued(ctx, project.root, options)]
    found = _find(ctx, project, options, step)
    if queued:
        found = evolve(found, waiting=(*queued, *found.waiting), nothing="")
    if as_json:
        print_json(WHY.dump(found))
        return
    shown: set[Way] = set()
    for one in found.waiting:
        for line in _lines(one, shown, options):
            print_line(line)
        shown |= {*one.ways}
    if found.nothing:
        print_line(f"nothing waits: {one_line(found.nothing, MAX_REASON)}")


def _queued(ctx: click.Context, root: Path, options: GlobalOptions) -> Iterator[Waiting]:
    """Yield the sessions of the project at *root* that wait to begin, or for a slot for another plan."""
    from gsd_core.views.why import Waiting, Way

    from .background import sessions_of

    for one in sessions_of(ctx, root):
        if one.state == "idle" or (one.state == "running" and one.reason):
            stop = with_global_options(f"gsd stop {one.id}", options)
            ways = (Way(command="gsd ps", about="all sessions"), Way(command=stop, about="end it"))
            what, reason = f"session {one.id}", one.reason or "it has not begun"
            since = one.created if one.state == "idle" else None
            yield Waiting(what=what, cause="slot", reason=reason, since=since, ways=ways)


def _find(ctx: click.Context, project: ProjectState, options: GlobalOptions, step: str | None) -> Why:
    """Return what is said about *step*; without it about all, and what a start would refuse."""
    from gsd_core.run.loop import allows_parallel_phases, capacity_of
    from gsd_core.run.runtime import IN_PLACE
    from gsd_core.settings import RunSettings
    from gsd_core.views.why import PROJECT, Situation, Waiting, Way, Why

    from .current import read_current
    from .launch import RunOptions, obstacles
    from .plugin_loading import loaded_plugins

    gsd = base_command(options)
    if edit := interrupted(project.root, gsd):
        ways = (Way(command=edit.command),) if edit.command else ()
        return Why(waiting=(Waiting(what=PROJECT, cause="obstacle", reason=edit.reason, ways=ways),))
    if not project.state.run and not (project.root / ".planning").is_dir():
        return Why(waiting=(), nothing=f"no project here; start one with: {gsd} run IDEA")
    current = read_current(ctx, project)
    warn(current.missing)
    # How a run was confined, a sandbox that is there now does not change.
    run = current.settings.of(RunSettings)
    confined = bool(project.history.sandbox) if project.state.run else run.sandbox != "off"
    capacity = capacity_of(current.settings, current.planning.config, project.root, is_confined=confined)
    in_place = run.workspace[:1] == (IN_PLACE,)
    start = RunOptions(global_options=options, resume=True)
    refused = () if step else obstacles(start, loaded_plugins(ctx))
    found = Situation(
        state=current.state,
        history=project.history,
        planning=current.planning,
        snapshot=current.snapshot,
        holder=project.holder,
        pending_answers=project.pending_answers,
        capacity=capacity,
        parallel_phases=allows_parallel_phases(run, current.planning.config),
        more_slots=f"{'--workspace worktree ' if in_place else ''}--max-parallel {capacity + 1}",
        obstacles=((str(error), with_global_options(error.hint, options)) for error in refused),
        gsd=gsd,
        added=current.added,
    ).why()
    return _about(found, step) if step else found


def _about(found: Why, step: str) -> Why:
    """Return what is about *step*: a step's id, a plan or a phase; raise ``NotFound`` if there is none."""
    from gsd_core.views.why import names_of

    waiting = tuple(one for one in found.waiting if step in names_of(one.what))
    running, done = ([one for one in known if step in names_of(one)] for known in (found.running, found.done))
    if not (waiting or running or done):
        known = ", ".join([*(one.what for one in found.waiting), *found.running]) or "nothing"
        hint = f"waiting or running: {known}"
        raise NotFound(f"no step, plan or phase {step!r}", hint=one_line(hint, MAX_REASON))
    nothing = "" if waiting else f"{', '.join(running)} is running" if running else f"{step} is done"
    return evolve(found, waiting=waiting, running=tuple(running), done=tuple(done), nothing=nothing)


def _lines(one: Waiting, shown: Collection[Way], options: GlobalOptions) -> Iterator[str | Text]:
    """Yield what waits, and the ways out that are not *shown* yet: what depends on it has the same."""
    since = f", since {one.since.isoformat(timespec='seconds')}" if one.since else ""
    until = f", until {one.until.isoformat(timespec='seconds')}" if one.until else ""
    about = f": {with_global_options(one_line(one.reason, MAX_REASON), options)}"
    if one.waits_for:
        about += f" ({one_line(', '.join(one.waits_for), MAX_REASON)})"
    yield styled(one.what, "bold").append_text(styled(f"{about}{since}{until}"))
    for way in one.ways:
        if way in shown:
            continue
        words = one_line(way.about, MAX_REASON)
        yield f"  {way.command}{f'  ({words})' if words else ''}" if way.command else f"  {words}"
