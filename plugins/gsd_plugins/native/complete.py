"""complete: mark a verified phase and its requirements as complete. No agent is involved."""

from __future__ import annotations

from gsd_core import MapRequirement, StepHost, StepRequest, StepResult, TickPhase, padded, phase_order

from .paths import date_of, phase_of, position


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Complete the phase's requirements, then the phase itself."""
    phase = phase_of(step)
    # A roadmap may name requirements that REQUIREMENTS.md lacks. There is nothing to mark for these,
    # and they must not keep a verified phase from being completed.
    known = {requirement.id for requirement in step.planning.requirements}
    requirements = tuple(
        MapRequirement(requirement=name, phase=phase.number, status="Complete")
        for name in phase.requirements
        if name in known
    )
    done = {phase.number, *step.complete}
    left = [one for one in step.planning.phases if one.number not in done]
    following = min(left, key=lambda one: phase_order(one.number), default=None)
    number = f"Phase {phase.number}"
    if following is None:
        here = position(step, status="All phases complete", activity=f"{number} complete", completed=True)
    else:
        here = position(
            step,
            status="Ready to execute" if following.plans else "Ready to plan",
            activity=f"{number} complete, transitioned to Phase {following.number}",
            completed=True,
            at=following,
        )
    return StepResult(
        subject=f"docs(phase-{padded(phase.number)}): complete phase execution",
        changes=(
            *requirements,
            here,
            # Last, because the tick means that everything else is done.
            TickPhase(phase=phase.number, date=date_of(step)),
        ),
    )
