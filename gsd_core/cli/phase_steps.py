"""Which steps ``gsd discuss``, ``gsd verify`` and ``gsd debug`` ask for, and why they cannot."""

from __future__ import annotations

from gsd_core.errors import UserError
from gsd_core.machine.state import State
from gsd_core.model.ids import DISCUSS, VERIFY, StepId, normal_phase, slug
from gsd_core.planning.model import PhaseView
from gsd_core.planning.survey import read_planning

from .global_options import GlobalOptions
from .project import load, planned_root

DEBUG = "debug"


def discuss_step(options: GlobalOptions, phase: str, words: str) -> dict[str, str]:
    """Return the step that discusses *phase*; with a CONTEXT, it adds decisions to it."""
    view = _phase(options, phase)
    return {str(_next(load(options).state, StepId(kind=DISCUSS, phase=view.number))): words}


def verify_step(options: GlobalOptions, phase: str) -> dict[str, str]:
    """Return the step that verifies *phase* again, all of whose plans have to be executed."""
    view = _phase(options, phase)
    waiting = [plan.id for plan in view.plans if not plan.summary]
    if not view.plans or waiting:
        problem = f"has plans that are not executed: {', '.join(waiting[:5])}" if waiting else "has no plans"
        raise UserError(f"phase {view.number} {problem}", hint=f"gsd run --only {view.number}")
    return {str(_next(load(options).state, StepId(kind=VERIFY, phase=view.number))): ""}


def debug_step(options: GlobalOptions, words: str) -> dict[str, str]:
    """Return the step that investigates a problem in the user's *words*."""
    if not words.strip():
        raise UserError("there is no problem to investigate", hint="gsd debug 'what happens'")
    planned_root(options)
    return {str(_next(load(options).state, StepId(kind=DEBUG, detail=slug(words)))): words}


def _phase(options: GlobalOptions, phase: str) -> PhaseView:
    planning = read_planning(planned_root(options))
    view = planning.phase(normal_phase(phase))
    if view is None:
        known = ", ".join(one.number for one in planning.phases)
        has = f"the roadmap has {known}" if known else planning.idle or "there is no roadmap"
        raise UserError(f"phase {phase} does not exist; {has}", hint="list the phases with: gsd phases")
    return view


def _next(state: State, wanted: StepId) -> StepId:
    """Return the step of that kind that is in progress, or that of the next round."""
    known = [
        record
        for record in state.steps.values()
        if (record.id.kind, record.id.phase, record.id.detail) == (wanted.kind, wanted.phase, wanted.detail)
    ]
    running = [record.id.round for record in known if record.status not in ("completed", "skipped")]
    number = min(running) if running else max([0, *(record.id.round + 1 for record in known)])
    return StepId(kind=wanted.kind, phase=wanted.phase, detail=wanted.detail, round=number)
