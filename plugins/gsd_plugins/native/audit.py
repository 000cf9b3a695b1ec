"""audit: compare what a milestone promised with what its files say was done. No agent is involved.

Requirements that are known not to be met get one phase, once. What remains after it is a question.
"""

from __future__ import annotations

from datetime import datetime

from gsd_core import (
    AddPhase,
    Done,
    FileWrite,
    Found,
    Gap,
    Inquiry,
    Option,
    Permanent,
    Question,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
    phase_order,
)
from gsd_core.planning.audit import (
    Audit,
    AuditedRequirement,
    audit,
    audit_path,
    inputs_digest,
    read_audit,
    render_audit,
)
from gsd_core.planning.next_milestone import next_phase_number
from gsd_core.planning.summary import with_notes

LEAVE, ADD = "Leave them open", "Add another phase"
MAX_SHOWN = 10


def is_due(now: StepSituation) -> bool:
    """Whether the run completed a phase, and nobody has audited the milestone as it is now.

    A run that found everything complete has nothing to add, so it writes nothing.
    """
    if not now.audit or not any(step.kind == "complete" for step in now.completed):
        return False
    head = read_audit(now.project, now.planning.milestone)
    return head.text("inputs") != inputs_digest(now.planning)


step_type = StepType(
    kind="audit",
    before="end",
    due=is_due,
    writes=(".planning/v*-MILESTONE-AUDIT.md",),
    title="Audit the milestone's requirements, phases and open items",
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Write the audit; add a phase for what is missing, or ask what to do about it."""
    planning = with_notes(step.planning, step.project)
    if not planning.phases:
        raise Permanent("no milestone is in progress", hint="start one with: gsd run IDEA")
    found = audit(planning, step.project)
    earlier = read_audit(step.project, found.milestone)
    tried = earlier.texts("gap_phases")
    added: tuple[AddPhase, ...] = ()
    accepted = ""
    # A user who asks for an audit wants to know; the run decides what is done about it.
    if found.to_do and not step.text:
        adds = not tried
        if tried:
            answer = (await host.ask(_inquiry(found)))[0]
            adds = answer.words == ADD
            accepted = "" if adds or answer.is_assumption else answer.by or "a person"
        if adds:
            added = (_closing_phase(found, step),)
    phases = tuple(dict.fromkeys([*tried, *(phase.number for phase in added)]))
    text = render_audit(
        found,
        planning,
        audited=_iso(step.now),
        # After the phase is added, the milestone is another one; and what was asked for decides nothing.
        inputs="" if added or step.text else inputs_digest(step.planning),
        gap_phases=phases,
        accepted=accepted,
    )
    open_gaps = () if added or accepted else found.to_do
    return StepResult(
        subject=f"docs: audit milestone {found.milestone}: {found.status}",
        files=(FileWrite(path=audit_path(found.milestone), text=text),),
        changes=added,
        outcome=Found(gaps=tuple(map(_gap, open_gaps))) if open_gaps else Done(),
    )


def _iso(now: datetime) -> str:
    return now.isoformat(timespec="seconds")


def _closing_phase(found: Audit, step: StepRequest) -> AddPhase:
    last = max((phase.number for phase in step.planning.phases), key=phase_order)
    ids = tuple(one.requirement.id for one in found.to_do)
    return AddPhase(
        number=next_phase_number(step.project),
        name=f"Close the gaps of {found.milestone}",
        goal=f"The requirements that the audit of {found.milestone} found unmet are met: {', '.join(ids)}",
        depends_on=(last,),
        requirements=ids,
        criteria=tuple(one.requirement.text or one.requirement.id for one in found.to_do),
    )


def _inquiry(found: Audit) -> Inquiry:
    shown = [
        f"- {one.requirement.id}: {one.requirement.text} ({one.evidence})" for one in found.to_do[:MAX_SHOWN]
    ]
    more = len(found.to_do) - len(shown)
    rest = [f"- and {more} more"] if more else []
    text = "\n".join(
        [
            f"The audit of {found.milestone} has unmet requirements, after a phase for them:",
            *shown,
            *rest,
            "What now?",
        ]
    )
    options = (
        Option(label=LEAVE, description="the milestone keeps these known gaps", recommended=True),
        Option(label=ADD, description="plan and execute one more phase for them"),
    )
    question = Question(text=text, header="Audit", options=options, free_text=False)
    return Inquiry(questions=(question,), reason=f"the audit of {found.milestone}")


def _gap(one: AuditedRequirement) -> Gap:
    text = f"{one.requirement.id}: {one.requirement.text}"
    return Gap(truth=text, reason=one.evidence, about=one.requirement.id, found_by="audit")
