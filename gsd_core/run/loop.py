"""The loop: due → do → fold, until the end."""

from __future__ import annotations

import asyncio
from datetime import datetime

from gsd_core.errors import Parked
from gsd_core.machine.due import AskAgain, Due, End, Escalate, Land, Settle, Start, Wait, due

from .ask import POLL, ask, take_answers
from .escalate import escalate, unanswered
from .land import land
from .observe import observe
from .perform import perform
from .recover import settle
from .session import Run


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
        case Land():
            await land(run, item.step)
        case Settle():
            await settle(run, item)
        case Escalate():
            return await _escalate(run, item)
        case AskAgain():
            return await _ask_again(run, item)
        case Wait():
            await _wait(run, item.step, item.until)
        case Start():
            await perform(run, item)
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
    occasion = next(q.occasion for q in run.state.inquiries.values() if q.inquiry == item.inquiry)
    try:
        await ask(run, item.inquiry, step=item.step, occasion=occasion)
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
    return End(outcome="blocked", exit=3, reason=f"{step} waits for an answer: {how}")


async def _wait(run: Run, step: str, until: datetime) -> None:
    """Sleep until a step may go on; an answer or a stop from outside is heard meanwhile."""
    while run.now() < until and not run.state.stop_asked:
        left = (until - run.now()).total_seconds()
        await asyncio.sleep(max(0.0, min(left, POLL.total_seconds())))
        take_answers(run)
    if not run.state.stop_asked:
        run.record("timer.fired", {}, step=step)
