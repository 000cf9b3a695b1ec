"""Fold facts into state: each fact is one small function; unknown kinds change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from attrs import evolve

from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer, Inquiry

from .state import (
    LOST_IN_A_ROW,
    Allowance,
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
    """Return *state* after *facts*; *structure* makes values of JSON data (the journal's codec)."""
    for fact in facts:
        handler = _HANDLERS.get(fact.kind)
        if handler and (not state.run or fact.run == state.run):
            state = evolve(handler(state, fact, structure), seq=fact.seq, last_at=fact.at)
    return state


def _run_started(state: State, fact: Fact, _: Structure) -> State:
    idea: Mapping[str, Any] = fact.data.get("idea") or {}
    return State(
        run=fact.run, idea=idea.get("sha256", ""), idea_name=idea.get("name", ""), started_at=fact.at
    )


def _run_opened(state: State, fact: Fact, structure: Structure) -> State:
    """A new process owns the run: what failed before may be tried again, a stop is forgotten."""
    options = structure(fact.data.get("options") or {}, Options)
    steps = {key: _afresh(r, fact.seq) if _is_given_up(state, r) else r for key, r in state.steps.items()}
    return evolve(
        state,
        run=fact.run,
        epoch=fact.epoch,
        opened_at=fact.at,
        options=options,
        steps=steps,
        closed=None,
        exit=0,
        reason="",
        aborted="",
        stop_asked=False,
        inquiries={key: _forget_failed(q, state) for key, q in state.inquiries.items()},
    )


def _is_given_up(state: State, record: StepRecord) -> bool:
    """Whether the step failed, or the run was ended because each attempt at it was lost."""
    lost = state.closed is not None and record.status == "waiting" and record.lost >= LOST_IN_A_ROW
    return lost or record.status == "failed"


def _forget_failed(question: QuestionRecord, state: State) -> QuestionRecord:
    """Withdraw what is open about a step that was given up: starting the run again is the answer."""
    record = state.steps.get(question.inquiry.step)
    forgotten = record is not None and _is_given_up(state, record)
    return evolve(question, withdrawn=True) if forgotten and question.open else question


def _run_closed(state: State, fact: Fact, _: Structure) -> State:
    return evolve(
        state, closed=fact.data["outcome"], exit=fact.data["exit"], reason=fact.data.get("reason", "")
    )


def _observed(state: State, fact: Fact, structure: Structure) -> State:
    return evolve(state, seen=structure(fact.data, Snapshot))


def _attempt_started(state: State, fact: Fact, _: Structure) -> State:
    step = StepId.parse(fact.step)
    record = state.steps.get(fact.step) or StepRecord(id=step, status="running", base=fact.seq)
    if record.status in ("completed", "skipped"):
        record = _afresh(record, fact.seq)
    record = evolve(
        record,
        status="running",
        attempt=fact.attempt,
        epoch=fact.epoch,
        effect="reenter",
        until=None,
        for_gaps=bool(fact.data.get("for_gaps")),
        started_at=record.started_at or fact.at,
        ended_at=None,
        base_commit=record.base_commit or fact.data.get("base_commit") or "",
        dirty_before=tuple(fact.data.get("dirty_before") or ()),
    )
    return _with(state, record)


def _attempt_declared(state: State, fact: Fact, _: Structure) -> State:
    return _with(state, evolve(state.steps[fact.step], effect=fact.data["effect"]))


def _attempt_lost(state: State, fact: Fact, _: Structure) -> State:
    record = state.steps[fact.step]
    if fact.data.get("questions"):
        return _with(state, evolve(record, status="parked"))
    counts = fact.data.get("why") != "stopped"
    return _with(state, evolve(record, status="waiting", lost=record.lost + counts))


def _attempt_failed(state: State, fact: Fact, structure: Structure) -> State:
    failure = structure(fact.data["error"], Failure)
    return _with(state, evolve(state.steps[fact.step], status="waiting", failure=failure, lost=0))


def _timer_set(state: State, fact: Fact, structure: Structure) -> State:
    until: datetime = structure(fact.data["until"], datetime)
    return _with(state, evolve(state.steps[fact.step], status="waiting", until=until))


def _timer_fired(state: State, fact: Fact, _: Structure) -> State:
    return _with(state, evolve(state.steps[fact.step], until=None))


def _progressed(state: State, fact: Fact, _: Structure) -> State:
    """What an attempt got done before it was lost is not a loss in a row."""
    record = state.steps.get(fact.step)
    return _with(state, evolve(record, lost=0)) if record else state


def _agent_closed(state: State, fact: Fact, structure: Structure) -> State:
    return state if fact.data.get("ended") == "lost" else _progressed(state, fact, structure)


def _step_result(state: State, fact: Fact, _: Structure) -> State:
    record = evolve(state.steps[fact.step], status="result", result=fact.seq, lost=0)
    failed = tuple(fact.data.get("failed_detectors") or ())
    return _with(state, evolve(record, gaps=tuple(fact.data.get("gaps") or ()), failed_detectors=failed))


def _step_completed(state: State, fact: Fact, _: Structure) -> State:
    record = state.steps[fact.step]
    done = evolve(
        record, status="completed", completed=record.completed + 1, ended_at=fact.at, lost=0, failure=None
    )
    state = _with(state, done)
    if done.id.kind != "verify":
        return state
    phase = state.seen.phase(done.id.phase) if state.seen else None
    covered = tuple(plan.id for plan in phase.plans if plan.summary) if phase else ()
    return evolve(state, verified={**state.verified, done.id.phase: covered})


def _step_failed(state: State, fact: Fact, structure: Structure) -> State:
    failure = structure(fact.data["error"], Failure)
    record = state.steps.get(fact.step) or StepRecord(id=StepId.parse(fact.step), status="failed")
    return _with(state, evolve(record, status="failed", failure=failure, until=None, ended_at=fact.at))


def _step_skipped(state: State, fact: Fact, _: Structure) -> State:
    step = StepId.parse(fact.step)
    record = state.steps.get(fact.step) or StepRecord(id=step, status="skipped")
    skipped = [step.phase, *(fact.data.get("dependents") or ())]
    state = _with(state, evolve(record, status="skipped", ended_at=fact.at))
    return evolve(state, skipped=tuple(dict.fromkeys([*state.skipped, *skipped])))


def _question_asked(state: State, fact: Fact, structure: Structure) -> State:
    inquiry: Inquiry = structure(fact.data["inquiry"], Inquiry)
    record = QuestionRecord(inquiry=inquiry, key=fact.data.get("occasion", ""), at=fact.at)
    return evolve(state, inquiries={**state.inquiries, inquiry_key(inquiry): record})


def _question_answered(state: State, fact: Fact, structure: Structure) -> State:
    answer: Answer = structure(fact.data["answer"], Answer)
    for key, question in state.inquiries.items():
        if any(q.id == answer.question for q in question.inquiry.questions):
            answers = {**question.answers, answer.question: answer}
            state = evolve(state, inquiries={**state.inquiries, key: evolve(question, answers=answers)})
            if question.inquiry.kind == "escalation":
                state = _decide(state, question.inquiry.step, answer, fact.seq)
    return state


def _question_withdrawn(state: State, fact: Fact, _: Structure) -> State:
    key = fact.data["key"]
    if key not in state.inquiries:
        return state
    withdrawn = evolve(state.inquiries[key], withdrawn=True)
    return evolve(state, inquiries={**state.inquiries, key: withdrawn})


def _control_asked(state: State, fact: Fact, _: Structure) -> State:
    return evolve(state, stop_asked=fact.data.get("what") == "stop" or state.stop_asked)


def _decide(state: State, step: str, answer: Answer, seq: int) -> State:
    """Carry out what was chosen in an escalation: retry, skip or abort."""
    record = state.steps.get(step)
    choice = answer.words.strip().lower()
    if record is None:
        return state
    if choice.startswith("abort"):
        return evolve(state, aborted=step)
    if choice.startswith("skip"):
        return _skip_phase(state, record)
    if record.id.kind == "verify" and record.status == "completed":
        grant = Allowance(
            rounds=len(gap_rounds(state, record.id.phase)) + 1,
            verifications=sum(r.completed for r in state.of("verify", record.id.phase)) + 1,
        )
        return evolve(state, grants={**state.grants, record.id.phase: grant})
    inquiries = {key: _forget_failed(question, state) for key, question in state.inquiries.items()}
    return _with(evolve(state, inquiries=inquiries), _afresh(record, seq))


def _skip_phase(state: State, record: StepRecord) -> State:
    """Leave the phase, and all that depends on it; a step without a phase cannot be skipped."""
    if not record.id.phase:
        return evolve(state, aborted=str(record.id))
    skipped = [*state.skipped, record.id.phase]
    phases = state.seen.phases if state.seen else ()
    for _ in phases:
        skipped += [p.number for p in phases if set(p.depends_on) & set(skipped)]
    state = _with(state, evolve(record, status="skipped"))
    return evolve(state, skipped=tuple(dict.fromkeys(skipped)))


def _afresh(record: StepRecord, seq: int) -> StepRecord:
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


_HANDLERS: dict[str, Fold] = {
    "run.started": _run_started,
    "run.opened": _run_opened,
    "run.closed": _run_closed,
    "project.observed": _observed,
    "attempt.started": _attempt_started,
    "attempt.declared": _attempt_declared,
    "attempt.lost": _attempt_lost,
    "attempt.failed": _attempt_failed,
    "timer.set": _timer_set,
    "timer.fired": _timer_fired,
    "task.committed": _progressed,
    "agent.closed": _agent_closed,
    "step.result": _step_result,
    "step.completed": _step_completed,
    "step.failed": _step_failed,
    "step.skipped": _step_skipped,
    "question.asked": _question_asked,
    "question.answered": _question_answered,
    "question.withdrawn": _question_withdrawn,
    "control.asked": _control_asked,
}
FACT_KINDS: frozenset[str] = frozenset(_HANDLERS)
