"""The first postcondition of a phase that does not hold."""

from __future__ import annotations

from attrs import evolve, frozen

from gsd_core.ids import StepId, StepKind

from .state import Grant, PhaseSeen, PlanSeen, State, StepRecord, gap_rounds

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


def unmet(state: State, phase: PhaseSeen) -> Unmet | None:
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


def is_stale(state: State, phase: PhaseSeen) -> bool:
    """The verdict is older than a plan's execution: by our own record, else by what the disk says."""
    covered = state.verified.get(phase.number)
    if covered is None:
        return phase.stale
    return any(plan.summary and plan.id not in covered for plan in phase.plans)


def _to_execute(phase: PhaseSeen) -> PlanSeen | None:
    """Return the next plan in wave order without a summary; of plans in a circle the first."""
    waiting = sorted((p for p in phase.plans if not p.summary), key=lambda plan: (plan.wave, plan.id))
    names = {plan.id for plan in waiting}
    free = [plan for plan in waiting if not names & set(plan.depends_on)]
    return next(iter(free or waiting), None)


def _round(state: State, kind: StepKind, phase: PhaseSeen) -> StepId:
    """Return the id of the phase's step of that kind that is under way, or of the next round."""
    records = state.of(kind, phase.number)
    running = [record.id.round for record in records if record.status not in ("completed", "skipped")]
    finished = [record.id.round + 1 for record in records]
    return StepId(kind=kind, phase=phase.number, round=min(running) if running else max([0, *finished]))


def _close_gaps(state: State, phase: PhaseSeen) -> Unmet:
    """Plan the gaps, unless the rounds are used up or the last one closed none of them."""
    verifications = [record for record in state.of("verify", phase.number) if record.completed]
    if phase.verdict == "human_needed" or not phase.gaps:
        return _verify_again(state, phase, verifications)
    if _exhausted(state, phase, verifications):
        last = verifications[-1].id if verifications else _round(state, "verify", phase)
        return Unmet(step=last, gaps=phase.gaps)
    plan = _round(state, "plan", phase)
    return Unmet(step=evolve(plan, round=max(plan.round, 1)), for_gaps=True)


def _verify_again(state: State, phase: PhaseSeen, verifications: list[StepRecord]) -> Unmet:
    """Verify once more what is incomplete; ask if that did not help."""
    granted = state.grants.get(phase.number, Grant()).verifications
    if not verifications or sum(r.completed for r in verifications) < granted:
        return Unmet(step=_round(state, "verify", phase))
    return Unmet(step=verifications[-1].id, gaps=(_incomplete(verifications[-1]),))


def _incomplete(record: StepRecord) -> str:
    why = "; ".join(record.failed_detectors)
    return f"verification is not complete: {why}" if why else "verification is not complete"


def _exhausted(state: State, phase: PhaseSeen, verifications: list[StepRecord]) -> bool:
    done = len(gap_rounds(state, phase.number))
    under_way = any(r.for_gaps and not r.completed for r in state.of("plan", phase.number))
    if under_way or done < state.grants.get(phase.number, Grant()).rounds:
        return False
    return done >= state.options.gap_rounds or (done > 0 and _no_progress(verifications))


def _no_progress(verifications: list[StepRecord]) -> bool:
    """No gap of the round before is closed."""
    if len(verifications) < 2:
        return False
    before, now = (set(record.gaps) for record in verifications[-2:])
    return before <= now


def _verify(state: State, phase: PhaseSeen) -> Unmet:
    done = [record for record in state.of("verify", phase.number) if record.completed]
    granted = state.grants.get(phase.number, Grant()).verifications
    limit = max(granted, len(state.of("plan", phase.number)) + VERIFICATIONS_WITHOUT_A_RECORD)
    if len(done) >= limit:
        return Unmet(step=done[-1].id, gaps=("VERIFICATION.md does not stay as it was written",))
    return Unmet(step=_round(state, "verify", phase))
