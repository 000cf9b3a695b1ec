"""Recover from a crash: end leftover processes, remove stale locks and drafts, settle lost attempts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path, PurePath

from gsd_core.files import DRAFT
from gsd_core.git import Git
from gsd_core.machine.due import Settle
from gsd_core.machine.facts import AgentClosed, AttemptLost, Recovered, RunClosed, RunOpened
from gsd_core.machine.ledger import CALL_KINDS, Ledger
from gsd_core.processes import end_marked, is_git_at_work

from .runtime import Run
from .spending import with_turns
from .temporary import sweep_folders


async def end_leftovers(run: Run) -> Recovered:
    """Clean up after an earlier process of this project, and return what was found.

    Only with the project's lock held. It is an OS lock, which the kernel frees on SIGKILL, so
    a process that still runs under an earlier run's id has no owner. The processes go first: the lock of
    a git that is still running is not stale.
    """
    marks = {run.journal.mark_of(fact.run) for fact in run.journal.facts(RunOpened)}
    ended = await asyncio.to_thread(end_marked, marks)
    await asyncio.to_thread(sweep_folders, run.root)
    locks = await remove_remains(run.git, run.journal.path.parent)
    lost = tuple(step for step, record in run.state.steps.items() if record.status == "running")
    # This process has opened the run already. Before that, the last one has to have closed it.
    openings = list(run.facts(RunOpened, RunClosed))
    crashed = len(openings) > 1 and isinstance(openings[-2].data, RunOpened)
    return Recovered(processes=len(ended), locks=locks, lost=lost, crashed=crashed)


async def remove_remains(git: Git, directory: Path) -> int:
    """Remove git's stale locks, and the drafts of killed processes; return the number of locks.

    Only with the project's lock held; *directory* is that of the journal. Drafts are files that a killed
    process was writing. They have not been used, and are written again.
    """
    # A git that is killed in a commit leaves HEAD.lock or locks below refs, and every later commit fails;
    # index.lock alone is not enough. A git that the user started is left its lock.
    locks = await git.sweep_locks(before=time.time(), in_use=is_git_at_work)
    pattern = "*".join(DRAFT)
    found = [git.root / path for path in await git.untracked() if PurePath(path).match(pattern)]
    await asyncio.to_thread(_remove_drafts, found, directory, git.root / ".planning")
    return len(locks)


def _remove_drafts(found: Iterable[Path], directory: Path, planning: Path) -> None:
    pattern = "*".join(DRAFT)
    # It follows no links below.
    in_planning = () if planning.is_symlink() else planning.rglob(pattern)
    for draft in {*found, *directory.glob(pattern), *in_planning}:
        draft.unlink(missing_ok=True)


async def settle(run: Run, item: Settle) -> None:
    """Record that an attempt is lost, after counting its usage and saving its uncommitted work."""
    facts = list(run.journal.events(run=run.id, step=item.step, kinds=CALL_KINDS))
    # Calls that were never closed have cost money too; a budget has to count them after a crash.
    for call in Ledger().add(with_turns(run.journal, facts)).open_calls:
        closed = AgentClosed(key=call.key, ended="lost", usage=call.usage)
        run.record(closed, step=item.step, attempt=item.attempt)
    # The next attempt may overwrite what this one left in the tree; the ref keeps it for a human.
    kept = await run.git.save_recovery(f"{run.id}-{item.step.replace('/', '-')}-{item.attempt}")
    lost = AttemptLost(why="the process ended", kept=kept)
    run.record(lost, step=item.step, attempt=item.attempt)
