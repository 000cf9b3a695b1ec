"""A step's phase: its files, its plans, and the position that STATE.md gets after the step."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gsd_core import Permanent, PhaseView, Plan, PlanningError, SetPosition, StepRequest, padded, slug
from gsd_core.planning.markdown import read_text


def phase_of(step: StepRequest) -> PhaseView:
    """Return the step's phase; raise ``Permanent`` if it has none."""
    if step.phase is None:
        raise Permanent(f"step {step.id!r} has no phase")
    return step.phase


def phase_file(phase: PhaseView, name: str) -> str:
    """Return the path of a file in the phase's folder: ``.planning/phases/02.1-slug/NAME``."""
    folder = phase.directory or f".planning/phases/{padded(phase.number)}-{slug(phase.name)}"
    return f"{folder}/{name}"


def text_if_readable(root: Path, path: str) -> str:
    """Return the text of a planning file; empty if there is none, or one that cannot be read."""
    with suppress(PlanningError):
        return read_text(root, path) if (root / path).exists() else ""
    return ""


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


def position(step: StepRequest, *, status: str, activity: str, at: PhaseView | None = None) -> SetPosition:
    """Return the project's position after the step: in phase *at*, else in its own. The core counts."""
    current = at or phase_of(step)
    return SetPosition(
        phase=current.number,
        name=current.name,
        status=status,
        date=date_of(step),
        activity=activity,
        at=step.now.isoformat(),
    )
