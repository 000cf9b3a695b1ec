"""What can no longer become due: steps of a milestone that was closed, or that nobody wants any more.

Otherwise their questions would stay open, and steps that the user asked for would never leave the list. Only
steps of plugins' kinds are judged: those of the core end with their phase.
"""

from __future__ import annotations

from gsd_core.model.ids import CORE_KINDS, StepId

from .state import State

MILESTONE_STEPS = ("audit", "close")
"""Steps about a milestone as a whole."""


def why_obsolete(state: State, step: str) -> str:
    """Return why *step* can no longer become due, according to the last snapshot; empty if it can."""
    if state.seen is None or not step:
        return ""
    record = state.steps.get(step)
    if record and record.status in ("running", "result"):
        return ""  # it is settled or applied first
    found = StepId.parse(step)
    if found.kind in CORE_KINDS:
        return ""
    # A step that was interrupted or has failed may itself be why the milestone looks closed.
    has_begun = record is not None and record.attempt > 0 and record.status in ("waiting", "failed")
    if found.kind in MILESTONE_STEPS and not has_begun:
        seen = state.seen
        # Without phases and without a reason for that, the planning files are missing or cannot be read now.
        if (found.detail != seen.milestone) if seen.phases else seen.idle:
            return f"milestone {found.detail} is no longer in progress"
    if step in state.asked:
        return ""
    phase = state.seen.phase(found.phase) if found.phase else None
    if found.phase and phase is None:
        return f"phase {found.phase} no longer exists"
    wanted = phase.due if phase else state.seen.due
    return "" if found.kind in {one.kind for one in wanted} else f"{found.kind} is no longer due"
