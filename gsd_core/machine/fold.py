"""Fold the journal's facts into a state: one small function for each kind of fact.

Kinds without a function change nothing, so that journals of older and newer versions can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from attrs import evolve

from gsd_core.model.ids import VERIFY, StepId
from gsd_core.model.question import Answer

from . import facts
from .claims import dependents
from .facts import KIND_OF, Fact, Record, typed
from .state import (
    LOST_IN_A_ROW,
    Allowance,
    Closing,
    Options,
    QuestionRecord,
    Queued,
    Snapshot,
    State,
    StepRecord,
    gap_rounds,
    inquiry_key,
)

Fold: TypeAlias = Callable[[State, Fact, Any], State]


def fold(state: State, records: Iterable[Record]) -> State:
    """Return *state* after *records*.

    Once the state belongs to a run, facts of other runs are skipped.
    """
    last: Fact | None = None
    fact: Fact
    for fact in typed(records, *_HANDLERS):
        if not state.run or fact.run == state.run:
            if last is None:
                # The steps of a long run are many: they are copied once, and then changed in place.
                state = evolve(state, steps=dict(state.steps))
            state, last = _HANDLERS[type(fact.data)](state, fact, fact.data), fact
    return evolve(state, seq=last.seq, last_at=last.at) if last else state


# Runs


def _run_started(_: State, fact: Fact, data: facts.RunStarted) -> State:
    return State(
        run=fact.run,
        idea=data.idea.sha256 if data.idea else "",
        idea_name=data.idea.name if data.idea else "",
        started_at=fact.at,
        journal_lost=data.journal_lost,
        milestone=data.milestone or "",
    )


def _run_opened(state: State, fact: Fact, data: facts.RunOpened) -> State:
    """Start over what failed, and forget a request to stop: that is what resuming a run means."""
    options = data.options
    return evolve(
        state,
        run=fact.run,
        epoch=fact.epoch,
        options=options,
        lifecycle=state.lifecycle if options.only_asked else options,
        claims=data.claims,
        steps={
            key: _given_another_try(record, fact.seq) if _is_given_up(state, record) else record
            for key, record in state.steps.items()
        },
        closed=None,
        closed_before=_closing(state),
        asked_end=state.asked_end if options.only_asked else None,
        exit=0,
        reason="",
        notes=(),
        answered=data.answered,
        requested=(),
        queued={},
        aborted="",
        stop_asked=False,
        pause_asked=False,
        inquiries=_withdraw_given_up(state),
    )


def _run_closed(state: State, _: Fact, data: facts.RunClosed) -> State:
    end = Closing(outcome=data.outcome, exit=data.exit, reason=data.reason, notes=data.notes)
    if state.options.only_asked:
        # The lifecycle is where it was before, which may be nowhere.
        state = evolve(state, asked_end=end, options=state.lifecycle or Options())
        end = state.closed_before or Closing(outcome="stopped")
    return evolve(state, closed=end.outcome, exit=end.exit, reason=end.reason, notes=end.notes)


def _closing(state: State) -> Closing | None:
    """Return how the lifecycle was left; a process that only did what it was asked to changed nothing."""
    if state.closed is None:
        return state.closed_before if state.options.only_asked else None
    if state.lifecycle is None:
        return None
    return Closing(outcome=state.closed, exit=state.exit, reason=state.reason, notes=state.notes)


def _project_observed(state: State, _: Fact, data: Snapshot) -> State:
    return evolve(state, seen=data)


def _control_asked(state: State, _: Fact, data: facts.ControlAsked) -> State:
    return evolve(
        state,
        stop_asked=data.what == "stop" or state.stop_asked,
        pause_asked=data.what == "pause" or state.pause_asked,
    )


def _step_asked(state: State, fact: Fact, data: facts.StepAsked) -> State:
    asked = {**state.asked, fact.step: data.text}
    return evolve(state, asked=asked, requested=(*state.requested, fact.step))


def _step_withdrawn(state: State, fact: Fact, _: facts.StepWithdrawn) -> State:
    return evolve(state, asked={step: text for step, text in state.asked.items() if step != fact.step})


def _no_longer_asked(state: State, step: str) -> State:
    if step not in state.asked:
        return state
    left = {name: text for name, text in state.asked.items() if name != step}
    return evolve(state, asked=left, answered=(*state.answered, step))


# Attempts


def _attempt_started(state: State, fact: Fact, data: facts.AttemptStarted) -> State:
    record = state.steps.get(fact.step)
    if record is None:
        record = StepRecord(id=StepId.parse(fact.step), status="running", base=fact.seq)
    elif record.status in ("completed", "skipped"):
        record = _start_over(record, fact.seq)
    record = evolve(
        record,
        status="running",
        attempt=fact.attempt,
        epoch=fact.epoch,
        until=None,
        for_gaps=data.for_gaps,
        started_at=record.started_at or fact.at,
        ended_at=None,
        base_commit=record.base_commit or data.base_commit,
        dirty_before=data.dirty_before,
    )
    state = evolve(state, queued={step: one for step, one in state.queued.items() if step != fact.step})
    return _with(state, record)


def _attempt_lost(state: State, fact: Fact, data: facts.AttemptLost) -> State:
    record = state.steps[fact.step]
    if data.questions:
        return _with(state, evolve(record, status="parked"))
    # A stop on request is not a crash, and a wait is not either.
    counts = data.why not in ("stopped", "postponed")
    return _with(state, evolve(record, status="waiting", lost=record.lost + counts))


def _attempt_failed(state: State, fact: Fact, data: facts.AttemptFailed) -> State:
    record = evolve(state.steps[fact.step], status="waiting", failure=data.error, lost=0, deferred=False)
    return _with(state, record)


def _timer_set(state: State, fact: Fact, data: facts.TimerSet) -> State:
    # A wrapper may ask to wait before the first attempt.
    record = state.steps.get(fact.step) or StepRecord(id=StepId.parse(fact.step), status="waiting")
    return _with(state, evolve(record, status="waiting", until=data.until, why=data.why))


def _step_queued(state: State, fact: Fact, data: facts.StepQueued) -> State:
    return evolve(state, queued={**state.queued, fact.step: Queued(at=fact.at, why=data.why, hint=data.hint)})


def _timer_fired(state: State, fact: Fact, _: facts.TimerFired) -> State:
    return _with(state, evolve(state.steps[fact.step], until=None))


def _made_progress(state: State, fact: Fact, _: facts.TaskCommitted | facts.AgentClosed) -> State:
    """Reset the count of lost attempts: it is for attempts without any progress in between."""
    record = state.steps.get(fact.step)
    return _with(state, evolve(record, lost=0)) if record else state


def _task_deferred(state: State, fact: Fact, _: facts.TaskDeferred) -> State:
    return _with(state, evolve(state.steps[fact.step], deferred=True))


def _agent_closed(state: State, fact: Fact, data: facts.AgentClosed) -> State:
    return state if data.ended == "lost" else _made_progress(state, fact, data)


# Steps


def _step_returned(state: State, fact: Fact, data: facts.StepReturned) -> State:
    record = evolve(
        state.steps[fact.step],
        status="result",
        result=fact.seq,
        lost=0,
        gaps=data.gaps or (),
        failed_detectors=data.failed_detectors or (),
        passed=not (data.gaps or data.failed_detectors),
    )
    return _with(state, record)


def _step_completed(state: State, fact: Fact, data: facts.StepCompleted) -> State:
    record = state.steps[fact.step]
    record = evolve(
        record, status="completed", completed=record.completed + 1, ended_at=fact.at, lost=0, failure=None
    )
    state = _no_longer_asked(_with(state, record), fact.step)
    if data.plans:
        state = evolve(state, plan_digests={**state.plan_digests, **data.plans})
    if record.id.kind != VERIFY:
        return state
    phase = state.phase(record.id.phase)
    covered = tuple(plan.id for plan in phase.plans if plan.summary) if phase else ()
    return evolve(state, verified={**state.verified, record.id.phase: covered})


def _merge_failed(state: State, fact: Fact, _: facts.MergeFailed) -> State:
    return _with(state, _start_over(state.steps[fact.step], fact.seq))


def _plan_edited(state: State, _: Fact, data: facts.PlanEdited) -> State:
    digests = {**state.plan_digests, data.path: data.sha256}
    edited = tuple(dict.fromkeys([*state.edited_plans, data.plan]))
    return evolve(state, plan_digests=digests, edited_plans=edited)


def _step_failed(state: State, fact: Fact, data: facts.StepFailed) -> State:
    # A wrapper may fail before the first attempt.
    record = state.steps.get(fact.step) or StepRecord(id=StepId.parse(fact.step), status="failed")
    return _with(state, evolve(record, status="failed", failure=data.error, until=None, ended_at=fact.at))


def _step_skipped(state: State, fact: Fact, data: facts.StepSkipped) -> State:
    step = StepId.parse(fact.step)
    record = state.steps.get(fact.step) or StepRecord(id=step, status="skipped")
    skipped = [step.phase, *data.dependents]
    state = _with(state, evolve(record, status="skipped", ended_at=fact.at))
    return evolve(state, skipped=tuple(dict.fromkeys([*state.skipped, *skipped])))


# Questions


def _question_asked(state: State, fact: Fact, data: facts.QuestionAsked) -> State:
    record = QuestionRecord(inquiry=data.inquiry, key=data.occasion, at=fact.at)
    return evolve(state, inquiries={**state.inquiries, inquiry_key(data.inquiry): record})


def _question_answered(state: State, fact: Fact, data: facts.QuestionAnswered) -> State:
    answer = data.answer
    for key, record in state.inquiries.items():
        if any(question.id == answer.question for question in record.inquiry.questions):
            record = evolve(record, answers={**record.answers, answer.question: answer})
            state = evolve(state, inquiries={**state.inquiries, key: record})
            if record.inquiry.kind == "escalation":
                state = _decide(state, record.inquiry.step, answer, fact.seq)
    return state


def _question_withdrawn(state: State, _: Fact, data: facts.QuestionWithdrawn) -> State:
    if data.key not in state.inquiries:
        return state
    withdrawn = evolve(state.inquiries[data.key], withdrawn=True)
    return evolve(state, inquiries={**state.inquiries, data.key: withdrawn})


def _decide(state: State, step: str, answer: Answer, seq: int) -> State:
    """Apply a human's choice in an escalation: retry, skip or abort."""
    record = state.steps.get(step)
    choice = answer.words.strip().lower()
    if record is None:
        return state
    if choice.startswith("abort"):
        return evolve(state, aborted=step)
    if choice.startswith("skip"):
        return _skip_phase(state, record)
    if record.id.kind == VERIFY and record.status == "completed":
        # The question was about gaps: allow one more round and verification than there were so far.
        # Without this, the answer would lead straight back to the same question.
        phase = record.id.phase
        allowance = Allowance(
            rounds=len(gap_rounds(state, phase)) + 1,
            verifications=sum(r.completed for r in state.of(VERIFY, phase)) + 1,
        )
        return evolve(state, allowances={**state.allowances, phase: allowance})
    return _with(evolve(state, inquiries=_withdraw_given_up(state)), _start_over(record, seq))


def _skip_phase(state: State, record: StepRecord) -> State:
    """Skip the step's phase and those that cannot be done without it.

    A step without a phase aborts the run instead. A step that the user asked for is only not done: nothing
    depends on it.
    """
    if (step := str(record.id)) in state.asked:
        return _with(_no_longer_asked(state, step), evolve(record, status="skipped"))
    if not record.id.phase:
        return evolve(state, aborted=str(record.id))
    skipped = [*state.skipped, record.id.phase, *dependents(state, record.id.phase)]
    state = _with(state, evolve(record, status="skipped"))
    return evolve(state, skipped=tuple(dict.fromkeys(skipped)))


# Shared


def _is_given_up(state: State, record: StepRecord) -> bool:
    """Whether the step failed, or the run was closed because every attempt at it was lost."""
    lost = state.closed is not None and record.status == "waiting" and record.lost >= LOST_IN_A_ROW
    return lost or record.status == "failed"


def _withdraw_given_up(state: State) -> dict[str, QuestionRecord]:
    """Return the inquiries, with the open ones about given-up steps withdrawn: these steps start over."""

    def is_obsolete(question: QuestionRecord) -> bool:
        record = state.steps.get(question.inquiry.step)
        return question.open and record is not None and _is_given_up(state, record)

    return {
        key: evolve(question, withdrawn=True) if is_obsolete(question) else question
        for key, question in state.inquiries.items()
    }


def _given_another_try(record: StepRecord, seq: int) -> StepRecord:
    """Return the record of a step that was given up, for another process to try again.

    One whose attempts were lost continues: what its agents answered is paid for. Only if a person chooses to
    retry does it start over, because an answer may be what ends the process.
    """
    if record.status == "failed":
        return _start_over(record, seq)
    return evolve(record, generation=record.generation + 1, lost=0)


def _start_over(record: StepRecord, seq: int) -> StepRecord:
    """Return the record with its next generation, which begins at *seq*."""
    return evolve(
        record,
        status="waiting",
        generation=record.generation + 1,
        base=seq,
        lost=0,
        failure=None,
        deferred=False,
        until=None,
        result=0,
        base_commit="",
        started_at=None,
    )


def _with(state: State, record: StepRecord) -> State:
    steps: Any = state.steps  # a copy that only this fold has
    steps[str(record.id)] = record
    return state


# "attempt.declared" is missing on purpose: only old journals have it, and it decided nothing.
_HANDLERS: dict[type[object], Fold] = {
    facts.RunStarted: _run_started,
    facts.RunOpened: _run_opened,
    facts.RunClosed: _run_closed,
    Snapshot: _project_observed,
    facts.ControlAsked: _control_asked,
    facts.StepAsked: _step_asked,
    facts.StepWithdrawn: _step_withdrawn,
    facts.AttemptStarted: _attempt_started,
    facts.AttemptLost: _attempt_lost,
    facts.AttemptFailed: _attempt_failed,
    facts.TimerSet: _timer_set,
    facts.StepQueued: _step_queued,
    facts.TimerFired: _timer_fired,
    facts.TaskCommitted: _made_progress,
    facts.TaskDeferred: _task_deferred,
    facts.AgentClosed: _agent_closed,
    facts.StepReturned: _step_returned,
    facts.StepCompleted: _step_completed,
    facts.MergeFailed: _merge_failed,
    facts.PlanEdited: _plan_edited,
    facts.StepFailed: _step_failed,
    facts.StepSkipped: _step_skipped,
    facts.QuestionAsked: _question_asked,
    facts.QuestionAnswered: _question_answered,
    facts.QuestionWithdrawn: _question_withdrawn,
}
FACT_KINDS: frozenset[str] = frozenset(KIND_OF[kind] for kind in _HANDLERS)
"""The kinds of facts that the state of a run is derived from."""
