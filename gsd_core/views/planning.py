"""The content of ``.planning/`` as JSON data: phases, plans, requirements, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.model.gap import Gap, HumanCheck
from gsd_core.planning.model import Plan, Verdict
from gsd_core.planning.survey import Survey, Surveyed
from gsd_core.planning.traceability import Trace
from gsd_core.planning.waves import plan_waves

from .status import SCHEMA_VERSION

CurrentVerdict: TypeAlias = Literal["passed", "gaps_found", "human_needed", "missing", "stale"]


def phases_json(survey: Survey, phases: Iterable[Surveyed]) -> dict[str, Any]:
    """Return the milestones and *phases* as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "milestones": [
            {"version": one.version, "name": one.name, "shipped": one.shipped} for one in survey.milestones
        ],
        "phases": [
            {
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
            for phase in phases
        ],
    }


def plans_json(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return the plans of a phase as JSON data; waves are computed from the plans' dependencies."""
    waves = plan_waves(plans)
    return {
        "schema_version": SCHEMA_VERSION,
        "plans": [
            {
                "id": plan.id,
                "wave": waves[plan.id],
                "depends_on": list(plan.depends_on),
                "autonomous": plan.autonomous,
                "files_modified": list(plan.files_modified),
                "requirements": list(plan.requirements),
                "tasks": len(plan.tasks),
                "has_summary": bool(plan.summary),
                "gap_closure": plan.gap_closure,
            }
            for plan in plans
        ],
    }


def requirements_json(rows: Iterable[Trace]) -> dict[str, Any]:
    """Return the traced requirements as JSON data, in the order of their file."""
    return {
        "schema_version": SCHEMA_VERSION,
        "requirements": [
            {
                "id": row.requirement.id,
                "text": row.requirement.text,
                "category": row.requirement.category,
                "version": row.requirement.version,
                "done": row.requirement.done,
                "statements": list(row.requirement.statements),
                "phase": row.phase or None,
                "plans": list(row.plans),
                "commits": list(row.commits),
                "checks": [
                    {
                        "id": check.id,
                        "command": check.command,
                        "status": check.result.status if check.result else None,
                        "result": check.result.proof if check.result else None,
                    }
                    for check in row.checks
                ],
                "evidence": [
                    {"about": one.about, "status": one.status, "proof": one.proof} for one in row.evidence
                ],
                "status": row.status,
                "reason": row.reason,
            }
            for row in rows
        ],
    }


@attrs.frozen(kw_only=True)
class PhaseGaps:
    """A phase's verdict on disk, the gaps in it, and those that the detectors find now.

    *failed* says which detectors failed and why; if there are any, the list of gaps may be incomplete.
    *without* are the detectors that were not asked.
    """

    status: CurrentVerdict
    gaps: tuple[Gap, ...] = ()
    human: tuple[HumanCheck, ...] = ()
    failed: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def verdict_status(verdict: Verdict | None) -> CurrentVerdict:
    """Return the status of a verdict on disk; one that cannot be read counts as missing."""
    if verdict is None or verdict.status == "unknown":
        return "missing"
    return "stale" if verdict.stale else verdict.status


def gaps_json(found: PhaseGaps) -> dict[str, Any]:
    """Return *found* as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "status": found.status,
        "gaps": [
            {
                "truth": gap.truth,
                "about": gap.about or None,
                "status": gap.status,
                "reason": gap.reason,
                "artifacts": [{"path": artifact.path, "issue": artifact.issue} for artifact in gap.artifacts],
                "missing": list(gap.missing),
                "found_by": gap.found_by,
            }
            for gap in found.gaps
        ],
        "complete": not found.failed,
        "without": list(found.without),
    }
