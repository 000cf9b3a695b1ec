"""The audit of a milestone: what became of each requirement, according to three sources.

The sources are REQUIREMENTS.md (check mark and traceability), the ``requirements-completed`` of the SUMMARYs,
and the VERIFICATIONs. The table of their combinations is that of GSD's ``audit-milestone`` (gsd-core 1.14),
and so are the keys of ``vX.Y-MILESTONE-AUDIT.md``. The keys ``inputs`` and ``gap_phases`` are ours; GSD
ignores them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import kind_below
from gsd_core.model.ids import padded

from .frontmatter import Frontmatter, Node, read_frontmatter, render_frontmatter
from .markdown import document, inline, prose, read_text, table, title
from .model import PhaseView, Planning, Requirement
from .must_haves import UNMET
from .survey import survey
from .traceability import RecordedResult, parse_results, phase_of_requirement
from .verification import read_verification

RequirementStatus: TypeAlias = Literal["satisfied", "partial", "unsatisfied", "orphaned"]
AuditStatus: TypeAlias = Literal["passed", "gaps_found", "tech_debt"]

_ITEM = re.compile(r"^[ \t]*[-*][ \t]+(?:\[([ xX])\][ \t]+)?(.*\S)", re.MULTILINE)
MAX_ITEMS = 50
"""How many open items of one phase are listed; the number of the others follows."""
MAX_IN_HEAD, MAX_HEAD_TEXT = 40, 160
"""How many gaps and items the frontmatter has, and their characters: GSD and we read no endless one."""


@attrs.frozen(kw_only=True)
class AuditedRequirement:
    """A requirement's *status*, with what each source says.

    *claimed_by* are the plans that list it, *completed_by* those whose SUMMARY says that it is done.
    *needs_work*: it is known not to be met, so a phase has to deliver it; one that is only not verified does
    not.
    """

    requirement: Requirement
    status: RequirementStatus
    phase: str = ""
    claimed_by: tuple[str, ...] = ()
    completed_by: tuple[str, ...] = ()
    verification: str = "missing"
    evidence: str = ""
    needs_work: bool = False


@attrs.frozen(kw_only=True)
class Audit:
    """What an audit found; *unverified* are the phases without a verification that covers their work.

    *debt* are open items by phase: deferred work, checks that nobody made, issues that plans recorded.
    """

    milestone: str
    requirements: tuple[AuditedRequirement, ...] = ()
    phases: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    debt: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])

    @property
    def gaps(self) -> tuple[AuditedRequirement, ...]:
        """The requirements that are not satisfied."""
        return tuple(one for one in self.requirements if one.status != "satisfied")

    @property
    def to_do(self) -> tuple[AuditedRequirement, ...]:
        """The requirements that a phase has to deliver."""
        return tuple(one for one in self.requirements if one.needs_work)

    @property
    def status(self) -> AuditStatus:
        """The status in GSD's words; gaps are what a phase has to do, and no run with gaps succeeds."""
        if self.to_do:
            return "gaps_found"
        return "tech_debt" if self.debt or self.gaps or self.unverified else "passed"


def audit_path(version: str) -> str:
    """Return the path of a milestone's audit."""
    return f".planning/{version}-MILESTONE-AUDIT.md"


def audit(planning: Planning, root: Path) -> Audit:
    """Audit the milestone in progress. Raises :class:`PlanningError` only for files that cannot be opened."""
    phases = planning.phases
    said = {phase.number: tuple(_completed(phase, root)) for phase in phases}
    completed = {plan: ids for found in said.values() for plan, ids in found if ids is not None}
    silent = {number for number, found in said.items() if found and all(ids is None for _, ids in found)}
    results = {phase.number: parse_results(read_verification(phase)) for phase in phases}
    elsewhere = {one.number for one in survey(root).roadmap_phases}
    requirements = [
        _audited(one, phase_of_requirement(one, phases), completed, results, silent)
        for one in planning.requirements
        if _is_of_milestone(one, planning, elsewhere)
    ]
    return Audit(
        milestone=planning.milestone,
        requirements=tuple(requirements),
        phases=tuple(phase.number for phase in phases),
        unverified=tuple(phase.number for phase in phases if _verification(phase) == "missing"),
        debt={phase.number: items for phase in phases if (items := tuple(_debt(phase, root)))},
    )


def inputs_digest(planning: Planning) -> str:
    """Return a digest of what an audit judges: it is the same as long as a new audit would find the same.

    It is computed from what was read already, because it is asked for each time the project is observed.
    """
    facts = [
        planning.milestone,
        [[one.id, one.done, one.phase, one.status] for one in planning.requirements],
        [
            [
                phase.number,
                phase.ticked,
                phase.requirements,
                [[plan.id, plan.summary] for plan in phase.plans],
                [phase.verdict.status, phase.verdict.verified, phase.verdict.stale] if phase.verdict else [],
            ]
            for phase in planning.phases
        ],
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def read_audit(root: Path, version: str) -> Frontmatter:
    """Return the frontmatter of a milestone's audit; empty if there is none or it cannot be read."""
    path = audit_path(version)
    try:
        return read_frontmatter(read_text(root, path), path=path)
    except PlanningError:
        return Frontmatter()


def _is_of_milestone(requirement: Requirement, planning: Planning, elsewhere: Collection[str]) -> bool:
    if not requirement.version.startswith("v1") and not requirement.phase:
        return False  # left for later
    if phase_of_requirement(requirement, planning.phases) is not None:
        return True
    # GSD's older versions keep REQUIREMENTS.md: those of an earlier milestone's phases stay in it.
    is_done = requirement.done or requirement.status == "Complete"
    return not requirement.phase or not (is_done or requirement.phase in elsewhere)


def _completed(phase: PhaseView, root: Path) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield what each SUMMARY says is completed; ``None`` if it does not have the key."""
    for plan in phase.plans:
        if not plan.summary:
            continue
        try:
            head = read_frontmatter(read_text(root, plan.summary), path=plan.summary)
        except PlanningError:
            continue
        keys = ("requirements-completed", "requirements_completed")
        yield plan.id, head.texts(*keys) if any(key in head.values for key in keys) else None


def _verification(phase: PhaseView) -> str:
    verdict = phase.verdict
    if verdict is None or verdict.status == "unknown" or verdict.stale:
        return "missing"
    return verdict.status


def _audited(
    requirement: Requirement,
    phase: PhaseView | None,
    completed: Mapping[str, tuple[str, ...]],
    results: Mapping[str, Mapping[str, RecordedResult]],
    silent: Collection[str],
) -> AuditedRequirement:
    done_by = tuple(plan for plan, ids in completed.items() if requirement.id in ids)
    if phase is None:
        where = f"phase {requirement.phase}, which is not in ROADMAP.md" if requirement.phase else "no phase"
        return AuditedRequirement(
            requirement=requirement,
            status="orphaned",
            phase=requirement.phase,
            completed_by=done_by,
            verification="orphaned",
            evidence=f"assigned to {where}",
            needs_work=True,
        )
    claimed_by = tuple(plan.id for plan in phase.plans if requirement.id in plan.requirements)
    verification = _verification(phase)
    result = results[phase.number].get(requirement.id)
    failing = verification != "missing" and result is not None and result.status in UNMET
    if failing and result:
        verification = "gaps_found"
    status, evidence = _status(verification, done_by, phase)
    if verification == "passed" and not done_by and requirement.done and phase.number in silent:
        # Older versions of GSD write no such key, so its absence says nothing: two sources agree.
        status = "satisfied"
        evidence = f"verified in phase {phase.number} and checked off; its SUMMARYs list no requirements"
    if failing and result:
        said = result.proof.strip("- ") or result.status
        evidence = f"the verification of phase {phase.number} says: {said}"
    if status == "satisfied" and not requirement.done:
        evidence += "; not checked off in REQUIREMENTS.md"
    return AuditedRequirement(
        requirement=requirement,
        status=status,
        phase=phase.number,
        claimed_by=claimed_by,
        completed_by=done_by,
        verification=verification,
        evidence=evidence,
        needs_work=verification == "gaps_found",
    )


def _status(verification: str, done_by: tuple[str, ...], phase: PhaseView) -> tuple[RequirementStatus, str]:
    """Return the status by GSD's table: verification × SUMMARY."""
    number, plans = phase.number, ", ".join(done_by)
    match verification:
        case "passed" if done_by:
            return "satisfied", f"verified in phase {number}, done by {plans}"
        case "passed":
            return "partial", f"phase {number} passed its verification, but no SUMMARY lists it"
        case "human_needed":
            return "partial", f"phase {number} waits for a check by a person"
        case "missing" if done_by:
            return "partial", f"done by {plans}, but phase {number} is not verified"
        case "missing":
            return "unsatisfied", f"phase {number} is not verified, and no SUMMARY lists it"
        case _:
            return "unsatisfied", f"the verification of phase {number} found gaps"


def _debt(phase: PhaseView, root: Path) -> Iterator[str]:
    """Yield the open items of a phase: deferred ones, checks that nobody made, and recorded issues."""
    for check in phase.verdict.human if phase.verdict else ():
        if check.result == "assumed":
            yield f"Nobody looked: {prose(check.test)}"
    path = f"{phase.directory}/deferred-items.md"
    if phase.directory and kind_below(root, path) == "file":
        try:
            found = _ITEM.finditer(read_text(root, path))
            items = [match[2] for match in found if match[1] not in ("x", "X")]
        except PlanningError:
            items = [f"{path} cannot be read"]
        yield from (f"Deferred: {prose(item)}" for item in items[:MAX_ITEMS])
        if len(items) > MAX_ITEMS:
            yield f"Deferred: {len(items) - MAX_ITEMS} more in {path}"
    for plan in phase.plans:
        yield from (f"Issue in plan {plan.id}: {issue}" for issue in plan.issues[:MAX_ITEMS])


# Writing


def render_audit(
    found: Audit,
    planning: Planning,
    *,
    audited: str,
    inputs: str = "",
    gap_phases: tuple[str, ...] = (),
    accepted: str = "",
) -> str:
    """Return the text of vX.Y-MILESTONE-AUDIT.md; *audited* is a time in ISO format.

    *gap_phases* are the phases that were added for the gaps, *accepted* says who left them open.
    """
    names = {phase.number: f"{padded(phase.number)}-{phase.name}" for phase in planning.phases}
    satisfied = len(found.requirements) - len(found.gaps)
    verified = len(found.phases) - len(found.unverified)
    gaps: list[Node] = [
        {
            "id": one.requirement.id,
            "status": one.status,
            "phase": one.phase or "none",
            "claimed_by_plans": list(one.claimed_by[:5]),
            "completed_by_plans": list(one.completed_by[:5]),
            "verification_status": one.verification,
            "evidence": one.evidence[:MAX_HEAD_TEXT],
        }
        for one in found.to_do[:MAX_IN_HEAD]
    ]
    open_items = _open_items(found)
    share = max(1, MAX_IN_HEAD // max(1, len(open_items)))
    debt: list[Node] = [
        {"phase": names[number], "items": [item[:MAX_HEAD_TEXT] for item in items[:share]]}
        for number, items in list(open_items.items())[:MAX_IN_HEAD]
    ]
    head: dict[str, Node] = {
        "milestone": found.milestone,
        "audited": audited,
        "status": "tech_debt" if accepted and found.to_do else found.status,
        "scores": {
            "requirements": f"{satisfied}/{len(found.requirements)}",
            "phases": f"{verified}/{len(found.phases)}",
            "integration": "not checked",
            "flows": "not checked",
        },
        "gaps": {"requirements": gaps, "integration": [], "flows": []},
        "tech_debt": debt,
        **({"inputs": inputs} if inputs else {}),
        **({"gap_phases": list(gap_phases)} if gap_phases else {}),
        **({"gaps_accepted_by": accepted} if accepted else {}),
    }
    name = f"{found.milestone} {planning.milestone_name}".strip()
    columns = ["Requirement", "Phase", "Plans", "SUMMARY", "Verification", "Checked", "Status", "Evidence"]
    rows = table(columns, map(_row, found.requirements))
    parts = [
        f"# Milestone Audit: {title(name)}",
        f"**Audited:** {inline(audited)}\n**Status:** {head['status']}",
        "## Requirements",
        rows if found.requirements else "This milestone has no requirements.",
        "## Phases",
    ]
    for number in found.phases:
        why = "has no verification that covers its work" if number in found.unverified else "verified"
        parts.append(f"- {inline(names[number])}: {why}")
    if found.debt:
        parts.append("## Open items")
        for number, items in found.debt.items():
            listed = "\n".join(f"- {inline(item)}" for item in items)
            parts.append(f"**{title(names[number])}**\n\n{listed}")
    parts.append(f"## Gaps\n\nAdded for them: phase {', '.join(gap_phases)}." if gap_phases else "")
    parts.append(f"## Gaps\n\nLeft open by {inline(accepted)}." if accepted else "")
    return f"{render_frontmatter(head)}\n{document(parts)}"


def _open_items(found: Audit) -> dict[str, list[str]]:
    """Return what is open in each phase and needs no work of a phase."""
    items = {number: [*found.debt.get(number, ())] for number in found.phases}
    for number in found.unverified:
        items[number].insert(0, "Not verified")
    for one in found.gaps:
        if not one.needs_work:
            items.setdefault(one.phase, []).append(f"{one.requirement.id}: {one.evidence}")
    return {number: listed for number, listed in items.items() if listed}


def _row(one: AuditedRequirement) -> Sequence[str]:
    return (
        one.requirement.id,
        one.phase or "none",
        ", ".join(one.claimed_by),
        ", ".join(one.completed_by),
        one.verification,
        "[x]" if one.requirement.done else "[ ]",
        one.status,
        one.evidence,
    )
