"""Edits of planning files that a kill cannot leave half done, or do twice.

An edit is stored beside the journal before its first operation, committed once, and forgotten only when
whoever asked for it has been told the result. A process that takes the project's lock finishes a stored edit
before anything else. All of this with the project's lock held.

A run takes requests of other processes between two steps, when no agent works: then nothing else writes to
the planning files, and the guard compares nothing.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from gsd_core.codec import structure, unstructure
from gsd_core.errors import JournalError, PlanningError, ProjectError, machine_error
from gsd_core.files import read_below, write_below
from gsd_core.git import Git
from gsd_core.git.history import EDIT
from gsd_core.git.repository import how_to_end
from gsd_core.journal.schema import InboxItem
from gsd_core.machine.facts import PhaseAdded, TodoEdited
from gsd_core.machine.state import State
from gsd_core.model.ids import EXECUTE, PLAN, StepId
from gsd_core.planning.edits import Edit, apply_edit, has_begun, is_undone
from gsd_core.planning.handoff import plan_consumption, read_handoff
from gsd_core.planning.phase_edit import plan_addition
from gsd_core.planning.todos import plan_todo
from gsd_core.processes import end_marked, is_git_at_work
from gsd_core.sanitize import clip, safe_text

from .runtime import Run

LOG, ASKED = "edit.json", "asked.json"
HANDOFF = "HANDOFF"
"""The name of a handoff among the documents that steps are given."""


@attrs.frozen(kw_only=True)
class StoredEdit:
    """An edit that has begun, as it is stored until it is done and reported.

    *command* are the words that asked for it, or *request* is the item of the inbox. *id* is in a trailer of
    its commit, *base* is the commit before it, and *owner* marks the git processes that make it. *applied*:
    the files are written, and may be changed by others.
    """

    edit: Edit
    id: str
    owner: str
    commits: bool
    base: str
    command: tuple[str, ...] = ()
    request: int = 0
    applied: bool = False
    commit: str = ""

    @property
    def label(self) -> str:
        """What it does, in words."""
        return safe_text(self.edit.subject.removeprefix("docs: "), multiline=False)


def stored_edit(directory: Path) -> StoredEdit | None:
    """Return the edit that has begun and is not reported; *directory* is that of the journal."""
    try:
        return structure(json.loads(read_below(directory, LOG)), StoredEdit)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, JournalError) as error:
        hint = f"remove it, and compare .planning with its last commit: {directory / LOG}"
        raise ProjectError(f"the stored edit cannot be read: {error}", hint=hint) from error


async def do_edit(
    root: Path,
    directory: Path,
    edit: Edit,
    *,
    git: Git,
    docs: bool,
    command: tuple[str, ...] = (),
    request: int = 0,
) -> StoredEdit:
    """Carry out *edit*, and commit it if *docs*. Afterwards it is still stored; :func:`forget` it.

    Raises ``PlanningError``, before anything is changed, if git could not commit it alone.
    """
    if not edit.operations:
        return StoredEdit(edit=edit, id="", owner="", commits=False, base="")
    if docs and (name := await git.operation()):
        raise PlanningError(f"a git {name} is in progress here", hint=f"finish it first: {how_to_end(name)}")
    stored = StoredEdit(
        edit=edit,
        id=secrets.token_hex(8),
        owner=git.command.environment.get("GSD_RUN", ""),
        commits=docs,
        base=await git.head() or "",
        command=command,
        request=request,
    )
    return await _finish(root, directory, stored, git)


async def finish_edit(root: Path, directory: Path) -> StoredEdit | None:
    """Finish the edit that an earlier process was killed in, if any, and return it: it is still stored.

    Raises ``ProjectError`` or ``PlanningError``.
    """
    stored = stored_edit(directory)
    if stored is None:
        return None
    began = time.time()
    if stored.owner:
        # A git that outlived its gsd may still make the commit.
        await asyncio.to_thread(end_marked, {stored.owner})
    git = Git(root, environment={"GSD_RUN": stored.owner})
    await git.sweep_locks(before=began, in_use=is_git_at_work)
    undone = stored.applied and is_undone(root, stored.edit)
    if undone and not await git.find({EDIT: stored.id}, since=stored.base):
        forget(directory)
        return None
    if stored.applied or has_begun(root, stored.edit):
        return await _finish(root, directory, stored, git)
    try:
        return await _finish(root, directory, stored, git)
    except PlanningError:
        # The files were changed before it changed any of them, so it would have to be planned again.
        forget(directory)
        return None


async def _finish(root: Path, directory: Path, stored: StoredEdit, git: Git) -> StoredEdit:
    """Do what is left of an edit."""
    try:
        if not stored.applied:
            _store(directory, stored)
            apply_edit(root, stored.edit, directory)
            stored = attrs.evolve(stored, applied=True)
            _store(directory, stored)
    except PlanningError as error:
        error.hint = f"{error.hint}; or give up the rest of it: rm {directory / LOG}"
        raise
    except OSError as error:
        if (trouble := machine_error(error)) is None:
            raise
        raise trouble from error
    if not stored.commits:
        return stored
    trailers = {EDIT: stored.id}
    commit = await git.find(trailers, since=stored.base)
    if commit is None:
        subject = clip(safe_text(stored.edit.subject, multiline=False), 120)
        commit = await git.commit(stored.edit.paths, subject, trailers=trailers, verify=False)
    return attrs.evolve(stored, commit=commit)


def _store(directory: Path, stored: StoredEdit) -> None:
    write_below(directory, LOG, json.dumps(unstructure(stored)).encode(), mode=0o600)


def forget(directory: Path) -> None:
    """Forget the stored edit: it is done, and whoever asked for it knows."""
    (directory / LOG).unlink(missing_ok=True)


def keep_asked(directory: Path, command: Sequence[str], run: str, steps: Sequence[str]) -> None:
    """Keep which *steps* of a *run* a *command* asks for, until it has said their result.

    The journal knows whether they are done, but not whether somebody was told. Without steps, a run
    continues, and an earlier command is no longer the last thing that was done.
    """
    if steps:
        write_below(directory, ASKED, json.dumps([command, run, steps]).encode(), mode=0o600)
    else:
        (directory / ASKED).unlink(missing_ok=True)


def asked_by(directory: Path, command: Sequence[str], state: State) -> dict[str, bool]:
    """Return whether each step that *command* has asked for is done; none if it has said the result."""
    with suppress(OSError, ValueError):
        *asked, steps = json.loads(read_below(directory, ASKED))
        if asked == [list(command), state.run]:
            ended = {key for key, record in state.steps.items() if record.status in ("completed", "skipped")}
            return {step: step not in state.asked for step in steps if step in state.asked or step in ended}
    return {}


def worked_on(state: State) -> frozenset[str]:
    """Return the phases that the unfinished run has records of: their numbers keep their meaning."""
    if not state.run or state.closed == "done":
        return frozenset()
    return frozenset(record.id.phase for record in state.steps.values() if record.id.phase)


def refuse_renumbering(edit: Edit, state: State) -> None:
    """Raise ``ProjectError`` if *edit* gives a number to another phase that the unfinished run knows."""
    numbers: dict[str, str] = edit.about["renumbered"]
    if known := worked_on(state) & {*numbers, *numbers.values()}:
        number = sorted(known)[0]
        message = f"the unfinished run has worked on phase {number}, and another phase would get this number"
        raise ProjectError(message, hint="leave the numbers as they are: --keep-numbers")


async def consume_handoff(run: Run, step: str) -> None:
    """Remove the handoff if *step*, which is complete, has used it, as GSD does it; a copy is kept."""
    if StepId.parse(step).kind not in (PLAN, EXECUTE) or HANDOFF not in run.planning.documents:
        return
    if handoff := read_handoff(run.root):
        edit, directory = plan_consumption(run.root, handoff, run.id), run.journal.path.parent
        await do_edit(run.root, directory, edit, git=run.git, docs=run.settings.commit_docs)
        forget(directory)


async def take_requests(run: Run) -> None:
    """Add the phases and todos that other processes have asked for since the last step."""
    for item in run.journal.take_inbox():
        if item.kind in ("phase", "todo"):
            await _do_request(run, item)
    forget(run.journal.path.parent)


async def _do_request(run: Run, item: InboxItem) -> None:
    """Carry out what *item* asks for, once, and record it."""
    directory = run.journal.path.parent
    asked = {name: str(item.data.get(name) or "") for name in ("name", "after", "goal")}
    done, error = stored_edit(directory), ""
    try:
        if done and done.request == item.id:
            done = await _finish(run.root, directory, done, run.git)
        else:
            done = None
            if item.kind == "todo":
                # The time of the request is that of the todo.
                edit = plan_todo(run.root, item.data, at=item.at)
            else:
                edit = plan_addition(run.root, **asked, used=worked_on(run.state))
            docs = run.settings.commit_docs
            done = await do_edit(run.root, directory, edit, git=run.git, docs=docs, request=item.id)
    except PlanningError as exc:
        forget(directory)
        error = str(exc)
    about = done.edit.about if done else {}
    fact: TodoEdited | PhaseAdded
    if item.kind == "todo":
        what = "done" if item.data.get("done") else "added"
        fact = TodoEdited(by=item.by, error=error, todo=about.get("id", ""), what=what)
    else:
        commit, name, after = done.commit if done else "", asked["name"], asked["after"]
        phase = about.get("phase", "")
        fact = PhaseAdded(by=item.by, error=error, name=name, after=after, phase=phase, commit=commit)
    run.record(fact, consumes=[item.id])
