"""Come back after a crash: end leftovers, sweep locks, settle what has no owner, keep what lies about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.machine.due import Settle
from gsd_core.model.usage import Usage
from gsd_core.processes import end_marked

from .runtime import DRAFT, Run


async def end_leftovers(run: Run) -> dict[str, Any]:
    """End what an earlier process of this project left running; sweep git's locks. We hold the lock."""
    ids = {record.run for record in run.journal.events(kinds=["run.opened"])}
    ended = await asyncio.to_thread(end_marked, ids)
    locks = await run.git.sweep_locks()
    await _sweep_drafts(run)
    lost = [step for step, record in run.state.steps.items() if record.status == "running"]
    return {"processes": len(ended), "locks": len(locks), "lost": lost}


async def _sweep_drafts(run: Run) -> None:
    """Remove what a killed process was just writing: nobody has seen it, and it is written again."""
    drafts = {*(run.root / ".planning").rglob("*".join(DRAFT))}
    drafts |= {run.root / path for path in await run.git.untracked() if PurePath(path).match("*".join(DRAFT))}
    for draft in drafts:
        draft.unlink(missing_ok=True)


async def settle(run: Run, item: Settle) -> None:
    """Say that an attempt is lost, after what it used is counted and what it left is kept safe."""
    for opened in _unclosed(run, item):
        usage = _used(run, opened)
        data = {"key": opened.data["key"], "ended": "lost", "usage": unstructure(usage)}
        run.record("agent.closed", data, step=item.step, attempt=item.attempt)
    kept = await run.git.save_recovery(f"{run.id}-{item.step.replace('/', '-')}-{item.attempt}")
    data = {"why": "the process ended", "kept": kept}
    run.record("attempt.lost", data, step=item.step, attempt=item.attempt)


def _unclosed(run: Run, item: Settle) -> Iterable[Record]:
    """Return the agent calls of the attempt that were opened and never closed."""
    opened: dict[str, Record] = {}
    for fact in run.journal.events(run=run.id, kinds=["agent.opened", "agent.closed"]):
        if fact.step == item.step:
            opened.pop(fact.data["key"], None)
            if fact.kind == "agent.opened":
                opened[fact.data["key"]] = fact
    return opened.values()


def _used(run: Run, opened: Record) -> Usage:
    """Add up the turns that were seen of a lost call."""
    total = Usage()
    for note in run.journal.events(after=opened.seq, run=run.id, kinds=["agent.activity"]):
        if note.step == opened.step and note.data.get("usage") and note.data.get("key") == opened.data["key"]:
            total = total + structure(note.data["usage"], Usage)
    return total


def dollars(usage: Usage) -> str:
    """Return an amount as text, empty if nobody knows it."""
    if not usage.dollars:
        return "" if usage.dollars is None else "0"
    return str(usage.dollars.quantize(Decimal("0.0001")))
