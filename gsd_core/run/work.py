"""The uncommitted work of a step: what was there before it, what belongs to it, and what is unexplained.

git knows that a file has changed, but not by whom. Three things decide: a snapshot of what was uncommitted
when the step began, another one when an attempt ended, and the files that the task names or that the agent
wrote with a tool. What none of them explains may be a person's work: it is reported, and never committed
silently.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

from gsd_core.errors import ProjectError
from gsd_core.files import remove_below
from gsd_core.git import GitError, GitUnavailable, digests
from gsd_core.machine import facts
from gsd_core.machine.facts import Recorded
from gsd_core.machine.state import StepRecord
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.model.step import StepRequest
from gsd_core.sanitize import redact

from .commit_hooks import commit_with_hooks
from .delivery import is_within, may_commit, needs_consent, nested_projects, promised
from .permission import StepGate
from .questions import ask, withdraw
from .runtime import Run
from .secret_files import allowed_secret_files, find_secret_files, record_left

log = logging.getLogger(__name__)

T = TypeVar("T")

COPY_LIMIT = 1_000_000
"""The size, in bytes, of the largest unlisted files that the copy before a step contains."""
COPY_COUNT = 500
"""How many of those files it contains at most."""
SHOWN = 10
COMMIT_FIRST, LET_CHANGE, STOP = "Commit them first", "Let the plan change them", "Stop"
WITHOUT, COMMIT_NOW, GO_ON = "Work without them", "Commit them now", "Go on"
COMMIT_REST, LEAVE = "Commit them with the plan", "Leave them uncommitted"


@frozen(kw_only=True)
class Changes:
    """The uncommitted paths: those that changed during the step, and those that it found and left alone."""

    ours: tuple[str, ...] = ()
    theirs: frozenset[str] = frozenset()


async def fingerprints(run: Run) -> dict[str, str]:
    """Return a fingerprint of each uncommitted path."""
    return digests(run.tree, await run.git.changed())


async def found_before(run: Run, record: StepRecord) -> dict[str, str]:
    """Return the uncommitted paths that do not belong to the step, with their fingerprints.

    For a first attempt, these are all. A later attempt takes over what its predecessor left, but not what
    a person has changed since: it is compared with the snapshot of the attempt's end. After a kill there is
    no such snapshot; then everything that is new since the step began belongs to it.
    """
    now = await fingerprints(run)
    is_retry = record.attempt > 0 and record.status not in ("completed", "skipped")
    started = _last(run, str(record.id), facts.AttemptStarted) if is_retry else None
    if started is None:
        return now
    before = {path: found for path, found in _found(started.data).items() if path in now}
    ended = _last(run, str(record.id), facts.AttemptLost, facts.AttemptFailed, after=started.seq)
    left = ended.data.left if ended else None
    if left is not None:
        before |= {path: found for path, found in now.items() if left.get(path) != found}
    return before


async def end_of_attempt(run: Run, gate: StepGate) -> dict[str, Any]:
    """Return what the fact of an attempt's end says about its uncommitted work; nothing if git fails."""
    with suppress(GitError):
        return {"left": await fingerprints(run), "written": tuple(sorted(gate.written))}
    return {}


def written_before(run: Run, step: str) -> set[str]:
    """Return the files that agents of earlier attempts at the step wrote with a tool."""
    written: set[str] = set()
    for fact in run.facts(facts.AttemptLost, facts.AttemptFailed, facts.StepCompleted, step=step):
        ended = fact.data
        written = {*written, *(ended.written or ())} if isinstance(ended, facts.AttemptEnded) else set()
    return written


async def changes(run: Run, step: str) -> Changes:
    """Return the uncommitted paths of now; those unchanged since the step found them are not its own."""
    now = await fingerprints(run)
    started = _last(run, step, facts.AttemptStarted)
    before = _found(started.data) if started else {}
    # A person may change a file once more after it was settled; then it is theirs again.
    found = [item for fact in _since_completed(run, step, facts.FilesSettled) for item in fact.found.items()]
    settled = {path for path, digest in found if before.get(path) == digest}
    left = {path: digest for path, digest in before.items() if path not in settled}
    # Journals of earlier versions have no fingerprints: there, a path that was dirty stays the user's.
    theirs = {path for path, digest in left.items() if not digest or now.get(path) in (digest, None)}
    return Changes(ours=tuple(sorted(set(now) - theirs)), theirs=frozenset(theirs & set(now)))


def unexplained(root: Path, paths: Iterable[str], named: Collection[str]) -> tuple[str, ...]:
    """Return those of *paths* that were not named and that a commit could take.

    What changes in a nested project's folder is that project's business.
    """
    paths = [path for path in paths if may_commit(path) and not is_within(path, named)]
    nested = nested_projects(root, paths)
    return tuple(path for path in paths if not is_within(path, nested))


async def keep_and_ask(run: Run, step: StepRequest) -> None:
    """Before an agent works on a plan: copy what the user has not committed, and ask about listed files.

    The copy is a commit under ``refs/gsd/recover/``. It contains every uncommitted file that the plan lists,
    also if git ignores it, and smaller ones that it does not list, because an agent may change those too.
    In a work tree of its own, an agent can change none of them, but builds on what is committed.
    """
    if step.plan is None:
        return
    names = promised(step.plan)
    if run.workspace.name:
        dirty = await run.in_project.git.changed()
        if listed := [path for path in dirty if may_commit(path) and is_within(path, names)]:
            await _ask_about_listed(run, step, listed)
        return
    found = (await changes(run, step.id)).theirs
    files = [path for path in names if (run.tree / path).is_file() and _size(run.tree / path) <= COPY_LIMIT]
    ignored = await run.git.ignored(files) if files else ()
    listed = sorted(path for path in found if may_commit(path) and is_within(path, names))
    kept = await _keep(run, step, [*listed, *ignored], found)
    if listed:
        await _ask_about_listed(run, step, listed, kept)


async def _keep(run: Run, step: StepRequest, listed: Collection[str], found: Collection[str]) -> str:
    """Save what is not in an earlier copy of the step, and return the ref; empty if there is nothing."""
    small = [path for path in sorted(found) if _size(run.tree / path) <= COPY_LIMIT and may_commit(path)]
    paths = dict.fromkeys([*listed, *small[:COPY_COUNT]])
    contents = digests(run.tree, paths)
    for earlier in _since_completed(run, step.id, facts.FilesKept):
        if contents.items() <= earlier.found.items():
            return earlier.ref
    if not paths:
        return ""
    ref = await run.git.save_recovery(f"{run.id}-{step.id.replace('/', '-')}-before", tuple(paths))
    if ref:
        kept = facts.FilesKept(ref=ref, paths=tuple(listed or paths), listed=bool(listed), found=contents)
        run.record(kept, step=step.id, attempt=step.attempt)
    return ref


async def _ask_about_listed(run: Run, step: StepRequest, listed: Collection[str], kept: str = "") -> None:
    """Ask what to do with uncommitted files that the plan lists, and do it; ``Stop`` ends the run."""
    assert step.plan is not None
    copy = f"; a copy is kept under {kept}" if kept else ""
    others = Option(label=LET_CHANGE, description=f"they become part of the plan's commits{copy}")
    if run.workspace.name:
        others = Option(label=WITHOUT, description="the plan is merged once you have committed or moved them")
    options = (
        Option(label=COMMIT_FIRST, description="in a separate commit, before the plan", recommended=True),
        others,
        Option(label=STOP, description="end the run here; commit or move them yourself, then resume"),
    )
    text = f"Plan {step.plan.id} lists files with uncommitted changes that are not its own:{_bullets(listed)}"
    question = Question(text=text, header="Uncommitted", options=options, free_text=False)
    inquiry = Inquiry(questions=(question,), reason="the plan may overwrite them")
    project = run.in_project
    contents = digests(project.tree, sorted(listed))
    # Other contents are another question: an answer holds for the text that it was given for.
    key = f"uncommitted {hashlib.sha256(repr(contents).encode()).hexdigest()[:12]}"
    [answer] = await ask(run, inquiry, step=step.id, key=key)
    if answer.chosen == (STOP,):
        # The run ends as with `gsd stop`; the question is asked again when it is resumed.
        run.record(facts.ControlAsked(what="stop", by=answer.by, via=answer.via))
        withdraw(run, step.id, key)
        message = "stopped, because the plan lists files with uncommitted changes"
        hint = f"commit or move them, then run `{run.request.info.command} resume`"
        raise ProjectError(message, hint=hint)
    if answer.chosen == (WITHOUT,):
        return
    how, commit = "plan", ""
    if answer.chosen == (COMMIT_FIRST,):
        how = "committed"
        commit = await _commit_once(project, step, listed, "before", "uncommitted changes before the plan")
        if run is not project and await run.git.is_ancestor(await run.git.head() or "", commit):
            await run.effects.fast_forward(commit)
    settled = facts.FilesSettled(paths=tuple(sorted(listed)), found=contents, how=how, commit=commit)
    run.record(settled, step=step.id, attempt=step.attempt)


async def settle_leftovers(run: Run, step: StepRequest) -> None:
    """After a plan: ask about files that changed without being named, and record what is left."""
    if step.plan is None:
        return
    # All tasks are committed, so what is left here is what no task named, or changed after its commit.
    ours = (await changes(run, step.id)).ours
    # Nobody is asked about these: a person who wants one committed does it.
    secret = [path for path in ours if needs_consent(path) and (run.tree / path).is_file()]
    others = nested_projects(run.tree, secret)
    record_left(run, step, [path for path in secret if not is_within(path, others)])
    left = unexplained(run.tree, ours, ())
    commits = bool(left) and await _commits_left(run, step, left)
    kept = None
    if run.workspace.name:
        aside = [path for path in ours if not (commits and path in left)]
        named = [path for path in aside if redact(path, strict=True) != path]
        # A ref would keep secrets in the repository for good.
        stay = {*secret, *named, *await find_secret_files(run, aside)}
        if stay:
            log.warning("the work tree %s stays: it has files that may contain secrets", run.tree)
        if aside := [path for path in aside if path not in stay]:
            kept = await put_aside(run, f"{run.id}-{step.id.replace('/', '-')}-left", aside)
    if left and not commits:
        run.record(facts.FilesLeft(paths=left, kept=kept), step=step.id, attempt=step.attempt)


async def put_aside(run: Run, name: str, paths: Sequence[str]) -> str:
    """Keep what is not committed of *paths* in a ref, take it back, and return the ref; repeatable."""
    ref = await run.git.save_recovery(name, paths) if paths else ""
    for path in await run.git.take_back(paths):
        remove_below(run.tree, path)
    return ref


async def _commits_left(run: Run, step: StepRequest, left: Sequence[str]) -> bool:
    """Ask about files that no task named; return whether they are committed now."""
    assert step.plan is not None
    then = "a ref below refs/gsd/recover keeps them" if run.workspace.name else "later steps leave them alone"
    options = (
        Option(label=COMMIT_REST, description="in a separate commit, after the plan's tasks"),
        Option(label=LEAVE, description=then, recommended=True),
    )
    text = f"These files changed during plan {step.plan.id}, but no task named them:{_bullets(left)}"
    question = Question(text=text, header="Left over", options=options, free_text=False)
    reason = "a command of the agent may have written them, or a person"
    inquiry = Inquiry(questions=(question,), reason=reason)
    [answer] = await ask(run, inquiry, step=step.id, key=f"left over {step.plan.id}")
    if answer.chosen != (COMMIT_REST,):
        return False
    await _commit_once(run, step, left, "rest", "files that changed during the plan")
    return True


async def report_leftovers(run: Run, step: StepRequest) -> None:
    """After an agent that makes its commits itself: record what it has not committed."""
    left = [path for path in (await changes(run, step.id)).ours if not path.startswith(".planning/autopilot")]
    if left:
        run.record(facts.FilesLeft(paths=tuple(left), why="command"), step=step.id, attempt=step.attempt)


async def require_branch(run: Run) -> None:
    """Raise ``GitUnavailable`` if the branch was changed while the run works: it would commit elsewhere."""
    now = await run.git.branch()
    if run.workspace.branch is not None and now != run.workspace.branch:
        here = f"the current branch is {now!r}" if now else "HEAD is detached"
        hint = f"git switch {run.workspace.branch}" if run.workspace.branch else "git switch --detach"
        raise GitUnavailable(f"the run works on branch {run.workspace.branch!r}, but now {here}", hint=hint)


async def _commit_once(run: Run, step: StepRequest, paths: Collection[str], name: str, subject: str) -> str:
    """Commit *paths* with trailers that find the commit again after a crash."""
    assert step.plan is not None
    names = {"GSD-Run": run.id, "GSD-Step": step.id, "GSD-Task": f"{step.plan.id}/{name}"}
    if known := await run.git.find(names, since=run.step(step.id).base_commit):
        return known
    suspects = await find_secret_files(run, paths)
    allowed = await allowed_secret_files(run, step, suspects)
    paths = [path for path in paths if path not in suspects or path in allowed]
    if not paths:
        return ""
    await require_branch(run)
    text = f"chore({step.plan.id}): {subject}"
    return await commit_with_hooks(run, tuple(paths), text, names, body="", empty=False)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0


def _bullets(paths: Collection[str]) -> str:
    shown = sorted(paths)[:SHOWN]
    more = [f"and {len(paths) - SHOWN} more"] if len(paths) > SHOWN else []
    return "".join(f"\n- {path}" for path in [*shown, *more])


def _found(started: facts.AttemptStarted) -> dict[str, str]:
    """Return what an attempt found uncommitted; earlier versions recorded the paths only."""
    known = started.found or {}
    return {path: known.get(path, "") for path in started.dirty_before}


def _last(run: Run, step: str, *kinds: type[T], after: int = 0) -> Recorded[T] | None:
    return next(iter([*run.facts(*kinds, step=step, after=after)][-1:]), None)


def _since_completed(run: Run, step: str, kind: type[T]) -> list[T]:
    """Return the facts of that kind about the step's current work."""
    completed = _last(run, step, facts.StepCompleted)
    return [fact.data for fact in run.facts(kind, step=step, after=completed.seq if completed else 0)]
