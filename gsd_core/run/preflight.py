"""What has to hold before a run writes anything: repository, identity, clean tree, one idea."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from gsd_core.errors import IdeaError, ProjectError
from gsd_core.git import Git
from gsd_core.ids import new_run_id
from gsd_core.journal.codec import structure
from gsd_core.journal.record import Record
from gsd_core.journal.store import Journal
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State
from gsd_core.settings import RunSettings
from gsd_core.step import Idea

from .session import RunRequest

SHOWN = 5


@frozen(kw_only=True)
class Found:
    """The run to go on with, or a new one's id (then *state* is empty)."""

    run: str
    state: State


async def place(request: RunRequest, git: Git) -> Path:
    """Return the folder of the journal and the lock; raise ``ProjectError`` if git cannot be used."""
    if not await git.is_repository():
        raise ProjectError(f"{request.root} is no git repository", hint="run `git init` there first")
    if (top := await git.top()).resolve() != request.root.resolve():
        raise ProjectError(
            f"{request.root} lies inside the repository {top}",
            hint="name the repository's own folder with -C, or run `git init` here to make it a project",
        )
    if await git.identity() is None:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know who you are, so it cannot commit", hint=hint)
    return await git.common_dir() / "gsd"


def last_run(directory: Path, request: RunRequest) -> Found:
    """Return the project's last run, unless it is done or there is none: then a new one."""
    with Journal.open(directory / "journal.db", clock=request.clock, writable=False) as journal:
        runs = [record.run for record in journal.events(kinds=["run.started"])]
        if runs:
            state = fold(State(), journal.events(run=runs[-1], facts_only=True), structure)
            return Found(run=runs[-1], state=state)
    return Found(run=new_run_id(request.clock()), state=State())


async def check_project(request: RunRequest, git: Git, found: Found) -> None:
    """Raise ``UserError`` if the run cannot begin as asked."""
    _check_idea(request, found)
    settings: RunSettings = request.settings.of(RunSettings)
    if settings.allow_dirty or _interrupted(found.state):
        return
    if dirty := await git.dirty():
        shown = ", ".join(dirty[:SHOWN]) + (f" and {len(dirty) - SHOWN} more" if len(dirty) > SHOWN else "")
        raise ProjectError(
            f"tracked files are changed: {shown}",
            hint="commit or stash them, or start with --allow-dirty to leave them out of every commit",
        )


def _interrupted(state: State) -> bool:
    """An agent's work lies uncommitted in the tree, from an execution that did not end."""
    unfinished = ("running", "waiting", "parked", "failed", "result")
    return any(r.status in unfinished for r in state.steps.values())


def _check_idea(request: RunRequest, found: Found) -> None:
    idea, state = request.idea, found.state
    planned = (request.root / ".planning" / "ROADMAP.md").exists()
    if idea is None and not state.run and not planned:
        raise IdeaError("there is nothing to go on with, and no idea", hint="gsd run IDEA.md")
    if idea is None or (state.run and idea.sha256 == state.idea):
        return
    if state.closed == "done" and _is_complete(state):
        raise IdeaError(
            f"this project is complete for {state.idea_name!r}; {idea.name!r} is another idea",
            hint="a further milestone for another idea is not there yet; use a new folder",
        )
    if state.run and state.idea:
        raise IdeaError(
            f"{state.idea_name!r} is under way here; {idea.name!r} is another idea",
            hint="go on with `gsd resume`, or use a new folder for the other idea",
        )
    if planned:
        raise IdeaError(
            f"this project has a roadmap already, and {idea.name!r} is not in it",
            hint="go on without an idea: gsd run",
        )


def _is_complete(state: State) -> bool:
    return state.seen is not None and all(phase.ticked for phase in state.seen.phases)


def idea_of(request: RunRequest, facts: Sequence[Record]) -> Idea | None:
    """Return the idea that the run began with, else the one that is given now."""
    for fact in facts:
        if fact.kind == "run.started" and fact.data.get("idea"):
            return structure(fact.data["idea"], Idea)
    return request.idea
