"""complete: mark a verified phase and its requirements as complete. No agent is involved."""

from __future__ import annotations

from gsd_core import MapRequirement, StepHost, StepRequest, StepResult, TickPhase, padded

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
    phases_left = any(other.number != phase.number and not other.ticked for other in step.planning.phases)
    status = "Phase complete" if phases_left else "All phases complete"
    activity = f"Completed Phase {phase.number}: {phase.name}"
    return StepResult(
        subject=f"docs(phase-{padded(phase.number)}): complete phase execution",
        changes=(
            *requirements,
            position(step, status=status, activity=activity),
            # Last, because the tick means that everything else is done.
            TickPhase(phase=phase.number, date=date_of(step)),
        ),
    )
