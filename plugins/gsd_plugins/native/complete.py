"""complete: mark a verified phase and its requirements as complete. No agent is involved."""

from __future__ import annotations

from gsd_core import (
    FileWrite,
    MapRequirement,
    StepHost,
    StepRequest,
    StepResult,
    TickPhase,
    padded,
    phase_order,
)
from gsd_core.planning.deferred import NAME, with_done

from .paths import date_of, phase_of, position, text_if_readable


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
    files: list[FileWrite] = []
    if phase.directory and phase.verdict and phase.verdict.status == "passed":
        # The list of deferred items, without the tasks that gap rounds made up for. Somebody else's file that
        # cannot be read stays as it is.
        path = f"{phase.directory}/{NAME}"
        text = text_if_readable(step.project, path)
        if with_done(text) != text:
            files.append(FileWrite(path=path, text=with_done(text)))
    number = f"Phase {phase.number}"
    if following is None:
        here = position(step, status="All phases complete", activity=f"{number} complete")
    else:
        here = position(
            step,
            status="Ready to execute" if following.plans else "Ready to plan",
            activity=f"{number} complete, transitioned to Phase {following.number}",
            at=following,
        )
    return StepResult(
        files=tuple(files),
        subject=f"docs(phase-{padded(phase.number)}): complete phase execution",
        changes=(
            *requirements,
            here,
            # Last, because the tick means that everything else is done.
            TickPhase(phase=phase.number, date=date_of(step)),
        ),
    )
