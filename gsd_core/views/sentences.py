"""What a run would do, a sentence per step, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gsd_core.machine.claims import standing
from gsd_core.machine.due import END, ApplyResult, AskAgain, Due, End, Escalate, Settle, Start, Wait, in_range
from gsd_core.machine.state import PhaseSnapshot, State
from gsd_core.model.ids import COMPLETE, DISCUSS, EXECUTE, INIT, PLAN, VERIFY, phase_order
from gsd_core.planning.survey import joined

from .next import Added, added_by

_CORE: Mapping[str, str] = {
    INIT: "write the requirements, the roadmap and the project's other files from the idea",
    DISCUSS: "settle what is open about {phase}, and record the decisions",
    PLAN: "plan {phase}",
    EXECUTE: "execute plan {detail} of {phase}",
    VERIFY: "verify {phase}",
    COMPLETE: "mark {phase} as complete",
}
_NOT_STARTED: Mapping[type[Due], str] = {
    Settle: "restart {}",
    AskAgain: "ask the question of {}",
    Escalate: "ask how to continue with {}",
    Wait: "wait for {}",
    ApplyResult: "write the result of {} to the project's files",
}
LIFECYCLE = (DISCUSS, PLAN, EXECUTE, VERIFY, COMPLETE)


def describe_work(work: Due, state: State, added: Added) -> str:
    """Return what is done about *work*, such as ``plan phase 1, Entries (1/plan)``.

    *added* are the kinds of steps that plugins add.
    """
    if isinstance(work, End):
        return "nothing to do"
    if not isinstance(work, Start):
        return _NOT_STARTED[type(work)].format(work.step)
    step = work.step
    phase = _phase_text(state, step.phase)
    if step.kind == PLAN and work.for_gaps:
        return f"plan how to close the gaps of {phase} ({step})"
    if step.kind in _CORE:
        return f"{_CORE[step.kind].format(phase=phase, detail=step.detail)} ({step})"
    plugin, title = added_by(added, step.kind)
    text = title[:1].lower() + title[1:] if title else f"do the step {step.kind}"
    about = f"{text}: {phase}" if step.phase else text
    return f"{about} ({step}{f', plugin {plugin}' if plugin else ''})"


def _phase_text(state: State, number: str) -> str:
    phase = state.seen.phase(number) if state.seen else None
    return f"phase {number}, {phase.name}" if phase and phase.name else f"phase {number}"


def what_follows(state: State, work: Sequence[Due], added: Added) -> Iterator[str]:
    """Yield what a run does after *work*, a sentence per phase, if nothing unexpected happens.

    The steps that plugins have *added* are named with their plugins. A run that does only the steps that the
    user asked for does nothing else.
    """
    if state.options.only_asked or not work or isinstance(work[0], End):
        return
    phases = state.seen.phases if state.seen else ()
    if not phases:
        if INIT not in (str(one.step) for one in work if isinstance(one, Start)):
            yield f"then {_CORE[INIT]}"
        left = [*_with_added(left_of_lifecycle(state, None), added, ())]
        yield f"then {joined(left)} each phase of the roadmap"
    begun = {str(one.step) for one in work if isinstance(one, Start)}
    for phase in sorted(phases, key=lambda phase: phase_order(phase.number)):
        if not in_range(state, phase.number) or phase.number in state.skipped:
            continue
        if standing(state, phase) != "open":
            continue
        left = [each for each in left_of_lifecycle(state, phase) if f"{phase.number}/{each}" not in begun]
        if left:
            due = {one.kind for one in phase.due if f"{phase.number}/{one.kind}" not in begun}
            words = joined([*_with_added(left, added, due)])
            yield f"then {words} {_phase_text(state, phase.number)}{_after(state, phase)}"
    due = {one.kind for one in (state.seen.due if state.seen else ())}
    if state.options.phases is None and (last := [*_with_added([END], added, due)][:-1]):
        yield f"then {joined(last)} at the end of the milestone"


def left_of_lifecycle(state: State, phase: PhaseSnapshot | None) -> list[str]:
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


def _with_added(left: Sequence[str], added: Added, due: Collection[str]) -> Iterator[str]:
    """Yield the steps of *left*, and those of plugins that come before them; *due* are the kinds that are."""
    for step in left:
        for plugin, one in added:
            if one.before == step:
                yield f"{one.kind} (plugin {plugin}{'' if one.kind in due else ', if it is due'})"
        yield step


def _after(state: State, phase: PhaseSnapshot) -> str:
    """Return which phases have to be complete first, if any."""
    found = [state.seen.phase(number) for number in phase.depends_on] if state.seen else []
    open_ones = [other.number for other in found if other and standing(state, other) == "open"]
    if not open_ones:
        return ""
    return f", after {'phase' if len(open_ones) == 1 else 'phases'} {', '.join(open_ones)}"
