"""Recover from a crash: end leftover processes, remove stale locks and drafts, settle lost attempts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path, PurePath
from typing import Any

from gsd_core.files import DRAFT
from gsd_core.journal.codec import structure, unstructure
from gsd_core.machine.due import Settle
from gsd_core.machine.ledger import CALL_KINDS, Ledger
from gsd_core.processes import end_marked, is_git_at_work

from .runtime import Run
from .spending import with_turns
from .temporary import sweep_folders


async def end_leftovers(run: Run) -> dict[str, Any]:
    """Clean up after an earlier process of this project, and return what was found.

    Only with the project's lock held. It is an OS lock, which the kernel frees on SIGKILL, so
    a process that still runs under an earlier run's id has no owner. The processes go first: the lock of
    a git that is still running is not stale.
    """
    began = time.time()
    marks = {run.journal.mark_of(record.run) for record in run.journal.events(kinds=["run.opened"])}
    ended = await asyncio.to_thread(end_marked, marks)
    # A git that is killed in a commit leaves HEAD.lock or locks below refs, and every later commit fails;
    await asyncio.to_thread(sweep_folders, run.root)
    # index.lock alone is not enough. A git that the user started is left its lock.
    locks = await run.git.sweep_locks(before=began, in_use=is_git_at_work)
    # Drafts are files that a killed process was writing. They have not been used, and are written again.
    pattern = "*".join(DRAFT)
    drafts: set[Path] = set()
    if not (run.root / ".planning").is_symlink():
        drafts = {*(run.root / ".planning").rglob(pattern)}  # it follows no links below
    drafts |= {run.root / path for path in await run.git.untracked() if PurePath(path).match(pattern)}
    for draft in drafts:
        draft.unlink(missing_ok=True)
    lost = [step for step, record in run.state.steps.items() if record.status == "running"]
    # This process has opened the run already. Before that, the last one has to have closed it.
    openings = list(run.journal.events(run=run.id, kinds=["run.opened", "run.closed"]))
    crashed = len(openings) > 1 and openings[-2].kind == "run.opened"
    return {"processes": len(ended), "locks": len(locks), "lost": lost, "crashed": crashed}


async def settle(run: Run, item: Settle) -> None:
    """Record that an attempt is lost, after counting its usage and saving its uncommitted work."""
    facts = [f for f in run.journal.events(run=run.id, kinds=CALL_KINDS) if f.step == item.step]
    # Calls that were never closed have cost money too; a budget has to count them after a crash.
    for call in Ledger(structure).add(with_turns(run.journal, facts)).open_calls:
        data = {"key": call.key, "ended": "lost", "usage": unstructure(call.usage)}
        run.record("agent.closed", data, step=item.step, attempt=item.attempt)
    # The next attempt may overwrite what this one left in the tree; the ref keeps it for a human.
    kept = await run.git.save_recovery(f"{run.id}-{item.step.replace('/', '-')}-{item.attempt}")
    data = {"why": "the process ended", "kept": kept}
    run.record("attempt.lost", data, step=item.step, attempt=item.attempt)
