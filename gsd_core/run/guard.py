"""The guard around agents: compares the protected state after each exchange and restores it.

An agent may do anything to the project's own files; checks and detectors judge the result. But an agent that
moves branches, changes hooks or marks a phase as complete would decide for itself that its work is done. So
such a change is saved under ``refs/gsd/recover/…``, recorded and undone, and the attempt fails. An honest
mistake that undoing repairs, above all the agent's own commit, is only a complaint. The record of the
protected state before a call is its :class:`~gsd_core.run.seal.Seal`.

The commits that the run itself makes for an agent (``task_done``) are expected: the journal knows them.
While an agent works that owns the planning (:class:`gsd_core.AgentTask`), changes of ``.planning/`` and new
commits, branches and tags are accepted and recorded.
An agent in a sandbox cannot change the protected state. What changes there during its call was changed by a
person, and is accepted and recorded. The journal has which calls in progress are confined, so that the same
holds for a call that the death of this process ended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import attrs

from gsd_core.codec import structure, unstructure
from gsd_core.errors import Interference, Permanent
from gsd_core.machine import facts
from gsd_core.machine.facts import Record, typed
from gsd_core.model.sandbox import Place
from gsd_core.plugins.plugin_task import finish as finish_task
from gsd_core.sanitize import one_line

from .runtime import Run
from .sandbox import Confinement, is_protected
from .seal import Changes, Difference, Seal

log = logging.getLogger(__name__)

LATE = timedelta(seconds=10)
"""A change later than this after a killed process's last sign of life was made by somebody else."""
ENDS_A_CALL = frozenset({"agent.closed", "step.result", "step.completed", "step.failed", "run.closed"})
"""After one of these facts, the last call was compared, and the files may have changed since."""
MAX_LISTED = 20
MAX_LENGTH = 300


@asynccontextmanager
async def guarded(
    run: Run, *, step: str, attempt: int, inside: Callable[[], Confinement | None], owned: bool = False
) -> AsyncGenerator[list[str]]:
    """On leaving, undo changes of the protected state; raise ``Interference`` if one was not a mistake.

    Yields a list that contains, after leaving, the complaints for the agent. Concurrent calls share one seal.
    *inside* returns the sandbox that the processes are in by then, if any: what they cannot change there
    was changed by a person, and stays. *owned*: what is inside owns the planning.
    """
    notes: list[str] = []
    place = run.workspace
    place.owners += owned
    if not place.guards or owned:
        shared = place.seal if place.guards else None
        place.seal = shared or await place.git.call(place.sealer.take)
        about = {"seq": run.journal.last_seq(), "run": run.id, "owned": place.owners > 0, "step": step}
        data = {**about, "epoch": run.state.epoch, "seal": unstructure(place.seal)}
        run.effects.write(place.stored_seal, json.dumps(data))
    place.guards.append(inside)
    # If a call is alone and not confined yet, nothing has been said about it, and it counts as unconfined.
    if len(place.guards) > 1 or inside() is not None:
        record_confinement(run, step=step, attempt=attempt)
    try:
        yield notes
    except BaseException:
        # What ended the call is the cause of the failure, but everything is undone all the same.
        with suppress(Interference):
            await finish_task(_check(run, step, attempt))
        raise
    else:
        # To the end even if this task is cancelled: otherwise changes could remain.
        notes += await finish_task(_check(run, step, attempt))
    finally:
        place.owners -= owned
        place.guards.remove(inside)
        if place.guards:
            record_confinement(run, step=step, attempt=attempt)


@asynccontextmanager
async def guarded_commands(run: Run, tree: Path, step: str, attempt: int) -> AsyncGenerator[None]:
    """Guard the commands of plans and verifiers in *tree*: they run what agents wrote."""
    async with (
        run.sandbox.around(tree) as inside,
        guarded(run, step=step, attempt=attempt, inside=lambda: inside),
    ):
        yield


def record_confinement(run: Run, *, step: str, attempt: int) -> None:
    """Record which of the calls in progress are in a sandbox, and what they see there.

    Call it before the first process of a confinement starts, and when a call begins or ends beside others:
    if this process is killed, the next one decides by it whether a change was a person's.
    """
    confined = [each for inside in run.workspace.guards if (each := inside()) and each.home is not None]
    places = tuple(
        tuple(
            facts.Mounted(path=str(place.path), writable=place.writable and place.source == place.path)
            for place in one.places
        )
        for one in confined
    )
    if len(run.workspace.guards) > 1 or places:
        fact = facts.GuardConfined(calls=len(run.workspace.guards), places=places)
        run.record(fact, step=step, attempt=attempt)


async def check_seal(run: Run, *, step: str, attempt: int) -> tuple[str, ...]:
    """Undo changes of the protected state during a call; return the complaints for the agent.

    Raises ``Interference`` if a change was not a mistake. Without a call in progress, nothing is compared.
    """
    return await _check(run, step, attempt) if run.workspace.guards else ()


async def _check(run: Run, step: str, attempt: int) -> tuple[str, ...]:
    place = run.workspace
    assert place.seal is not None, "a call is in progress"
    known = [fact.data.commit for fact in run.facts(facts.TaskCommitted) if fact.data.commit]
    owned = place.owners > 0
    around = [inside() for inside in place.guards]

    def accepted(path: Path) -> bool:
        # None of the calls in progress can change the file: all are in a sandbox without it.
        return all(each is not None and each.protects(path) for each in around)

    compare = partial(place.sealer.compare, place.seal, known, accepted=accepted, owned=owned)
    changes = await run.git.call(compare)
    if changes.edited:
        edited = {**place.seal.files, **changes.edited}
        files = {path: mark for path, mark in edited.items() if mark is not None}
        place.seal = attrs.evolve(place.seal, files=files)
        _record_accepted(run, changes, step, attempt, owned=owned)
    if not changes.differences:
        # The run's own commits, and what others do: fetched branches, other worktrees and projects.
        place.seal = attrs.evolve(place.seal, refs=changes.now)
        return ()
    kept, problems = await _undo(run, place.seal, changes, step, attempt)
    place.seal = attrs.evolve(place.seal, refs=await run.git.read_refs())
    if problems:
        hint = f"see `git status`, and what was changed in {kept}; put the project in order, then resume"
        raise Permanent(f"{_described(changes.differences)}. Not undone: {'; '.join(problems)}", hint=hint)
    if all(difference.mild for difference in changes.differences):
        what = one_line("; ".join(difference.what for difference in changes.differences), MAX_LENGTH)
        log.warning("undone while an agent or a check worked: %s (kept in %s)", what, kept or "no ref")
        listed = [one_line(difference.what, MAX_LENGTH) for difference in changes.differences[:MAX_LISTED]]
        return (
            f"only the run commits and changes git's state, so this was undone: {'; '.join(listed)}. Your "
            "changes to files are still in the work tree. Do not commit, stash or switch branches yourself; "
            "a task is committed by calling task_done",
        )
    where = f"it is kept in {kept} (git show --stat {kept}); " if kept else ""
    advice = (
        f"it was undone; {where}if you changed it yourself, do so while no agent is working: stop the run "
        f"with `{run.request.info.command} stop`, change it, then resume"
    )
    raise Interference(_described(changes.differences), hint=advice)


def _record_accepted(run: Run, changes: Changes, step: str, attempt: int, *, owned: bool) -> None:
    listed = tuple(one_line(path, MAX_LENGTH) for path in sorted(changes.edited)[:MAX_LISTED])
    run.record(facts.GuardAccepted(paths=listed, owned=owned), step=step, attempt=attempt)


async def _undo(
    run: Run, seal: Seal, changes: Changes, step: str, attempt: int
) -> tuple[str, tuple[str, ...]]:
    """Save, record and undo *changes*; return the ref that has them and what could not be undone."""
    name = f"{run.id}-{step.replace('/', '-') or 'start'}-{attempt}-changed"
    kept = await run.git.call(run.workspace.sealer.save, name, changes)
    what = tuple(one_line(difference.what, MAX_LENGTH) for difference in changes.differences)
    mild = all(difference.mild for difference in changes.differences)
    run.record(facts.GuardFound(what=what, mild=mild, kept=kept), step=step, attempt=attempt)
    problems = await run.effects.undo(partial(run.workspace.sealer.undo, seal, changes))
    run.record(facts.GuardUndone(problems=problems), step=step, attempt=attempt)
    return kept, problems


def _described(differences: Sequence[Difference]) -> str:
    listed = [one_line(difference.what, MAX_LENGTH) for difference in differences]
    if len(listed) > MAX_LISTED:
        listed = [*listed[:MAX_LISTED], f"and {len(listed) - MAX_LISTED} more"]
    what = "; ".join(listed)
    return f"while an agent or a check worked, this was changed, which only the run may do: {what}"


def found_before(run: Run, step: str) -> tuple[str, ...]:
    """Return what was undone in earlier attempts at the step, for the next one to know."""
    found = (text for fact in run.facts(facts.GuardFound, step=step) for text in fact.data.what)
    return tuple(dict.fromkeys(found))


# A seal outlives the process: what it could not undo, the next start undoes.


@attrs.frozen(kw_only=True)
class _OpenSeal:
    """The *seal* of a call that a killed process left open, and its last sign of life, *seen*.

    *owned*: an agent worked that owns the planning. *protects*: which files no call in progress could change.
    """

    seal: Seal
    seen: datetime
    owned: bool
    protects: Callable[[Path], bool]


def _open_seal(run: Run) -> _OpenSeal | None:
    try:
        data = json.loads((run.workspace.stored_seal).read_text(encoding="utf-8"))
        seal, seq, owner = structure(data["seal"], Seal), int(data["seq"]), data["run"]
        owned = data.get("owned") is True
    except (OSError, ValueError, LookupError, TypeError):
        return None  # there is none: the process was killed before its first call
    if data.get("epoch") == run.state.epoch:
        return None  # an earlier attempt of this process, which has compared it when its call ended
    # Other steps went on elsewhere. Earlier versions did one at a time.
    steps = ("", data["step"]) if "step" in data else None
    later = [fact for fact in run.journal.events(after=seq, run=run.id) if fact.epoch < run.state.epoch]
    after = [fact for fact in later if steps is None or fact.step in steps]
    if owner != run.id or any(fact.kind in ENDS_A_CALL for fact in after):
        return None
    before = [fact.at for fact in run.journal.events(after=max(0, seq - 1), run=run.id) if fact.seq <= seq]
    times = [*before, *(fact.at for fact in after)]
    if not times:
        return None
    return _OpenSeal(seal=seal, seen=max(times), owned=owned, protects=_protected_then(after))


def _protected_then(records: Sequence[Record]) -> Callable[[Path], bool]:
    """Return whether none of the calls in progress at the end of *records* could change a file.

    An older run has not recorded which are confined. Then any could, as if there were no sandbox.
    """
    said = [fact.data for fact in typed(records, facts.GuardConfined)]
    if not said or not said[-1].places or len(said[-1].places) != said[-1].calls:
        return lambda _: False
    calls = [
        [Place(path=Path(one.path), source=Path(one.path), writable=one.writable) for one in places]
        for places in said[-1].places
    ]
    return lambda path: all(is_protected(path, places) for places in calls)


async def finish(run: Run) -> bool:
    """Undo what a killed process had found or not seen yet; return whether there was anything.

    Changes after its last sign of life stay, because a person made them, and so do those of files that the
    agents could not change in their sandbox. Call it when the processes of the killed run have ended.
    """
    kept = _open_seal(run)
    if kept is None:
        return False
    known = [fact.data.commit for fact in run.facts(facts.TaskCommitted)]
    for fact in run.facts(facts.TaskCommitting):
        keys = {"GSD-Run": run.id, "GSD-Step": fact.step, "GSD-Task": fact.data.task}
        if commit := await run.git.find(keys, since=fact.data.parent):
            known.append(commit)
    until = (kept.seen + LATE).timestamp()
    compare = partial(run.workspace.sealer.compare, kept.seal, known, until=until, owned=kept.owned)
    changes = await run.git.call(partial(compare, accepted=kept.protects))
    running = [record for record in run.state.steps.values() if record.status == "running"]
    step, attempt = (str(running[0].id), running[0].attempt) if running else ("", 0)
    if changes.edited:
        _record_accepted(run, changes, step, attempt, owned=kept.owned)
    if not changes.differences:
        return False
    where, problems = await _undo(run, kept.seal, changes, step, attempt)
    if not problems:
        # What changes from now on was changed by somebody else.
        (run.workspace.stored_seal).unlink(missing_ok=True)
    what = one_line("; ".join(difference.what for difference in changes.differences), MAX_LENGTH)
    message = "the last process was killed while an agent worked; undone: %s (kept in %s)"
    log.warning(message, what, where or "no ref: there was nothing to keep")
    return True
