"""``gsd pause``: ends the active run after its current step, and writes down where the work is."""

from __future__ import annotations

import asyncio
import getpass
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from gsd_core.errors import ProjectError
from gsd_core.machine.facts import TaskCommitted
from gsd_core.model.ids import EXECUTE, StepId
from gsd_core.sanitize import safe_text

from .commands import with_global_options
from .global_options import GlobalOptions, global_options_of, gsd_command
from .next import find_next
from .output import json_flag, print_json, print_line

if TYPE_CHECKING:
    from gsd_core.journal.lock import Owner
    from gsd_core.planning.handoff import Pause

    from .project import ProjectState

WAIT_SECONDS = 120.0
"""How long a run may take to cancel its step."""
POLL_SECONDS = 0.1


@gsd_command("pause", "gsd pause", "gsd pause 'the API keys arrive on Monday'", last=json_flag)
@click.argument("text", nargs=-1)
@click.option("--now", is_flag=True, help="cancel the current step instead of waiting for its end")
def command(ctx: click.Context, text: tuple[str, ...], now: bool, as_json: bool) -> None:
    """Pause the active run, if any, after its step, and write a handoff: where the work is, and TEXT.

    A step that waits for an answer is not waited for: the question is asked again later. Without TEXT, the
    note of an earlier pause stays.
    The handoff is .planning/HANDOFF.json and .continue-here.md in the phase's folder, as GSD writes them.
    The next plan or execution gets it as context, with gsd or with GSD's own commands.
    """
    from gsd_core.planning.handoff import plan_handoff

    from .editing import editing
    from .project import planned_root, refuse_agents_at

    options = global_options_of(ctx)
    root = planned_root(options)
    holder = refuse_agents_at(root, "pause a run")
    if holder:
        _stop(root, holder, options, now=now)
    with editing(root, ("pause", *text)) as editor:
        notes = safe_text(" ".join(text))
        done = editor.carry_out(lambda: plan_handoff(root, _pause(ctx, options, root, notes)))
        about = done.edit.about
        if as_json:
            stopped = holder.pid if holder else None
            about = {"stopped": stopped, **about, "commit": done.commit or None}
            print_json(about)
            return
        if holder:
            print_line(f"{'stopped' if now else 'paused'} the run (pid {holder.pid})")
        for path in about["files"]:
            print_line(f"wrote {path}")
        print_line(with_global_options(f"next: {about['next_action']}", options))


def _stop(root: Path, holder: Owner, options: GlobalOptions, *, now: bool) -> None:
    """Ask the active run to end, after its current step unless *now*, and wait until it has."""
    from gsd_core.journal.inbox import put

    from .project import holder_of, journal_path, load

    path = journal_path(root)
    process = f"{holder.pid} {holder.host} {holder.since}"
    if path.exists():
        # Two keys, so that a pause that takes too long can be cut short. That of a stop is `gsd stop`'s.
        data, key = ({}, f"stop {process}") if now else ({"after": "step"}, f"pause {process}")
        put(path, "stop", data, by=getpass.getuser(), key=key)
    if not now:
        _say_what_is_waited_for(load(options), holder, options)
    latest = time.monotonic() + WAIT_SECONDS
    while (found := holder_of(root)) and (found.pid, found.since) == (holder.pid, holder.since):
        if now and time.monotonic() > latest:
            message = f"the run (pid {holder.pid}) was asked to stop, and has not stopped yet"
            raise ProjectError(message, hint="wait for it, then run gsd pause again")
        time.sleep(POLL_SECONDS)


def _say_what_is_waited_for(project: ProjectState, holder: Owner, options: GlobalOptions) -> None:
    """Say on stderr what the pause waits for: the end of the step, unless it waits for a person itself."""
    from gsd_core.views.status import active_steps, current_step

    step = current_step(project.state)
    working = [str(one.id) for one in active_steps(project.state) if one.status in ("running", "result")]
    waiting = [one.question.id for one in project.unanswered if step and one.step == str(step.id)]
    if step and waiting:
        text = f"{step.id} waits for an answer to {', '.join(waiting)}; the run (pid {holder.pid}) pauses now"
        click.echo(f"{text}, and asks again when it is resumed", err=True)
        return
    waits = f"waiting until the run (pid {holder.pid}) has finished {', '.join(working) or 'its step'}"
    hint = with_global_options("gsd pause --now cancels the step", options)
    click.echo(f"{waits}; {hint}", err=True)


def _pause(ctx: click.Context, options: GlobalOptions, root: Path, notes: str) -> Pause:
    from gsd_core.git import Git
    from gsd_core.planning.handoff import Pause, TaskState, read_handoff

    from .project import load, now, open_journal

    # Whoever reads this does so later and from anywhere: this process is not running then.
    project = attrs.evolve(load(options), holder=None)
    planning, found = find_next(ctx, project, "gsd")
    earlier = read_handoff(root)
    step = StepId.parse(found.step) if found.step else None
    phase = planning.phase(step.phase) if step else None
    plans = phase.plans if phase and step and step.kind == EXECUTE else ()
    plan = next((plan for plan in plans if step and plan.id == step.detail), None)
    with open_journal(project.root) as journal:
        committed = [*journal.facts(TaskCommitted, run=project.last_run.id, step=found.step)]
    commits = {fact.data.task: fact.data.commit for fact in committed}
    tasks = plan.tasks if plan else ()
    what = f"{found.step}: {found.reason}" if found.step else f"nothing is due: {found.reason}"
    return Pause(
        phase=phase.number if phase else "",
        name=phase.name if phase else "",
        directory=phase.directory if phase else "",
        plan=plan.id if plan else "",
        tasks=tuple(
            TaskState(number=task.number, name=task.name, commit=commits.get(f"{plan.id}/{task.number}", ""))
            for task in tasks
            if plan
        ),
        next_action=f"{what}; continue with: {found.command}" if found.command else what,
        # Another tool, or a repository, may have written the earlier note.
        notes=notes or (safe_text(earlier.notes) if earlier else ""),
        questions=tuple(asked.question.text for asked in project.unanswered),
        uncommitted=tuple(asyncio.run(Git(root).changed())),
        at=now().isoformat(timespec="seconds"),
    )
