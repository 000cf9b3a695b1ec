"""Fold the journal's facts into a state: one small function for each kind of fact.

Kinds without a function change nothing, so that journals of older and newer versions can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from attrs import evolve

from gsd_core.model.ids import VERIFY, StepId
from gsd_core.model.question import Answer, Inquiry

from .claims import dependents
from .state import (
    LOST_IN_A_ROW,
    Allowance,
    Claims,
    Closing,
    Fact,
    Failure,
    Options,
    QuestionRecord,
    Snapshot,
    State,
    StepRecord,
    gap_rounds,
    inquiry_key,
)

Structure: TypeAlias = Callable[[Any, type[Any]], Any]
Fold: TypeAlias = Callable[[State, Fact, Structure], State]


def fold(state: State, facts: Iterable[Fact], structure: Structure) -> State:
    """Return *state* after *facts*.

    Once the state belongs to a run, facts of other runs are skipped. *structure* makes values of
    JSON data; it is the journal's codec.
    """
    for fact in facts:
        handler = _HANDLERS.get(fact.kind)
        if handler and (not state.run or fact.run == state.run):
            state = evolve(handler(state, fact, structure), seq=fact.seq, last_at=fact.at)
    return state


# Runs


def _run_started(state: State, fact: Fact, _: Structure) -> State:
    idea: Mapping[str, Any] = fact.data.get("idea") or {}
    return State(
        run=fact.run,
        idea=idea.get("sha256", ""),
        idea_name=idea.get("name", ""),
        started_at=fact.at,
        journal_lost=bool(fact.data.get("journal_lost")),
        milestone=fact.data.get("milestone", ""),
    )


def _run_opened(state: State, fact: Fact, structure: Structure) -> State:
    """Start over what failed, and forget a request to stop: that is what resuming a run means."""
    options: Options = structure(fact.data.get("options") or {}, Options)
    return evolve(
        state,
        run=fact.run,
        epoch=fact.epoch,
        options=options,
        lifecycle=state.lifecycle if options.only_asked else options,
        claims=structure(fact.data["claims"], Claims) if fact.data.get("claims") else None,
        steps={
            key: _start_over(record, fact.seq) if _is_given_up(state, record) else record
            for key, record in state.steps.items()
        },
        closed=None,
        closed_before=_closing(state),
        asked_end=state.asked_end if options.only_asked else None,
        exit=0,
        reason="",
        notes=(),
        answered=tuple(fact.data.get("answered") or ()),
        requested=(),
        aborted="",
        stop_asked=False,
        pause_asked=False,
        inquiries=_withdraw_given_up(state),
    )


def _run_closed(state: State, fact: Fact, _: Structure) -> State:
    end = Closing(
        outcome=fact.data["outcome"],
        exit=fact.data["exit"],
        reason=fact.data.get("reason", ""),
        notes=tuple(fact.data.get("notes") or ()),
    )
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


def _project_observed(state: State, fact: Fact, structure: Structure) -> State:
    return evolve(state, seen=structure(fact.data, Snapshot))


def _control_asked(state: State, fact: Fact, _: Structure) -> State:
    what = fact.data.get("what")
    return evolve(
        state,
        stop_asked=what == "stop" or state.stop_asked,
        pause_asked=what == "pause" or state.pause_asked,
    )


def _step_asked(state: State, fact: Fact, _: Structure) -> State:
    asked = {**state.asked, fact.step: fact.data.get("text", "")}
    return evolve(state, asked=asked, requested=(*state.requested, fact.step))


def _step_withdrawn(state: State, fact: Fact, _: Structure) -> State:
    return evolve(state, asked={step: text for step, text in state.asked.items() if step != fact.step})


def _no_longer_asked(state: State, step: str) -> State:
    if step not in state.asked:
        return state
    left = {name: text for name, text in state.asked.items() if name != step}
    return evolve(state, asked=left, answered=(*state.answered, step))


# Attempts


def _attempt_started(state: State, fact: Fact, _: Structure) -> State:
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
        for_gaps=bool(fact.data.get("for_gaps")),
        started_at=record.started_at or fact.at,
        ended_at=None,
        base_commit=record.base_commit or fact.data.get("base_commit") or "",
        dirty_before=tuple(fact.data.get("dirty_before") or ()),
    )
    return _with(state, record)


def _attempt_lost(state: State, fact: Fact, _: Structure) -> State:
    record = state.steps[fact.step]
    if fact.data.get("questions"):
        return _with(state, evolve(record, status="parked"))
    # A stop on request is not a crash.
    counts = fact.data.get("why") != "stopped"
    return _with(state, evolve(record, status="waiting", lost=record.lost + counts))


def _attempt_failed(state: State, fact: Fact, structure: Structure) -> State:
    failure = structure(fact.data["error"], Failure)
    return _with(state, evolve(state.steps[fact.step], status="waiting", failure=failure, lost=0))


def _timer_set(state: State, fact: Fact, structure: Structure) -> State:
    until: datetime = structure(fact.data["until"], datetime)
    # A wrapper may ask to wait before the first attempt.
    record = state.steps.get(fact.step) or StepRecord(id=StepId.parse(fact.step), status="waiting")
    return _with(state, evolve(record, status="waiting", until=until))


def _timer_fired(state: State, fact: Fact, _: Structure) -> State:
    return _with(state, evolve(state.steps[fact.step], until=None))


def _made_progress(state: State, fact: Fact, _: Structure) -> State:
    """Reset the count of lost attempts: it is for attempts without any progress in between."""
    record = state.steps.get(fact.step)
    return _with(state, evolve(record, lost=0)) if record else state


def _agent_closed(state: State, fact: Fact, structure: Structure) -> State:
    return state if fact.data.get("ended") == "lost" else _made_progress(state, fact, structure)


# Steps


def _step_result(state: State, fact: Fact, _: Structure) -> State:
    record = evolve(
        state.steps[fact.step],
        status="result",
        result=fact.seq,
        lost=0,
        gaps=tuple(fact.data.get("gaps") or ()),
        failed_detectors=tuple(fact.data.get("failed_detectors") or ()),
        passed=not (fact.data.get("gaps") or fact.data.get("failed_detectors")),
    )
    return _with(state, record)


def _step_completed(state: State, fact: Fact, _: Structure) -> State:
    record = state.steps[fact.step]
    record = evolve(
        record, status="completed", completed=record.completed + 1, ended_at=fact.at, lost=0, failure=None
    )
    state = _no_longer_asked(_with(state, record), fact.step)
    if plans := fact.data.get("plans"):
        state = evolve(state, plan_digests={**state.plan_digests, **plans})
    if record.id.kind != VERIFY:
        return state
    phase = state.seen.phase(record.id.phase) if state.seen else None
    covered = tuple(plan.id for plan in phase.plans if plan.summary) if phase else ()
    return evolve(state, verified={**state.verified, record.id.phase: covered})


def _plan_edited(state: State, fact: Fact, _: Structure) -> State:
    digests = {**state.plan_digests, fact.data["path"]: fact.data["sha256"]}
    edited = tuple(dict.fromkeys([*state.edited_plans, fact.data["plan"]]))
    return evolve(state, plan_digests=digests, edited_plans=edited)


def _step_failed(state: State, fact: Fact, structure: Structure) -> State:
    failure = structure(fact.data["error"], Failure)
    # A wrapper may fail before the first attempt.
    record = state.steps.get(fact.step) or StepRecord(id=StepId.parse(fact.step), status="failed")
    return _with(state, evolve(record, status="failed", failure=failure, until=None, ended_at=fact.at))


def _step_skipped(state: State, fact: Fact, _: Structure) -> State:
    step = StepId.parse(fact.step)
    record = state.steps.get(fact.step) or StepRecord(id=step, status="skipped")
    skipped = [step.phase, *(fact.data.get("dependents") or ())]
    state = _with(state, evolve(record, status="skipped", ended_at=fact.at))
    return evolve(state, skipped=tuple(dict.fromkeys([*state.skipped, *skipped])))


# Questions


def _question_asked(state: State, fact: Fact, structure: Structure) -> State:
    inquiry: Inquiry = structure(fact.data["inquiry"], Inquiry)
    record = QuestionRecord(inquiry=inquiry, key=fact.data.get("occasion", ""), at=fact.at)
    return evolve(state, inquiries={**state.inquiries, inquiry_key(inquiry): record})


def _question_answered(state: State, fact: Fact, structure: Structure) -> State:
    answer: Answer = structure(fact.data["answer"], Answer)
    for key, record in state.inquiries.items():
        if any(question.id == answer.question for question in record.inquiry.questions):
            record = evolve(record, answers={**record.answers, answer.question: answer})
            state = evolve(state, inquiries={**state.inquiries, key: record})
            if record.inquiry.kind == "escalation":
                state = _decide(state, record.inquiry.step, answer, fact.seq)
    return state


def _question_withdrawn(state: State, fact: Fact, _: Structure) -> State:
    key = fact.data["key"]
    if key not in state.inquiries:
        return state
    withdrawn = evolve(state.inquiries[key], withdrawn=True)
    return evolve(state, inquiries={**state.inquiries, key: withdrawn})


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


def _start_over(record: StepRecord, seq: int) -> StepRecord:
    """Return the record with its next generation, which begins at *seq*."""
    return evolve(
        record,
        status="waiting",
        generation=record.generation + 1,
        base=seq,
        lost=0,
        failure=None,
        until=None,
        result=0,
        base_commit="",
        started_at=None,
    )


def _with(state: State, record: StepRecord) -> State:
    return evolve(state, steps={**state.steps, str(record.id): record})


# "attempt.declared" is missing on purpose: only old journals have it, and it decided nothing.
_HANDLERS: dict[str, Fold] = {
    "run.started": _run_started,
    "run.opened": _run_opened,
    "run.closed": _run_closed,
    "project.observed": _project_observed,
    "control.asked": _control_asked,
    "step.asked": _step_asked,
    "step.withdrawn": _step_withdrawn,
    "attempt.started": _attempt_started,
    "attempt.lost": _attempt_lost,
    "attempt.failed": _attempt_failed,
    "timer.set": _timer_set,
    "timer.fired": _timer_fired,
    "task.committed": _made_progress,
    "agent.closed": _agent_closed,
    "step.result": _step_result,
    "step.completed": _step_completed,
    "plan.edited": _plan_edited,
    "step.failed": _step_failed,
    "step.skipped": _step_skipped,
    "question.asked": _question_asked,
    "question.answered": _question_answered,
    "question.withdrawn": _question_withdrawn,
}
FACT_KINDS: frozenset[str] = frozenset(_HANDLERS)
"""The kinds of facts that the state of a run is derived from."""
