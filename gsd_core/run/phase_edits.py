"""Adds, inserts and removes phases of a project: stored before it begins, committed once, finished later.

With the project's lock held. A run takes requests of other processes between two steps, when no agent
works: then nothing else writes to the planning files, and the guard compares nothing.
"""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError, ProjectError, machine_error
from gsd_core.files import read_below, write_below
from gsd_core.git import Git
from gsd_core.journal.schema import InboxItem
from gsd_core.machine.state import State
from gsd_core.planning.phase_edit import PhaseEdit, apply_edit, plan_addition
from gsd_core.sanitize import clip, safe_text

from .runtime import Run
from .todo_edits import edit_todos

LOG = "phase-edit.json"
REMOVED = "removed"
"""The folder beside the journal with copies of removed phase folders."""


def stored_edit(directory: Path) -> PhaseEdit | None:
    """Return the edit that has begun and is not finished; *directory* is that of the journal."""
    try:
        return PhaseEdit.from_json(read_below(directory, LOG).decode())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        hint = f"remove it, and compare .planning with its last commit: {directory / LOG}"
        raise ProjectError(f"the stored edit of the phases cannot be read: {error}", hint=hint) from error


async def edit_phases(root: Path, directory: Path, edit: PhaseEdit, *, git: Git, docs: bool) -> str:
    """Do what is left of *edit* and commit it if *docs*; return the commit, empty if there is none.

    Afterwards it is still stored; :func:`forget` it. Raises ``ProjectError`` or ``PlanningError``.
    """
    try:
        write_below(directory, LOG, edit.to_json().encode(), mode=0o600)
        apply_edit(root, edit)
    except PlanningError as error:
        error.hint = f"{error.hint}; or give up the rest of it: rm {directory / LOG}"
        raise
    except OSError as error:
        if (trouble := machine_error(error)) is None:
            raise
        raise trouble from error
    subject = clip(safe_text(edit.subject, multiline=False), 120)
    return await git.commit(edit.paths, subject, trailers={}, verify=False) if docs else ""


def forget(directory: Path) -> None:
    """Forget the stored edit: it is finished."""
    (directory / LOG).unlink(missing_ok=True)


def keep_copy(root: Path, directory: Path, folder: str, now: datetime) -> Path:
    """Copy a phase's folder before it is removed: parts of it may not be committed. Return the copy."""
    name = f"{now:%Y%m%dT%H%M%S}-{folder.rpartition('/')[2]}"
    copy = directory / REMOVED / name
    number = 1
    while copy.exists():
        number += 1
        copy = directory / REMOVED / f"{name}-{number}"
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Links are copied as links: what they lead to is not removed.
    shutil.copytree(root / folder, copy, symlinks=True)
    return copy


def worked_on(state: State) -> frozenset[str]:
    """Return the phases that the unfinished run has records of: their numbers keep their meaning."""
    if not state.run or state.closed == "done":
        return frozenset()
    return frozenset(record.id.phase for record in state.steps.values() if record.id.phase)


def refuse_renumbering(edit: PhaseEdit, state: State) -> None:
    """Raise ``ProjectError`` if *edit* gives a number to another phase that the unfinished run knows."""
    if known := worked_on(state) & {*edit.numbers, *edit.numbers.values()}:
        number = sorted(known)[0]
        message = f"the unfinished run has worked on phase {number}, and another phase would get this number"
        raise ProjectError(message, hint="leave the numbers as they are: --keep-numbers")


async def finish_edit(run: Run) -> None:
    """Finish an edit that an earlier process was killed in; its request is settled by the loop."""
    directory = run.journal.path.parent
    edit = stored_edit(directory)
    if edit and edit.request and edit.request not in {item.id for item in run.journal.take_inbox()}:
        forget(directory)
    elif edit:
        await edit_phases(run.root, directory, edit, git=run.git, docs=run.settings.commit_docs)
        if not edit.request:
            forget(directory)


async def take_requests(run: Run) -> None:
    """Add the phases and todos that other processes have asked for since the last step."""
    directory = run.journal.path.parent
    for item in run.journal.take_inbox():
        if item.kind == "todo":
            await _edit_todos(run, item)
        if item.kind != "phase":
            continue
        edit = stored_edit(directory)
        done = edit is not None and edit.request == item.id
        await _add(run, directory, item, edit if done else None)
    forget(directory)


async def _add(run: Run, directory: Path, item: InboxItem, edit: PhaseEdit | None) -> None:
    asked = {name: str(item.data.get(name) or "") for name in ("name", "after", "goal")}
    about = {"name": asked["name"], "after": asked["after"], "by": item.by}
    try:
        if edit is None:
            edit = plan_addition(
                run.root, asked["name"], after=asked["after"], goal=asked["goal"], used=worked_on(run.state)
            )
            edit = attrs.evolve(edit, request=item.id)
        commit = await edit_phases(run.root, directory, edit, git=run.git, docs=run.settings.commit_docs)
    except PlanningError as error:
        data = {**about, "phase": "", "commit": "", "error": str(error)}
        run.record("phase.added", data, consumes=[item.id])
        forget(directory)
        return
    run.record(
        "phase.added", {**about, "phase": edit.phase, "commit": commit, "error": ""}, consumes=[item.id]
    )
    forget(directory)


async def _edit_todos(run: Run, item: InboxItem) -> None:
    about = {"todo": "", "what": "done" if item.data.get("done") else "added", "by": item.by, "error": ""}
    try:
        docs = run.settings.commit_docs
        # The time of the request: after a kill, the same todo is written again.
        todo, _ = await edit_todos(run.root, item.data, at=item.at, git=run.git, docs=docs)
        about["todo"] = todo.id
    except PlanningError as error:
        about["error"] = str(error)
    run.record("todo.edited", about, consumes=[item.id])
