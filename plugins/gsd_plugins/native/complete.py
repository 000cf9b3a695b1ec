"""complete: what is verified is ticked, by code alone."""

from __future__ import annotations

from gsd_core import MapRequirement, PhaseView, StepHost, StepRequest, StepResult, TickPhase, padded

from .place import day, phase_of, position


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Complete the phase's requirements, then the phase itself: the tick says that all is done.

    A roadmap may name requirements that stand nowhere: what is verified is complete all the same.
    """
    phase = phase_of(step)
    known = {requirement.id for requirement in step.planning.requirements}
    requirements = tuple(
        MapRequirement(requirement=name, phase=phase.number, status="Complete")
        for name in phase.requirements
        if name in known
    )
    activity = f"Completed Phase {phase.number}: {phase.name}"
    return StepResult(
        subject=f"docs(phase-{padded(phase.number)}): complete phase execution",
        changes=(
            *requirements,
            position(step, status=_status(step, phase), activity=activity),
            TickPhase(phase=phase.number, date=day(step)),
        ),
    )


def _status(step: StepRequest, phase: PhaseView) -> str:
    left = [other for other in step.planning.phases if other.number != phase.number and not other.ticked]
    return "Phase complete" if left else "All phases complete"
