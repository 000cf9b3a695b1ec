"""The first postcondition of a phase that does not hold.

What is due: the postconditions that do not hold, in their order of precedence.

Land a recorded result; settle an attempt without an owner; ask about what failed; start the
first unmet postcondition of every phase whose dependencies are met; end. Every state that is
not closed has something due, so no run can stand still without saying what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from gsd_core.errors import ExitCode, exit_code_of_kind
from gsd_core.model.ids import StepId, StepKind, phase_order
from gsd_core.model.question import Inquiry

from .state import (
    LOST_IN_A_ROW,
    Allowance,
    Failure,
    PhaseSnapshot,
    PlanSnapshot,
    RunOutcome,
    State,
    StepRecord,
    gap_rounds,
)

VERIFICATIONS_WITHOUT_A_RECORD = 3


@frozen(kw_only=True)
class Unmet:
    """The step that would make a postcondition hold.

    *for_gaps*: the step plans the gaps of the last verdict. *gaps*: they remain, and a human
    has to say what to do.
    """

    step: StepId
    for_gaps: bool = False
    gaps: tuple[str, ...] = ()


def unmet(state: State, phase: PhaseSnapshot) -> Unmet | None:
    """Return what to do next for *phase*, ``None`` if it is complete."""
    if phase.ticked:
        return None
    if not phase.context and not state.options.skip_discuss:
        return Unmet(step=StepId(kind="discuss", phase=phase.number))
    if not phase.plans or any(not plan.on_disk for plan in phase.plans):
        return Unmet(step=_round(state, "plan", phase))
    if plan := _to_execute(phase):
        return Unmet(step=StepId(kind="execute", phase=phase.number, detail=plan.id))
    if state.options.skip_verify or (phase.verdict == "passed" and not is_stale(state, phase)):
        return Unmet(step=StepId(kind="complete", phase=phase.number))
    if phase.verdict in ("gaps_found", "human_needed") and not is_stale(state, phase):
        return _close_gaps(state, phase)
    return _verify(state, phase)


def is_stale(state: State, phase: PhaseSnapshot) -> bool:
    """The verdict is older than a plan's execution: by our own record, else by what the disk says."""
    covered = state.verified.get(phase.number)
    if covered is None:
        return phase.stale
    return any(plan.summary and plan.id not in covered for plan in phase.plans)


def _to_execute(phase: PhaseSnapshot) -> PlanSnapshot | None:
    """Return the next plan in wave order without a summary; of plans in a circle the first."""
    waiting = sorted((p for p in phase.plans if not p.summary), key=lambda plan: (plan.wave, plan.id))
    names = {plan.id for plan in waiting}
    free = [plan for plan in waiting if not names & set(plan.depends_on)]
    return next(iter(free or waiting), None)


def _round(state: State, kind: StepKind, phase: PhaseSnapshot) -> StepId:
    """Return the id of the phase's step of that kind that is under way, or of the next round."""
    records = state.of(kind, phase.number)
    running = [record.id.round for record in records if record.status not in ("completed", "skipped")]
    finished = [record.id.round + 1 for record in records]
    return StepId(kind=kind, phase=phase.number, round=min(running) if running else max([0, *finished]))


def _close_gaps(state: State, phase: PhaseSnapshot) -> Unmet:
    """Plan the gaps, unless the rounds are used up or the last one closed none of them."""
    verifications = [record for record in state.of("verify", phase.number) if record.completed]
    if phase.verdict == "human_needed" or not phase.gaps:
        return _verify_again(state, phase, verifications)
    if _exhausted(state, phase, verifications):
        last = verifications[-1].id if verifications else _round(state, "verify", phase)
        return Unmet(step=last, gaps=phase.gaps)
    plan = _round(state, "plan", phase)
    return Unmet(step=evolve(plan, round=max(plan.round, 1)), for_gaps=True)


def _verify_again(state: State, phase: PhaseSnapshot, verifications: list[StepRecord]) -> Unmet:
    """Verify once more what is incomplete; ask if that did not help."""
    granted = state.grants.get(phase.number, Allowance()).verifications
    if not verifications or sum(r.completed for r in verifications) < granted:
        return Unmet(step=_round(state, "verify", phase))
    return Unmet(step=verifications[-1].id, gaps=(_incomplete(verifications[-1]),))


def _incomplete(record: StepRecord) -> str:
    why = "; ".join(record.failed_detectors)
    return f"verification is not complete: {why}" if why else "verification is not complete"


def _exhausted(state: State, phase: PhaseSnapshot, verifications: list[StepRecord]) -> bool:
    done = len(gap_rounds(state, phase.number))
    under_way = any(r.for_gaps and not r.completed for r in state.of("plan", phase.number))
    if under_way or done < state.grants.get(phase.number, Allowance()).rounds:
        return False
    return done >= state.options.gap_rounds or (done > 0 and _no_progress(verifications))


def _no_progress(verifications: list[StepRecord]) -> bool:
    """No gap of the round before is closed."""
    if len(verifications) < 2:
        return False
    before, now = (set(record.gaps) for record in verifications[-2:])
    return before <= now


def _verify(state: State, phase: PhaseSnapshot) -> Unmet:
    done = [record for record in state.of("verify", phase.number) if record.completed]
    granted = state.grants.get(phase.number, Allowance()).verifications
    limit = max(granted, len(state.of("plan", phase.number)) + VERIFICATIONS_WITHOUT_A_RECORD)
    if len(done) >= limit:
        return Unmet(step=done[-1].id, gaps=("VERIFICATION.md does not stay as it was written",))
    return Unmet(step=_round(state, "verify", phase))


REPEATS = 3


@frozen(kw_only=True)
class ApplyResult:
    """Write what the step returned."""

    step: str


@frozen(kw_only=True)
class Settle:
    """An attempt's process is gone: say that the attempt is lost."""

    step: str
    attempt: int
    effect: str


@frozen(kw_only=True)
class AskAgain:
    """A step that was parked or lost waits for these questions; ask them without any agent."""

    step: str
    inquiry: Inquiry


@frozen(kw_only=True)
class Escalate:
    """A human has to say retry, skip or abort."""

    step: str
    cause: Literal["failed", "lost", "gaps", "repeats"]
    failure: Failure | None = None
    gaps: tuple[str, ...] = ()
    generation: int = 0


@frozen(kw_only=True)
class Start:
    """Begin an attempt at a step."""

    step: StepId
    for_gaps: bool = False


@frozen(kw_only=True)
class Wait:
    """A step may go on at *until*."""

    step: str
    until: datetime


@frozen(kw_only=True)
class End:
    """Nothing more is to be done."""

    outcome: RunOutcome
    exit: int
    reason: str


Due: TypeAlias = ApplyResult | Settle | AskAgain | Escalate | Start | Wait | End


def due(state: State) -> tuple[Due, ...]:
    """Return what is due, most urgent first; empty only for a closed run."""
    if state.closed is not None:
        return ()
    if urgent := tuple(_urgent(state)):
        return urgent
    if state.stop_asked:
        return (End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason="stopped on request"),)
    if state.aborted:
        return (_aborted(state),)
    if asked := tuple(_asked(state)):
        return asked
    return tuple(_next(state)) or (_end(state),)


def _urgent(state: State) -> Iterator[Due]:
    for step, record in state.steps.items():
        if record.status == "result":
            yield ApplyResult(step=step)
    for step, record in state.steps.items():
        if record.status == "running":
            yield Settle(step=step, attempt=record.attempt, effect=record.effect)


def _asked(state: State) -> Iterator[Due]:
    for step, record in state.steps.items():
        if record.id.phase in state.skipped:
            continue
        if record.status == "failed":
            yield Escalate(step=step, cause="failed", failure=record.failure, generation=record.generation)
        elif record.status == "waiting" and record.lost >= LOST_IN_A_ROW:
            yield Escalate(step=step, cause="lost", generation=record.generation)


def _next(state: State) -> Iterator[Due]:
    seen = state.seen
    if seen is None or not seen.phases:
        yield from _begin(state, Unmet(step=StepId(kind="init")))
        return
    for phase in sorted(seen.phases, key=lambda phase: phase_order(phase.number)):
        if in_range(state, phase.number) and phase.number not in state.skipped and _ready(state, phase):
            work = unmet(state, phase)
            if work:
                yield from _begin(state, work)


def in_range(state: State, number: str) -> bool:
    """Whether the phase with that number is one that the user wants done."""
    return state.options.phases is None or number in state.options.phases


def _ready(state: State, phase: PhaseSnapshot) -> bool:
    """All that the phase depends on is complete; a phase that does not exist is no dependency."""
    seen = state.seen
    needed = [seen.phase(number) for number in phase.depends_on] if seen else []
    return all(other is None or other.ticked for other in needed)


def _begin(state: State, work: Unmet) -> Iterator[Due]:
    step = str(work.step)
    record = state.steps.get(step)
    if work.gaps:
        granted = state.grants.get(work.step.phase, Allowance())
        yield Escalate(step=step, cause="gaps", gaps=work.gaps, generation=granted.verifications)
    elif record is None:
        yield Start(step=work.step, for_gaps=work.for_gaps)
    elif record.status == "completed" and record.completed >= REPEATS:
        yield Escalate(step=step, cause="repeats", generation=record.completed)
    elif record.status != "completed" and (inquiry := _waits_for(state, step)):
        yield AskAgain(step=step, inquiry=inquiry)
    elif record.until is not None:
        yield Wait(step=step, until=record.until)
    else:
        yield Start(step=work.step, for_gaps=work.for_gaps)


def _waits_for(state: State, step: str) -> Inquiry | None:
    """Return what an attempt at the step asked and nobody has answered: it was parked, or it was lost.

    It is asked before the step is entered again, so that no agent decides it for itself.
    """
    for question in state.inquiries.values():
        if question.open and question.inquiry.step == step and question.inquiry.kind != "escalation":
            return question.inquiry
    return None


def _aborted(state: State) -> End:
    record = state.steps[state.aborted]
    reason = f"aborted at {state.aborted}"
    if record.failure:
        return End(outcome="failed", exit=exit_of(record.failure), reason=reason)
    gaps = record.id.kind == "verify"
    return End(
        outcome="gaps" if gaps else "failed", exit=ExitCode.GAPS if gaps else ExitCode.FAILED, reason=reason
    )


def exit_of(failure: Failure | None) -> int:
    """Return the exit code by which a failure ends a run when nobody answers."""
    if failure is None:
        return ExitCode.FAILED
    return exit_code_of_kind(failure.kind, limited=failure.until is not None)


def _end(state: State) -> End:
    phases = state.seen.phases if state.seen else ()
    wanted = [phase for phase in phases if in_range(state, phase.number)]
    if skipped := [phase.number for phase in wanted if phase.number in state.skipped]:
        return End(
            outcome="gaps", exit=ExitCode.GAPS, reason=f"skipped, not done: phase {', '.join(skipped)}"
        )
    if open_phases := [phase for phase in wanted if not phase.ticked]:
        return End(outcome="blocked", exit=ExitCode.USAGE, reason=_blocked(state, open_phases))
    if not wanted:
        return End(
            outcome="blocked", exit=ExitCode.USAGE, reason="no phase of the roadmap is in the range asked for"
        )
    unverified = " (verification skipped)" if state.options.skip_verify else ""
    return End(
        outcome="done", exit=ExitCode.OK, reason=f"{_count(len(wanted), 'phase')} complete{unverified}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _blocked(state: State, phases: list[PhaseSnapshot]) -> str:
    def missing(phase: PhaseSnapshot) -> str:
        needs = [n for n in phase.depends_on if (p := state.seen and state.seen.phase(n)) and not p.ticked]
        return f"phase {phase.number} depends on {', '.join(needs)}"

    return "; ".join(map(missing, phases)) + ": not complete, and not in range or in a circle"
