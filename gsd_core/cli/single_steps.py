"""Which steps ``gsd plan`` and ``gsd execute`` ask for, and why they cannot.

Everything is checked before the run starts, against the files and the last run: a command for one step that
does nothing, or another step, would surprise its user.
"""

from __future__ import annotations

from pathlib import Path

from gsd_core.errors import ProjectError, UserError
from gsd_core.machine.due import round_of, startable_plans
from gsd_core.machine.state import PlanSnapshot, State
from gsd_core.model.ids import EXECUTE, PLAN, StepId, normal_phase
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.survey import read_planning

from .global_options import GlobalOptions
from .project import load, planned_root


def plan_steps(options: GlobalOptions, phase: str, *, gaps: bool) -> dict[str, str]:
    """Return the step that plans *phase*, or with *gaps* the gaps that its last verification found."""
    _, view, state = _read(options, phase)
    number = view.number
    waiting = [plan.id for plan in view.plans if not plan.summary]
    if not gaps:
        missing = set(view.listed) - {plan.id for plan in view.plans}
        if view.plans and not missing:
            next_step = f"gsd execute {number}" if waiting else f"gsd plan {number} --gaps"
            hint = f"execute them with: {next_step}" if waiting else f"plan what is missing with: {next_step}"
            raise UserError(
                f"phase {number} is planned already: {_listed([plan.id for plan in view.plans])}", hint=hint
            )
        return {str(round_of(state, PLAN, number)): ""}
    if view.verdict is None:
        raise UserError(
            f"phase {number} was not verified, so no gaps are known", hint=f"gsd run --only {number}"
        )
    if waiting:
        raise UserError(
            f"phase {number} has plans that are not executed: {_listed(waiting)}",
            hint=f"gsd execute {number}",
        )
    if view.verdict.status != "gaps_found" or not view.verdict.gaps:
        raise UserError(
            f"the last verification of phase {number} found no gaps", hint=f"see it with: gsd gaps {number}"
        )
    if _is_stale(options, view):
        raise UserError(
            f"the verification of phase {number} is older than its last executed plan",
            hint=f"verify it again with: gsd run --only {number}",
        )
    step = round_of(state, PLAN, number)
    # Round 0 is the plan step of the phase itself, even if other tools made its plans.
    return {str(StepId(kind=PLAN, phase=number, round=max(step.round, 1))): ""}


def execute_steps(options: GlobalOptions, phase: str) -> dict[str, str]:
    """Return the steps that execute the plans of *phase* that have no summary, in an order that works."""
    planning, view, _ = _read(options, phase)
    number = view.number
    if not view.plans:
        raise UserError(f"phase {number} has no plans", hint=f"gsd plan {number}")
    if missing := sorted(set(view.listed) - {plan.id for plan in view.plans}):
        raise UserError(
            f"ROADMAP.md lists plans of phase {number} that have no file: {_listed(missing)}",
            hint=f"gsd plan {number}",
        )
    waiting = [plan for plan in view.plans if not plan.summary]
    if not waiting:
        raise UserError(
            f"phase {number} is executed already: all its {len(view.plans)} plans have a summary",
            hint=f"verify it with: gsd run --only {number}",
        )
    if unreadable := [plan for plan in waiting if plan.unreadable]:
        raise ProjectError(
            f"plan {unreadable[0].id} cannot be read: {unreadable[0].unreadable}", hint="fix it"
        )
    for other in filter(None, map(planning.phase, view.depends_on)):
        if not other.ticked and (not other.plans or any(not plan.summary for plan in other.plans)):
            raise UserError(
                f"phase {number} depends on phase {other.number}, which is not executed",
                hint=f"gsd {'execute' if other.plans else 'plan'} {other.number}",
            )
    left = sorted(
        (PlanSnapshot(id=plan.id, depends_on=plan.depends_on, wave=plan.wave) for plan in waiting),
        key=lambda plan: (plan.wave, plan.id),
    )
    steps: dict[str, str] = {}
    while left:
        plan = startable_plans(left)[0]
        left.remove(plan)
        steps[str(StepId(kind=EXECUTE, phase=number, detail=plan.id))] = ""
    return steps


def _read(options: GlobalOptions, phase: str) -> tuple[Planning, PhaseView, State]:
    planning = read_planning(planned_root(options))
    number = normal_phase(phase)
    view = planning.phase(number)
    if view is None:
        known = ", ".join(one.number for one in planning.phases)
        has = f"the roadmap has {known}" if known else planning.idle or "there is no roadmap"
        raise UserError(f"phase {phase} does not exist; {has}", hint="list the phases with: gsd phases")
    return planning, view, load(options).state


def _is_stale(options: GlobalOptions, view: PhaseView) -> bool:
    import asyncio

    from gsd_core.git import Git
    from gsd_core.run.snapshot import with_staleness

    root: Path = planned_root(options)
    order = asyncio.run(Git(root).order(".planning/phases"))
    verdict = with_staleness(view, order).verdict
    return bool(verdict and verdict.stale)


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return ", ".join(ids[:5]) + more
