"""Ask a human about what failed: retry, skip or abort; nobody there ends the run by its cause.

The loop: due → do → fold, until the end.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from gsd_core.errors import ExitCode, Parked
from gsd_core.machine.due import ApplyResult, AskAgain, Due, End, Escalate, Settle, Start, Wait, due, exit_of
from gsd_core.model.ids import StepId
from gsd_core.model.question import Inquiry, Option, Question

from .apply import apply_result
from .observe import observe
from .questions import POLL, ask, take_answers
from .recovery import settle
from .runtime import Run
from .step import run_step


async def escalate(run: Run, item: Escalate) -> None:
    """Ask; raises ``Parked`` if nobody can answer."""
    step = StepId.parse(item.step)
    options = (
        Option(label="Retry", description=_retry(item)),
        Option(label="Skip", description="leave this phase, and all that depends on it, undone"),
        Option(label="Abort", description="end the run here; it can be resumed"),
    )
    question = Question(text=_text(item, step), header="What now?", options=options, free_text=False)
    inquiry = Inquiry(kind="escalation", questions=(question,), reason=_reason(item))
    key = f"{item.cause} {item.generation}"
    await ask(run, inquiry, step=item.step, key=key)


def _retry(item: Escalate) -> str:
    return "one more gap round" if item.cause == "gaps" else "try the step again, afresh"


def _text(item: Escalate, step: StepId) -> str:
    match item.cause:
        case "gaps":
            listed = "".join(f"\n- {gap}" for gap in item.gaps)
            return f"Phase {step.phase} still has gaps:{listed}\nWhat now?"
        case "lost":
            return f"Step {item.step} was lost three times in a row. What now?"
        case "repeats":
            return f"Step {item.step} was done, and its work is gone from the disk each time. What now?"
        case "failed":
            return f"Step {item.step} failed: {item.failure.message if item.failure else ''}\nWhat now?"


def _reason(item: Escalate) -> str:
    hint = item.failure.hint if item.failure else ""
    return hint or {"gaps": "the gap rounds are used up, or the last one closed none"}.get(item.cause, "")


def unanswered(item: Escalate) -> End:
    """Return how a run ends when nobody answers an escalation."""
    if item.cause == "gaps":
        return End(outcome="gaps", exit=ExitCode.GAPS, reason=f"gaps remain: {', '.join(item.gaps)}")
    code = exit_of(item.failure)
    message = item.failure.message if item.failure else _WITHOUT_FAILURE[item.cause]
    return End(
        outcome="budget" if code == ExitCode.EXHAUSTED else "failed",
        exit=code,
        reason=f"{item.step}: {message}",
    )


_WITHOUT_FAILURE = {
    "lost": "three attempts in a row were lost with the process that made them",
    "repeats": "it was done, and its work is gone from the disk each time",
    "failed": "it failed",
}


async def loop(run: Run) -> End:
    """Do what is due until the run ends or nobody can answer what it waits for."""
    while True:
        take_answers(run)
        await observe(run)
        item = due(run.state)[0]
        if isinstance(item, End):
            return item
        if end := await _do(run, item):
            return end


async def _do(run: Run, item: Due) -> End | None:
    match item:
        case ApplyResult():
            await apply_result(run, item.step)
        case Settle():
            await settle(run, item)
        case Escalate():
            return await _escalate(run, item)
        case AskAgain():
            return await _ask_again(run, item)
        case Wait():
            await _wait(run, item.step, item.until)
        case Start():
            await run_step(run, item)
        case End():
            return item
    return None


async def _escalate(run: Run, item: Escalate) -> End | None:
    try:
        await escalate(run, item)
    except Parked:
        return unanswered(item)
    return None


async def _ask_again(run: Run, item: AskAgain) -> End | None:
    key = next(q.key for q in run.state.inquiries.values() if q.inquiry == item.inquiry)
    try:
        await ask(run, item.inquiry, step=item.step, key=key)
    except Parked:
        return _waits(run, item.step)
    return None


def _waits(run: Run, step: str) -> End:
    open_questions = [
        question.id
        for record in run.state.inquiries.values()
        if record.open
        for question in record.inquiry.questions
        if question.id not in record.answers
    ]
    how = f"gsd answer {open_questions[0]} …, then gsd resume" if open_questions else "gsd resume"
    return End(outcome="blocked", exit=ExitCode.QUESTION, reason=f"{step} waits for an answer: {how}")


async def _wait(run: Run, step: str, until: datetime) -> None:
    """Sleep until a step may go on; an answer or a stop from outside is heard meanwhile."""
    while run.now() < until and not run.state.stop_asked:
        left = (until - run.now()).total_seconds()
        await asyncio.sleep(max(0.0, min(left, POLL.total_seconds())))
        take_answers(run)
    if not run.state.stop_asked:
        run.record("timer.fired", {}, step=step)
