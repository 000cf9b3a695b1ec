"""Ask: record the inquiry, race the answering plugins and the inbox, record the answers.

What is recorded is never asked again. If nobody can answer, the step is parked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from attrs import evolve

from gsd_core.errors import JournalError, Parked
from gsd_core.hookspecs import gsd_answer
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import InboxItem
from gsd_core.machine.state import QuestionRecord
from gsd_core.model.ids import question_id
from gsd_core.model.question import Answer, Inquiry, Question, refusal
from gsd_core.plugins.call_group import Outcome
from gsd_core.sanitize import clip, sanitize

from .runtime import Run

POLL = timedelta(milliseconds=250)
LONGEST = 4000


async def ask(run: Run, inquiry: Inquiry, *, step: str, occasion: str) -> tuple[Answer, ...]:
    """Return an answer for each question, in their order; raise ``Parked`` if nobody can answer."""
    stamped = _stamp(run, inquiry, step, occasion)
    if not _known(run, stamped):
        data = {"inquiry": unstructure(stamped), "occasion": occasion}
        run.record("question.asked", data, step=step)
    while rest := _rest(run, stamped):
        await _answered_by_someone(run, rest)
    return tuple(_answer(run, question) for question in stamped.questions)


async def ask_for_a_while(run: Run, inquiry: Inquiry, *, step: str, occasion: str) -> tuple[Answer, ...]:
    """Ask as :func:`ask` does, but raise ``Parked`` after a while: an agent's process is waiting."""
    try:
        async with asyncio.timeout(run.limits.park_after.total_seconds()):
            return await ask(run, inquiry, step=step, occasion=occasion)
    except TimeoutError:
        ids = tuple(question.id for question in _stamp(run, inquiry, step, occasion).questions)
        raise Parked(f"{', '.join(ids)} took longer than {run.limits.park_after}", ids) from None


def _stamp(run: Run, inquiry: Inquiry, step: str, occasion: str) -> Inquiry:
    """Give the questions their ids; what an agent wrote is cleaned before anyone sees it."""

    def stamp(question: Question) -> Question:
        clean = _clean(question)
        labels = [option.label for option in clean.options]
        return evolve(clean, id=question_id(run.id, step, occasion, clean.text, labels))

    reason = clip(sanitize(inquiry.reason), LONGEST)
    return evolve(inquiry, step=step, reason=reason, questions=tuple(map(stamp, inquiry.questions)))


def _clean(question: Question) -> Question:
    options = tuple(
        evolve(o, label=sanitize(o.label, multiline=False), description=sanitize(o.description))
        for o in question.options
    )
    text = clip(sanitize(question.text), LONGEST)
    return evolve(question, text=text, header=sanitize(question.header, multiline=False), options=options)


def _record_of(run: Run, question: Question) -> QuestionRecord | None:
    """Return the inquiry that holds the question, the newest one that was not withdrawn."""
    found = [
        record
        for record in run.state.inquiries.values()
        if not record.withdrawn and any(q.id == question.id for q in record.inquiry.questions)
    ]
    return found[-1] if found else None


def _known(run: Run, inquiry: Inquiry) -> bool:
    return all(_record_of(run, question) for question in inquiry.questions)


def _answer(run: Run, question: Question) -> Answer:
    record = _record_of(run, question)
    assert record is not None, f"{question.id} was asked"
    return record.answers[question.id]


def _rest(run: Run, inquiry: Inquiry) -> Inquiry | None:
    """Return the inquiry with the questions that are still open."""
    still = [q for q in inquiry.questions if not ((r := _record_of(run, q)) and q.id in r.answers)]
    return evolve(inquiry, questions=tuple(still)) if still else None


async def _answered_by_someone(run: Run, inquiry: Inquiry) -> None:
    """Return when at least one question is answered; park the step if nobody can."""
    take_answers(run)
    if _rest(run, inquiry) != inquiry:
        return
    racing = asyncio.create_task(_race(run, inquiry), name="gsd:race")
    inbox = asyncio.create_task(_inbox(run, inquiry), name="gsd:inbox")
    try:
        await asyncio.wait({racing, inbox}, return_when=asyncio.FIRST_COMPLETED)
        if inbox.done() or await racing:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(run.settings.wait_for_answers.total_seconds()):
                await inbox
    finally:
        await _end(racing, inbox)
    if _rest(run, inquiry) == inquiry:
        ids = tuple(question.id for question in inquiry.questions)
        raise Parked(f"nobody can answer {', '.join(ids)} now", ids)


async def _end(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _race(run: Run, inquiry: Inquiry) -> bool:
    """Ask all answering plugins; return whether one of them answered something."""

    def accept(answers: Sequence[Answer]) -> bool | str:
        return refused(inquiry, answers) or bool(answers) or "no answer"

    async def won(outcome: Outcome[Sequence[Answer]]) -> None:
        for answer in outcome.value or ():
            record_answer(run, answer, via=outcome.plugin)

    return await run.hooks.race(gsd_answer, accept, won, inquiry) is not None


def refused(inquiry: Inquiry, answers: Sequence[Answer]) -> str:
    """Say why *answers* do not fit; empty if they do, or if there are none."""
    questions = {question.id: question for question in inquiry.questions}
    for answer in answers:
        question = questions.get(answer.question)
        if question is None:
            return f"answers {answer.question!r}, which was not asked"
        if why := refusal(question, answer):
            return why
        if question.human_only and answer.how == "policy":
            return "only a human can answer this"
    return ""


def record_answer(run: Run, answer: Answer, *, via: str, consumes: Sequence[int] = ()) -> None:
    """Record an answer as a fact; a second one to the same question changes nothing."""
    stamped = evolve(answer, via=via, at=run.now())
    steps = [r.inquiry.step for r in run.state.inquiries.values() if answer.question in _ids(r.inquiry)]
    step = steps[-1] if steps else ""
    run.record("question.answered", {"answer": unstructure(stamped)}, step=step, consumes=consumes)


def _ids(inquiry: Inquiry) -> tuple[str, ...]:
    return tuple(question.id for question in inquiry.questions)


async def _inbox(run: Run, inquiry: Inquiry) -> None:
    """Watch the inbox until something of *inquiry* is answered."""
    while _rest(run, inquiry) == inquiry:
        await asyncio.sleep(POLL.total_seconds())
        take_answers(run)


def take_answers(run: Run) -> None:
    """Take what other processes put into the inbox: answers, and the wish to stop."""
    for item in run.journal.take_inbox():
        if item.kind == "stop":
            data = {"what": "stop", "by": item.by, "via": "inbox"}
            run.record("control.asked", data, consumes=[item.id])
        elif item.kind == "answer":
            _take_answer(run, item)
        else:
            run.journal.consumed([item.id])


def _take_answer(run: Run, item: InboxItem) -> None:
    """Record an answer that fits; one that does not is refused, whoever wrote it."""
    try:
        answer = structure(item.data, Answer)
        why = _unfit(run, answer)
    except JournalError as exc:
        answer, why = None, str(exc)
    if answer is not None and not why:
        record_answer(run, evolve(answer, by=item.by), via="inbox", consumes=[item.id])
        return
    run.record("answer.refused", {"answer": dict(item.data), "reason": why}, consumes=[item.id])


def _unfit(run: Run, answer: Answer) -> str:
    for record in run.state.inquiries.values():
        if not record.withdrawn and any(q.id == answer.question for q in record.inquiry.questions):
            why = "answered already" if answer.question in record.answers else ""
            return why or refused(record.inquiry, [answer])
    return "no such question in this run"
