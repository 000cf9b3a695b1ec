"""What lies in ``.planning/``, as JSON data: phases, plans, requirements, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from attrs import frozen

from gsd_core.model.gap import Gap, HumanCheck
from gsd_core.planning.model import Plan, Requirement, Verdict
from gsd_core.planning.survey import Survey, Surveyed
from gsd_core.planning.waves import plan_waves

from .status import SCHEMA_VERSION

VerdictSeen: TypeAlias = Literal["passed", "gaps_found", "human_needed", "missing", "stale"]


def phases_json(survey: Survey, phases: Iterable[Surveyed]) -> dict[str, Any]:
    """Return milestones and *phases*."""
    return {
        "schema_version": SCHEMA_VERSION,
        "milestones": [
            {"version": one.version, "name": one.name, "shipped": one.shipped} for one in survey.milestones
        ],
        "phases": [_phase(phase) for phase in phases],
    }


def _phase(phase: Surveyed) -> dict[str, Any]:
    return {
        "number": phase.number,
        "name": phase.name,
        "goal": phase.goal,
        "depends_on": list(phase.depends_on),
        "plans": phase.plans,
        "summaries": phase.summaries,
        "status": phase.status,
        "complete": phase.complete,
        "milestone": phase.milestone or None,
    }


def plans_json(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return the plans of a phase; a wave is counted from what the plan depends on."""
    waves = plan_waves(plans)
    return {
        "schema_version": SCHEMA_VERSION,
        "plans": [_plan(plan, waves[plan.id]) for plan in plans],
    }


def _plan(plan: Plan, wave: int) -> dict[str, Any]:
    return {
        "id": plan.id,
        "wave": wave,
        "depends_on": list(plan.depends_on),
        "autonomous": plan.autonomous,
        "files_modified": list(plan.files_modified),
        "requirements": list(plan.requirements),
        "tasks": len(plan.tasks),
        "has_summary": bool(plan.summary),
        "gap_closure": plan.gap_closure,
    }


def requirements_json(requirements: Iterable[Requirement]) -> dict[str, Any]:
    """Return the requirements in the order of their file."""
    return {
        "schema_version": SCHEMA_VERSION,
        "requirements": [
            {
                "id": one.id,
                "text": one.text,
                "category": one.category,
                "version": one.version,
                "done": one.done,
                "phase": one.phase or None,
                "status": one.status,
            }
            for one in requirements
        ],
    }


@frozen(kw_only=True)
class GapsSeen:
    """What is known of a phase's gaps: the verdict that lies there, and what detectors see now.

    *failed* are the detectors that could not say; without any the picture is complete.
    """

    status: VerdictSeen
    gaps: tuple[Gap, ...] = ()
    human: tuple[HumanCheck, ...] = ()
    failed: tuple[str, ...] = ()


def verdict_status(verdict: Verdict | None) -> VerdictSeen:
    """Return what a verdict on disk says; one that cannot be read is no verdict."""
    if verdict is None or verdict.status == "unknown":
        return "missing"
    return "stale" if verdict.stale else verdict.status


def gaps_json(seen: GapsSeen) -> dict[str, Any]:
    """Return gaps as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "status": seen.status,
        "gaps": [_gap(gap) for gap in seen.gaps],
        "complete": not seen.failed,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "truth": gap.truth,
        "status": gap.status,
        "reason": gap.reason,
        "artifacts": [{"path": one.path, "issue": one.issue} for one in gap.artifacts],
        "missing": list(gap.missing),
        "found_by": gap.found_by,
    }
