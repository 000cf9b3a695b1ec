"""The content of ``.planning/`` as JSON data: phases, plans, requirements, gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.model.gap import Gap, HumanCheck
from gsd_core.planning.milestones import Milestone
from gsd_core.planning.model import Plan, Verdict
from gsd_core.planning.survey import Surveyed
from gsd_core.planning.traceability import RecordedCase, RecordedResult, Trace, TracedCheck
from gsd_core.serializer import FLAG, NUMBER, SCHEMA_VERSION, TEXT, Serializer, null

CurrentVerdict: TypeAlias = Literal["passed", "gaps_found", "human_needed", "missing", "stale"]


PHASE = Serializer(Surveyed, "number name goal depends_on plans summaries status complete milestone?")
MILESTONE = Serializer(Milestone, "version name shipped")
PLAN = Serializer(
    Plan,
    "id wave depends_on autonomous files_modified requirements tasks has_summary gap_closure",
    wave=NUMBER,
    tasks=(NUMBER, lambda plan: len(plan.tasks)),
    has_summary=(FLAG, lambda plan: bool(plan.summary)),
)
RESULT = Serializer(RecordedResult, "about status proof", status=TEXT)
REQUIREMENT = Serializer(
    Trace,
    "id=requirement.id text=requirement.text category=requirement.category version=requirement.version "
    "done=requirement.done statements=requirement.statements phase? plans commits checks evidence status "
    "reason",
    checks=Serializer(
        TracedCheck,
        "id command status result cases",
        status=(null(TEXT), lambda check: check.result.status if check.result else None),
        result=(null(TEXT), lambda check: check.result.proof if check.result else None),
        cases=Serializer(RecordedCase, "name fails_without"),
    ),
    evidence=RESULT,
)
GAP = Serializer(Gap, "truth about? status reason artifacts missing found_by")


def requirements_json(rows: Iterable[Trace]) -> dict[str, Any]:
    """Return the traced requirements as JSON data, in the order of their file."""
    return {"schema_version": SCHEMA_VERSION, "requirements": [*map(REQUIREMENT.dump, rows)]}


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


GAPS = Serializer(
    PhaseGaps, "status gaps complete without", gaps=GAP, complete=(FLAG, lambda found: not found.failed)
)
