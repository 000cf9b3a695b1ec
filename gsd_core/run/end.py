"""The end of a run: by its work, a signal, a wish or an error; recorded once."""

from __future__ import annotations

import asyncio

from gsd_core.errors import GsdError, UserError
from gsd_core.machine.due import End
from gsd_core.notice import Notice
from gsd_core.text import clip, redact, sanitize

from .recover import dollars
from .session import Run, RunEnd
from .stop import Stopper


async def close(run: Run, end: End) -> RunEnd:
    """Record how the run ended, with what it cost and what it committed; an end that is recorded stands."""
    commits = len(await run.git.trailed(run.id))
    spent = dollars(run.ledger.total)
    if run.state.closed:
        end = End(outcome=run.state.closed, exit=run.state.exit, reason=run.state.reason)
    else:
        data = {
            "outcome": end.outcome, "exit": end.exit, "reason": end.reason, "dollars": spent,
            "commits": commits,
        }  # fmt: skip
        run.record("run.closed", data)
    return RunEnd(
        outcome=end.outcome, exit=end.exit, reason=end.reason, run=run.id, dollars=spent, commits=commits
    )


def stopped(run: Run, stopper: Stopper | None) -> End | None:
    """Return the end of a run that was told to stop; ``None`` if somebody else cancels us."""
    task = asyncio.current_task()
    if stopper and stopper.received:
        if task:
            task.uncancel()
        name = {2: "SIGINT", 15: "SIGTERM"}.get(stopper.received, str(stopper.received))
        return End(outcome="stopped", exit=128 + stopper.received, reason=f"stopped by {name}")
    if run.state.stop_asked:
        if task:
            task.uncancel()
        return End(outcome="stopped", exit=130, reason="stopped on request")
    return None


def ended_by(exc: GsdError) -> End:
    """Return the end by an error that no step is to blame for."""
    code = 2 if isinstance(exc, UserError) else 1
    return End(outcome="failed", exit=code, reason=f"{exc}" + (f" ({exc.hint})" if exc.hint else ""))


def crash_notice(run: Run, exc: Exception) -> Notice:
    """Return what people are told when the run dies of an error of its own."""
    body = clip(redact(sanitize(f"{type(exc).__name__}: {exc}")), 2000)
    key = f"crash {run.id} {run.state.seq}"
    title = f"{run.root.name}: gsd itself failed; the run can be resumed"
    return Notice(key=key, type="crash", level="error", title=title, body=body, run=run.id)
