"""Apply a step's recorded result: write its files, change the shared ones, and commit once.

The order makes it repeatable. The list of plans comes first and a phase's tick last, so that a phase
never seems more complete than its files are. After a crash at any point, applying the same result
again ends in the same tree and the same commit.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from gsd_core.codec import structure
from gsd_core.errors import GsdError, Permanent, PlanningError
from gsd_core.files import inode_below, kind_below, read_below
from gsd_core.git import GitError
from gsd_core.machine.facts import LandingFailed, StepCompleted, StepFailed, StepReturned
from gsd_core.model.ids import StepId, normal_phase
from gsd_core.model.step import FileMove, StepResult
from gsd_core.planning.changes import Change, ListPlans, SetPosition, TickPhase
from gsd_core.planning.config import get
from gsd_core.planning.edit import apply_changes, edit_of
from gsd_core.planning.markdown import decoded
from gsd_core.planning.survey import survey
from gsd_core.protected_paths import protected_part
from gsd_core.sanitize import clip, safe_text

from .integration import MAX_MERGES, Collision, InTheWay, merges, take_over
from .runtime import Run
from .snapshot import observe, plan_digests
from .step import failure, resumable
from .tasks import co_author, trailers
from .work import require_branch

log = logging.getLogger(__name__)

SHARED = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md")
"""The files that several steps change. They edit none themselves: parallel writers would lose changes."""
MAX_LANDINGS = 3
"""How often a result is tried that does not fit the planning files.

They may be corrected by hand before the next start. If they were changed on purpose, the result will never
fit, and the run asks the usual question about a failed step.
"""


async def apply_result(run: Run, step: str) -> None:
    """Write what *step* returned and record that it is complete.

    If it cannot be written now, the recorded result stays, and the next start applies it: it is paid for.
    Raises ``ProjectError`` or ``PlanningError`` then, which ends the run, and :class:`InTheWay`. A result
    that can never be written fails the step.
    """
    record = run.step(step)
    returned = next(run.facts(StepReturned, after=record.result - 1)).data
    result = structure(returned.result, StepResult)
    try:
        await take_over(run, step)
        await _save_removed(run, step, result)
        written = _write(run, result)
        docs = _commits_docs(run, step)
        paths = [path for path in written if docs or not path.startswith(".planning/")]
        ignored = await run.git.ignoring_rules(paths)
        paths = [path for path in paths if path not in ignored]
        commit = await _commit(run, step, paths, result.subject)
        tagged = await _tag(run, commit, result)
    except InTheWay:
        raise
    except (GitError, OSError) as exc:
        error = resumable(run, exc)
        run.record(LandingFailed(error=failure(error)), step=step, attempt=record.attempt)
        raise error from exc
    except Collision as exc:
        run.record(exc.about, step=step, attempt=record.attempt)
        if len(merges(run, step)) > MAX_MERGES:
            run.record(StepFailed(error=failure(exc)), step=step, attempt=record.attempt)
        return
    except GsdError as exc:
        tries = list(run.facts(LandingFailed, after=record.result))
        if isinstance(exc, PlanningError) and len(tries) < MAX_LANDINGS - 1:
            run.record(LandingFailed(error=failure(exc)), step=step, attempt=record.attempt)
            raise
        run.record(StepFailed(error=failure(exc)), step=step, attempt=record.attempt)
        return
    # The snapshot first: folding a completed verification takes from it which plans were covered.
    await observe(run)
    completed = StepCompleted(
        commit=commit,
        subject=result.subject,
        gaps=returned.gaps,
        paths=tuple(written),
        unchanged=True if paths and not commit else None,
        plans=plan_digests(run.planning, written),
        tag=None if not result.tag else result.tag.name if tagged else "",
    )
    run.record(completed, step=step, attempt=record.attempt)


def _write(run: Run, result: StepResult) -> list[str]:
    """Write the list of plans, the files, the other changes, a phase's tick and the position.

    Return the paths.
    """
    moved = [path for move in result.moved for path in (move.path, move.target)]
    for path in (*(file.path for file in result.files), *moved, *result.removed):
        _refuse_outside(run.root, path)
    # Before anything is written, as it can be refused.
    for file in result.files:
        decoded(file.text.encode(), file.path)
    for move in result.moved:
        _check_move(run.root, move)
    first = [change for change in result.changes if isinstance(change, ListPlans)]
    # The position is counted from the files, so it comes when all others are as they will be.
    ticks = [change for change in result.changes if isinstance(change, TickPhase)]
    last: list[Change] = [*ticks, *(change for change in result.changes if isinstance(change, SetPosition))]
    between = [change for change in result.changes if change not in first and change not in last]
    written = _change(run, first, {file.path for file in result.files})
    for file in result.files:
        run.effects.write(run.root / file.path, file.text)
        written.append(file.path)
    # Again the list of plans: only now that the files are there, they are counted.
    written += _change(run, [*first, *between])
    for move in result.moved:
        if inode_below(run.root, move.path):
            run.effects.move(move.path, move.target)
    for path in result.removed:
        run.effects.remove(path)
    written += [*moved, *result.removed]
    for change in last:
        written += _change(run, [change])
    return list(dict.fromkeys(written))


def _check_move(root: Path, move: FileMove) -> None:
    """Raise ``PlanningError`` unless the move can be made, or was made before a crash."""
    here, there = inode_below(root, move.path), inode_below(root, move.target)
    if here and there:
        hint = f"remove or rename it, then resume the run, which moves {move.path} there"
        raise PlanningError("is in the way", path=move.target, hint=hint)
    if not here and not there:
        hint = "restore it from git, then resume the run"
        raise PlanningError(f"is missing, and should be moved to {move.target}", path=move.path, hint=hint)


async def _save_removed(run: Run, step: str, result: StepResult) -> None:
    """Save what is not committed of the files that the step removes: a person may have edited them since."""
    changed = set(await run.git.changed()) if result.removed else set[str]()
    for path in result.removed:
        if kind_below(run.root, path) == "folder":
            raise Permanent(f"a step may not remove the folder {path!r}", hint="it removes files only")
    if paths := tuple(path for path in result.removed if path in changed and inode_below(run.root, path)):
        await run.git.save_recovery(f"{run.id}-{step.replace('/', '-')}-removed", paths)


async def _tag(run: Run, commit: str, result: StepResult) -> bool:
    """Tag the step's commit; return whether it has the tag. A tag of another commit is left alone."""
    if result.tag is None:
        return False
    commit = commit or await run.git.head() or ""
    if not commit:
        return False
    tagged = await run.effects.tag(result.tag.name, commit, result.tag.message)
    if tagged != commit:
        log.warning("the tag %s exists already, at %s: it was not moved", result.tag.name, tagged[:10])
    return tagged == commit


def _change(run: Run, changes: Sequence[Change], whole: Collection[str] = ()) -> list[str]:
    """Apply *changes* to the shared files, except those that the step replaces (*whole*); return the paths.

    They include files that were already changed before a crash, because the commit needs them too.
    """
    if not changes:
        return []
    found = survey(run.root)
    paths = {name: f".planning/{name}" for name in SHARED} | {"ROADMAP.md": found.path}
    texts: dict[str, str] = {}
    for name, path in paths.items():
        if path not in whole and (run.root / path).exists():
            data = read_below(run.root, path)
            decoded(data, path)
            texts[name] = data.decode("utf-8")  # with a byte order mark, if it has one
    if any(isinstance(one, SetPosition) for one in changes):
        # Of the phases that only STATE.md calls complete, the new position would say it no longer.
        changes = [*(TickPhase(phase=one, date="") for one in found.only_in_state()), *changes]
    changes = [found.counted(one) if isinstance(one, SetPosition) else one for one in changes]
    counts = {one.number: (one.summaries, one.plans) for one in found.phases() if one.plans}
    for name, text in apply_changes(texts, changes, counts).items():
        decoded(text.encode(), paths[name])
        run.effects.write(run.root / paths[name], text)
    return [paths[name] for name in (edit_of(change)[0] for change in changes) if name in texts]


def _refuse_outside(root: Path, path: str) -> None:
    """Raise ``Permanent`` for a path that an executor must not write."""
    pure = PurePosixPath(path)
    denied = protected_part(path.removeprefix(".planning/"))
    # resolve() follows links: a link inside the project may point out of it.
    inside = (root / path).resolve().is_relative_to(root.resolve())
    if pure.is_absolute() or ".." in pure.parts or denied or not inside:
        raise Permanent(f"a step may not write {path!r}", hint="the executor returned a protected path")


async def _commit(run: Run, step: str, paths: Sequence[str], subject: str) -> str:
    """Commit *paths*, once: the trailers identify a commit made just before a crash."""
    keys = trailers(run, step)
    if found := await run.git.find(keys, since=run.step(step).base_commit):
        return found
    text = clip(safe_text(subject, multiline=False), 120)
    await require_branch(run)
    all_trailers = {**keys, **co_author(run)}
    return await run.effects.commit(paths, text, all_trailers, verify=False) if paths else ""


def _commits_docs(run: Run, step: str) -> bool:
    """Whether commits of the step contain its planning files; config.json may say so for one phase."""
    by_phase = get(run.planning.config, "phase_commit_docs", dict[str, object]())
    number = StepId.parse(step).phase
    for name, value in by_phase.items():
        if number and normal_phase(name) == normal_phase(number) and isinstance(value, bool):
            return value
    return run.settings.commit_docs
