"""Read the disk: planning files and the order of commits, as the machine's digest."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from gsd_core.git import Git
from gsd_core.journal.codec import unstructure
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.survey import read_planning

from .preflight import merged
from .runtime import Run

PROJECT_FILE_LIMIT = 16_000


async def observe(run: Run) -> None:
    """Read the project; record what is seen if it is not what was seen last."""
    planning = await read_project(run.root, run.git)
    run.planning = evolve(planning, config=merged(run.proposals, planning.config))
    seen = digest(run.planning)
    if seen != run.state.seen:
        run.record("project.observed", unstructure(seen))


async def read_project(root: Path, git: Git) -> Planning:
    """Return the planning files with stale verdicts marked, and the project's own CLAUDE.md."""
    planning = read_planning(root)
    order = await git.order(".planning/phases") if planning.phases else {}
    phases = tuple(with_staleness(phase, order) for phase in planning.phases)
    return evolve(planning, phases=phases, documents={**planning.documents, **_own_instructions(root)})


def _own_instructions(root: Path) -> dict[str, str]:
    path = root / "CLAUDE.md"
    try:
        return {"CLAUDE.md": path.read_text(encoding="utf-8")[:PROJECT_FILE_LIMIT]}
    except (OSError, UnicodeDecodeError):
        return {}


def with_staleness(phase: PhaseView, order: dict[str, int]) -> PhaseView:
    """Mark a verdict that is older than a summary; in *order* a larger number is later."""
    verdict = phase.verdict
    if verdict is None:
        return phase
    mine = order.get(verdict.path, 0)
    newer = any(order.get(plan.summary, 0) > mine for plan in phase.plans if plan.summary)
    return evolve(phase, verdict=evolve(verdict, stale=newer))


def digest(planning: Planning) -> Snapshot:
    """Return what the machine has to know of the planning files."""
    return Snapshot(milestone=planning.milestone, phases=tuple(_phase(phase) for phase in planning.phases))


def _phase(phase: PhaseView) -> PhaseSnapshot:
    on_disk = {plan.id for plan in phase.plans}
    plans = [
        PlanSnapshot(id=plan.id, summary=bool(plan.summary), depends_on=plan.depends_on, wave=plan.wave)
        for plan in phase.plans
    ]
    missing = [PlanSnapshot(id=plan, on_disk=False) for plan in phase.listed if plan not in on_disk]
    verdict = phase.verdict
    return PhaseSnapshot(
        number=phase.number,
        name=phase.name,
        depends_on=phase.depends_on,
        ticked=phase.ticked,
        context=bool(phase.context),
        research=bool(phase.research),
        plans=(*plans, *missing),
        verdict=verdict.status if verdict else "",
        stale=bool(verdict and verdict.stale),
        gaps=tuple(gap.key for gap in verdict.gaps) if verdict else (),
    )
