"""Ask questions: record the inquiry, wait for answer plugins and the inbox, record the answers.

A question's id is derived from its text and the key of the inquiry, so the same question of a later attempt
has the same id: an answered question is never asked again. If nobody can answer now, ``Parked`` ends the
attempt; the answer starts the step again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.codec import structure
from gsd_core.errors import JournalError, Parked
from gsd_core.hookspecs import gsd_answer
from gsd_core.journal.schema import InboxItem
from gsd_core.machine import facts
from gsd_core.machine.state import QuestionRecord, inquiry_key
from gsd_core.model.ids import question_id
from gsd_core.model.question import Answer, Inquiry, Question, refusal
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import build_manager
from gsd_core.sanitize import clip, safe_text
from gsd_core.settings import QuestionSettings

from .runtime import Run

POLL = timedelta(milliseconds=250)
MAX_TEXT_LENGTH = 4000
LEAST_TIME = timedelta(seconds=2)
"""How long the answer plugins have before ``questions.unanswered`` decides, or before a run pauses."""


async def ask(
    run: Run, inquiry: Inquiry, *, step: str, key: str, agent_waits: bool = False
) -> tuple[Answer, ...]:
    """Return an answer to each question, in their order; raise ``Parked`` if nobody can answer.

    *key* distinguishes inquiries with the same text. With *agent_waits*, an agent's process is kept alive for
    the answer: then waiting is limited, and the conversation is resumed once the answer is there. The setting
    ``questions.unanswered`` decides about questions that stay open for too long.
    """
    stamped = _stamp(run, inquiry, step, key)
    if not all(_record_of(run, question.id) for question in stamped.questions):
        # "occasion" is the name of the key on disk, in all versions.
        run.record(facts.QuestionAsked(inquiry=stamped, occasion=key), step=step)
    longest = run.request.settings.of(QuestionSettings).timeout
    # They may have been asked by an earlier process.
    asked = [record.at for question in stamped.questions if (record := _record_of(run, question.id))]
    # A process that resumes the run after that time may have been given the answer: `--answers`, `--yes`.
    left = min(longest, max(max(asked, default=run.now()) + longest - run.now(), LEAST_TIME))
    limit = run.limits.park_after if agent_waits else None
    timeout = asyncio.timeout(limit.total_seconds() if limit is not None else None)
    try:
        async with timeout:
            # The event loop's clock from here on: a clock that is set forward must not decide anything.
            decide_at = asyncio.get_running_loop().time() + left.total_seconds()
            while unanswered := _unanswered(run, stamped):
                await _wait_for_an_answer(run, unanswered, decide_at)
    except TimeoutError:
        if not timeout.expired():
            raise
        ids = _ids(stamped)
        raise Parked(f"no answer to {', '.join(ids)} within {limit}", ids) from None
    answers = (_answer_to(run, question.id) for question in stamped.questions)
    return tuple(answer for answer in answers if answer is not None)


def last_asked(run: Run, step: str, key: str) -> QuestionRecord | None:
    """Return the last inquiry of the step with that *key*, if any."""
    asked = reversed(list(run.state.inquiries.values()))
    return next((one for one in asked if one.key == key and one.inquiry.step == step), None)


def withdraw(run: Run, step: str, key: str) -> None:
    """Record that the last inquiry of the step with that *key* needs no answer any more."""
    if record := last_asked(run, step, key):
        run.record(facts.QuestionWithdrawn(key=inquiry_key(record.inquiry)), step=step)


def answered(run: Run, step: str, keys: Collection[str] = ()) -> tuple[tuple[Question, Answer], ...]:
    """Return the answered questions of the step's checkpoints and of inquiries with *keys*, oldest first.

    The agent that a checkpoint's question was asked for may have ended before the answer was there.
    """
    return tuple(
        (question, record.answers[question.id])
        for record in run.state.inquiries.values()
        if record.inquiry.step == step and not record.withdrawn
        if record.inquiry.kind == "checkpoint" or (record.inquiry.kind == "decision" and record.key in keys)
        for question in record.inquiry.questions
        if question.id in record.answers
    )


def _stamp(run: Run, inquiry: Inquiry, step: str, key: str) -> Inquiry:
    """Return the inquiry with ids, and with all texts sanitized and redacted: agents wrote them, people
    read them."""
    questions: list[Question] = []
    for question in inquiry.questions:
        options = tuple(
            attrs.evolve(o, label=safe_text(o.label, multiline=False), description=safe_text(o.description))
            for o in question.options
        )
        text = safe_text(question.text)
        if inquiry.kind != "permission":  # the rest of a command would be approved unseen
            text = clip(text, MAX_TEXT_LENGTH)
        name = question_id(run.id, step, key, text, [option.label for option in options])
        header = safe_text(question.header, multiline=False)
        questions.append(attrs.evolve(question, id=name, text=text, header=header, options=options))
    reason = clip(safe_text(inquiry.reason), MAX_TEXT_LENGTH)
    return attrs.evolve(inquiry, step=step, reason=reason, questions=tuple(questions))


def _record_of(run: Run, question: str) -> QuestionRecord | None:
    """Return the newest inquiry with that question; one that was withdrawn does not count."""
    newest = reversed(list(run.state.inquiries.values()))
    return next((one for one in newest if not one.withdrawn and question in _ids(one.inquiry)), None)


def _ids(inquiry: Inquiry) -> tuple[str, ...]:
    return tuple(question.id for question in inquiry.questions)


def _answer_to(run: Run, question: str) -> Answer | None:
    record = _record_of(run, question)
    return record.answers.get(question) if record else None


def _unanswered(run: Run, inquiry: Inquiry) -> Inquiry | None:
    """Return the inquiry with its unanswered questions only; ``None`` if all are answered."""
    left = tuple(question for question in inquiry.questions if _answer_to(run, question.id) is None)
    return attrs.evolve(inquiry, questions=left) if left else None


def _recommended(inquiry: Inquiry) -> list[Answer]:
    """Return the answers that a policy may give in a person's place: recommended options, and no others."""
    if inquiry.kind == "escalation":
        return []
    found = [
        (question, next((option.label for option in question.options if option.recommended), ""))
        for question in inquiry.questions
        if not question.human_only
    ]
    by = "questions.unanswered = recommended"
    return [Answer(question=q.id, chosen=(label,), by=by, how="timeout") for q, label in found if label]


async def _wait_for_an_answer(run: Run, inquiry: Inquiry, decide_at: float) -> None:
    """Return once at least one question is answered, by a person or, at *decide_at*, by the user's policy.

    Raise ``Parked`` if nobody can answer. *decide_at* is a time of the event loop.
    """
    policy = run.request.settings.of(QuestionSettings).unanswered
    if policy == "wait" or (policy == "recommended" and not _recommended(inquiry)):
        await _wait_for_people(run, inquiry, run.settings.wait_for_answers)
        return
    left = max(0.0, decide_at - asyncio.get_running_loop().time())
    at_least = timedelta(seconds=left + 1) if policy == "recommended" else timedelta(0)
    limit = asyncio.timeout(left)
    try:
        async with limit:
            await _wait_for_people(run, inquiry, max(at_least, run.settings.wait_for_answers))
    except TimeoutError:
        if not limit.expired():
            raise
        if _unanswered(run, inquiry) != inquiry:
            return
        if policy == "stop":
            ids = _ids(inquiry)
            raise Parked(f"nobody has answered {', '.join(ids)} in time", ids) from None
        for answer in _recommended(inquiry):
            _record_answer(run, answer, via="questions.timeout")


async def _wait_for_people(run: Run, inquiry: Inquiry, wait_for_inbox: timedelta) -> None:
    """Return once at least one question is answered; raise ``Parked`` if nobody can answer.

    If no plugin can, somebody may still use ``gsd answer`` for as long as *wait_for_inbox*.
    """

    async def watch_inbox() -> None:
        loop = asyncio.get_running_loop()
        soonest = loop.time() + LEAST_TIME.total_seconds()
        # A run that is to pause must not wait for a human for hours: the question is asked again later.
        # Policies such as `--yes` still answer, so that the step can be finished.
        while _unanswered(run, inquiry) == inquiry and not (run.state.pause_asked and loop.time() >= soonest):
            await asyncio.sleep(POLL.total_seconds())
            take_answers(run)

    take_answers(run)
    if _unanswered(run, inquiry) != inquiry:
        return
    race = asyncio.create_task(_race(run, inquiry), name="gsd:race")
    inbox = asyncio.create_task(watch_inbox(), name="gsd:inbox")
    try:
        await asyncio.wait({race, inbox}, return_when=asyncio.FIRST_COMPLETED)
        if inbox.done():
            inbox.result()  # if the journal cannot be read
            if _unanswered(run, inquiry) == inquiry:
                ids = _ids(inquiry)
                raise Parked(f"the run pauses, and {', '.join(ids)} is not answered", ids)
            return
        if await race:
            return
        # No plugin can answer. The user may want to wait for someone who uses `gsd answer`.
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_for_inbox.total_seconds()):
                await inbox
    finally:
        race.cancel()
        inbox.cancel()
        await asyncio.gather(race, inbox, return_exceptions=True)
    if _unanswered(run, inquiry) == inquiry:
        ids = _ids(inquiry)
        raise Parked(f"nobody can answer {', '.join(ids)} now", ids)


async def _race(run: Run, inquiry: Inquiry) -> bool:
    """Ask all answer plugins concurrently; return whether one of them gave an answer."""

    def accept(answers: Sequence[Answer]) -> bool | str:
        return _refusal(run, inquiry, answers) or bool(answers) or "no answer"

    async def record(outcome: Outcome[Sequence[Answer]]) -> None:
        for answer in outcome.value or ():
            _record_answer(run, answer, via=outcome.plugin)

    hooks = _without_own_plugins(run) if inquiry.kind == "permission" else run.hooks
    return await hooks.race(gsd_answer, accept, record, inquiry) is not None


def _without_own_plugins(run: Run) -> Hooks:
    """Return the hooks without the project's own plugins, which must not permit anything in its name."""
    own = {info.name for info in run.request.plugins if info.from_project}
    if not own & set(run.hooks.plugins_of(gsd_answer)):
        return run.hooks
    manager = build_manager()
    for name, plugin in run.hooks.manager.list_name_plugin():
        if plugin is not None and name not in own:
            manager.register(plugin, name=name)
    return attrs.evolve(run.hooks, manager=manager)


def _refusal(run: Run, inquiry: Inquiry, answers: Sequence[Answer]) -> str:
    """Return why *answers* cannot be taken as answers to *inquiry*; empty if they can."""
    questions = {question.id: question for question in inquiry.questions}
    for answer in answers:
        question = questions.get(answer.question)
        if question is None:
            return f"answers {answer.question!r}, which was not asked"
        if why := refusal(question, answer):
            return why
        if question.human_only and answer.is_assumption:
            return "only a human can answer this"
        if inquiry.kind == "permission" and (why := _no_person(run, question, answer)):
            return why
    return ""


def _no_person(run: Run, question: Question, answer: Answer) -> str:
    """Return why *answer* to a permission is not a person's decision; to refuse, a policy is enough."""
    safe = {option.label for option in question.options if option.recommended}
    if answer.chosen and safe.issuperset(answer.chosen):
        return ""
    if answer.how in ("policy", "timeout"):
        return "only a person can permit this"
    if answer.how == "file" and answer.by:
        # Both: an agent could change what a link in the project leads to.
        named = Path(answer.by).absolute()
        if any(path.is_relative_to(run.root) for path in (named, named.resolve())) and named.is_file():
            return f"{answer.by} is in the project, where an agent can change it"
    return ""


def _record_answer(run: Run, answer: Answer, *, via: str, consumes: Sequence[int] = ()) -> None:
    record = _record_of(run, answer.question)
    step = record.inquiry.step if record else ""
    stamped = attrs.evolve(answer, via=via, at=run.now())
    run.record(facts.QuestionAnswered(answer=stamped), step=step, consumes=consumes)


def take_answers(run: Run) -> None:
    """Take answers and requests to stop that other processes put into the inbox.

    Of several answers to one question the last valid one counts: until a run takes it, an answer can be
    replaced. The journal gets only that one. An invalid answer is recorded as refused.
    """
    valid: dict[str, list[tuple[InboxItem, Answer]]] = {}
    for item in run.journal.take_inbox():
        if item.kind == "stop":
            what = "pause" if item.data.get("after") == "step" else "stop"
            run.record(facts.ControlAsked(what=what, by=item.by, via="inbox"), consumes=[item.id])
        elif item.kind == "answer":
            try:
                answer = structure(item.data, Answer)
                why = _refusal_in_run(run, answer)
            except JournalError as exc:
                why = str(exc)
            else:
                if not why:
                    valid.setdefault(answer.question, []).append((item, answer))
                    continue
            run.record(facts.AnswerRefused(answer=item.data, reason=why), consumes=[item.id])
        elif item.kind not in ("phase", "todo"):  # the loop takes these, between two steps
            run.journal.consumed([item.id])
    for given in valid.values():
        item, answer = given[-1]
        # In one transaction, so that a crash does not bring a replaced answer back.
        consumes = [replaced.id for replaced, _ in given]
        _record_answer(run, attrs.evolve(answer, by=item.by), via="inbox", consumes=consumes)


def _refusal_in_run(run: Run, answer: Answer) -> str:
    record = _record_of(run, answer.question)
    if record is None:
        return "no such question in this run"
    if answer.question in record.answers:
        return "answered already"
    return _refusal(run, record.inquiry, [answer])
