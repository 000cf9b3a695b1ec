"""A step's phase: its files, its plans, and the position that STATE.md gets after the step."""

from __future__ import annotations

from collections.abc import Iterable

from gsd_core import Permanent, PhaseView, Plan, SetPosition, StepRequest, padded, slug


def phase_of(step: StepRequest) -> PhaseView:
    """Return the step's phase; raise ``Permanent`` if it has none."""
    if step.phase is None:
        raise Permanent(f"step {step.id!r} has no phase")
    return step.phase


def phase_file(phase: PhaseView, name: str) -> str:
    """Return the path of a file in the phase's folder: ``.planning/phases/02.1-slug/NAME``."""
    folder = phase.directory or f".planning/phases/{padded(phase.number)}-{slug(phase.name)}"
    return f"{folder}/{name}"


def date_of(step: StepRequest) -> str:
    """Return the date on which the attempt began, in ISO format (UTC)."""
    return step.now.date().isoformat()


def executed_plans(phase: PhaseView) -> tuple[Plan, ...]:
    """Return the phase's plans that have a summary."""
    return tuple(plan for plan in phase.plans if plan.summary)


def unwritten_plan_ids(phase: PhaseView) -> tuple[str, ...]:
    """Return the ids of plans that the roadmap lists but that have no file."""
    written = {plan.id for plan in phase.plans}
    return tuple(sorted(plan_id for plan_id in phase.listed if plan_id not in written))


def position(
    step: StepRequest,
    *,
    status: str,
    activity: str,
    planned: Iterable[str] = (),
    done: Iterable[str] = (),
    completed: bool = False,
    at: PhaseView | None = None,
) -> SetPosition:
    """Return the project's position once the plans *planned* are written and *done* are executed.

    *completed*: the step's phase is complete then. *at* is the phase to continue with, if not the step's.
    """
    phase = phase_of(step)
    others = [other for other in step.planning.phases if other.number != phase.number]
    listed = _listed(phase) | set(planned)
    finished = _finished(phase) | set(done)
    all_listed = len(listed) + sum(len(_listed(other)) for other in others)
    all_finished = len(finished) + sum(len(_finished(other)) for other in others)
    phases_done = sum(map(_is_complete, others)) + (completed or phase.ticked)
    current = at or phase
    return SetPosition(
        phase=current.number,
        phases=len(others) + 1,
        name=current.name,
        plan=len(_finished(at) if at else finished),
        plans=len(_listed(at) if at else listed),
        status=status,
        percent=_percent((all_finished, all_listed), (phases_done, len(others) + 1)),
        date=date_of(step),
        activity=activity,
        done=all_finished,
        all_plans=all_listed,
        phases_done=phases_done,
        at=step.now.isoformat(),
    )


def _percent(*shares: tuple[int, int]) -> int:
    """Return the smallest of the shares (done, total), as GSD computes the progress of a milestone.

    All plans that exist may be executed while most phases are still to be planned.
    """
    smallest = min(done / total for done, total in shares if total)
    return min(100, int(100 * smallest + 0.5))


def _is_complete(phase: PhaseView) -> bool:
    passed = phase.verdict is not None and phase.verdict.status == "passed" and not phase.verdict.stale
    return phase.ticked or (passed and _listed(phase) == _finished(phase))


def _listed(phase: PhaseView) -> set[str]:
    return {*phase.listed, *(plan.id for plan in phase.plans)}


def _finished(phase: PhaseView) -> set[str]:
    return {plan.id for plan in executed_plans(phase)}
