"""What a run would do, a sentence per step, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gsd_core.machine.claims import standing
from gsd_core.machine.due import AskAgain, Due, End, Escalate, Settle, Start, Wait, in_range
from gsd_core.machine.state import PhaseSnapshot, State
from gsd_core.model.ids import COMPLETE, DISCUSS, EXECUTE, INIT, PLAN, VERIFY, StepId, phase_order

_CORE: Mapping[str, str] = {
    INIT: "write the requirements, the roadmap and the project's other files from the idea",
    DISCUSS: "settle what is open about {phase}, and record the decisions",
    PLAN: "plan {phase}",
    EXECUTE: "execute plan {detail} of {phase}",
    VERIFY: "verify {phase}",
    COMPLETE: "mark {phase} as complete",
}
LIFECYCLE = (DISCUSS, PLAN, EXECUTE, VERIFY, COMPLETE)


def describe_work(work: Due, state: State, titles: Mapping[str, str]) -> str:
    """Return what is done about *work*, such as ``plan phase 1, Entries (1/plan)``.

    *titles* say what the steps of plugins do, by kind.
    """
    if isinstance(work, End):
        return "nothing to do"
    step = work.step if isinstance(work, Start) else StepId.parse(work.step)
    if isinstance(work, Settle):
        return f"restart {step}"
    if isinstance(work, AskAgain):
        return f"ask the question of {step}"
    if isinstance(work, Escalate):
        return f"ask how to continue with {step}"
    if isinstance(work, Wait):
        return f"wait for {step}"
    if not isinstance(work, Start):
        return f"write the result of {step} to the project's files"
    return f"{_describe_step(step, state, titles, for_gaps=work.for_gaps)} ({step})"


def _describe_step(step: StepId, state: State, titles: Mapping[str, str], *, for_gaps: bool) -> str:
    phase = _phase_text(state, step.phase)
    if step.kind == PLAN and for_gaps:
        return f"plan how to close the gaps of {phase}"
    if step.kind in _CORE:
        return _CORE[step.kind].format(phase=phase, detail=step.detail)
    title = titles.get(step.kind, "")
    text = title[:1].lower() + title[1:] if title else f"do the step {step.kind}"
    return f"{text}: {phase}" if step.phase else text


def _phase_text(state: State, number: str) -> str:
    phase = state.seen.phase(number) if state.seen else None
    return f"phase {number}, {phase.name}" if phase and phase.name else f"phase {number}"


def what_follows(state: State, work: Sequence[Due]) -> Iterator[str]:
    """Yield what a run does after *work*, a sentence per phase, if nothing unexpected happens.

    A run that does only the steps that the user asked for does nothing else.
    """
    if state.options.only_asked or not work or isinstance(work[0], End):
        return
    phases = state.seen.phases if state.seen else ()
    if not phases:
        yield f"then {_joined(_left_of_lifecycle(state, None))} each phase of the roadmap"
    begun = {str(one.step) for one in work if isinstance(one, Start)}
    for phase in sorted(phases, key=lambda phase: phase_order(phase.number)):
        if not in_range(state, phase.number) or phase.number in state.skipped:
            continue
        if standing(state, phase) != "open":
            continue
        left = [each for each in _left_of_lifecycle(state, phase) if f"{phase.number}/{each}" not in begun]
        if left:
            yield f"then {_joined(left)} {_phase_text(state, phase.number)}{_after(state, phase)}"


def _left_of_lifecycle(state: State, phase: PhaseSnapshot | None) -> list[str]:
    """Return the steps that *phase* still needs; without one, those of any phase."""
    left = [step for step in LIFECYCLE if step != VERIFY or not state.options.skip_verify]
    if phase is None:
        return left
    written = [plan for plan in phase.plans if plan.on_disk]
    is_planned = bool(written) and len(written) == len(phase.plans)
    done = {
        DISCUSS: phase.context or bool(written),
        PLAN: is_planned and phase.verdict != "gaps_found",
        EXECUTE: is_planned and all(plan.summary for plan in written) and phase.verdict != "gaps_found",
        VERIFY: phase.verdict == "passed",
    }
    return [step for step in left if not done.get(step)]


def _after(state: State, phase: PhaseSnapshot) -> str:
    """Return which phases have to be complete first, if any."""
    found = [state.seen.phase(number) for number in phase.depends_on] if state.seen else []
    open_ones = [other.number for other in found if other and standing(state, other) == "open"]
    if not open_ones:
        return ""
    return f", after {'phase' if len(open_ones) == 1 else 'phases'} {', '.join(open_ones)}"


def _joined(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
