"""audit: compare what a milestone promised with what its files say was done. No agent is involved.

Requirements that are known not to be met get one phase, once. What remains after it is a question.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

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
MAX_SHOWN, MAX_GOAL = 10, 500


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
    asks_agent=False,
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Write the audit; add a phase for what is missing, or ask what to do about it."""
    planning = with_notes(step.planning, step.project)
    if not planning.phases:
        raise Permanent("no milestone is in progress", hint="start one with: gsd run IDEA")
    found = audit(planning, step.project)
    earlier = read_audit(step.project, found.milestone)
    tried = earlier.texts("gap_phases")
    gaps = tuple(map(gap_of, found.to_do))
    # A user who asks for an audit wants to know; the run decides what is done about it.
    decided = Decision(left=gaps) if step.text else await decide(step, host, found.milestone, gaps, tried)
    text = render_audit(
        found,
        planning,
        audited=step.now.isoformat(timespec="seconds"),
        # After the phase is added, the milestone is another one; and what was asked for decides nothing.
        inputs="" if decided.added or step.text else inputs_digest(step.planning),
        gap_phases=(*tried, *(phase.number for phase in decided.added)),
        accepted=decided.accepted_by,
    )
    return StepResult(
        subject=f"docs: audit milestone {found.milestone}: {found.status}",
        files=(FileWrite(path=audit_path(found.milestone), text=text),),
        changes=decided.added,
        outcome=Found(gaps=decided.left) if decided.left else Done(),
    )


@attrs.frozen(kw_only=True)
class Decision:
    """What is done about the gaps of an audit: phases *added* for them, or *left* open.

    *accepted_by*: a person left them open, so they are no gaps of the run any more.
    """

    added: tuple[AddPhase, ...] = ()
    left: tuple[Gap, ...] = ()
    accepted_by: str = ""


async def decide(
    step: StepRequest, host: StepHost, milestone: str, gaps: Sequence[Gap], tried: Sequence[str]
) -> Decision:
    """Add one phase for *gaps*; if phases were added before (*tried*), ask what is done about the rest."""
    if not gaps:
        return Decision()
    if tried:
        about = f"The audit of {milestone} has unmet requirements, after a phase for them:"
        lines = [*beginning_of(about, [f"{gap.truth} ({gap.reason})" for gap in gaps]), "What now?"]
        options = (
            Option(label=LEAVE, description="the milestone keeps these known gaps", recommended=True),
            Option(label=ADD, description="plan and execute one more phase for them"),
        )
        question = Question(text="\n".join(lines), header="Audit", options=options, free_text=False)
        [answer] = await host.ask(Inquiry(questions=(question,), reason=f"the audit of {milestone}"))
        if answer.words != ADD:
            if answer.is_assumption:
                return Decision(left=tuple(gaps))
            return Decision(accepted_by=answer.by or "a person")
    return Decision(added=(_closing_phase(milestone, gaps, step),))


def closing_name(milestone: str) -> str:
    """Return the name of the phase that is added for the gaps of a milestone."""
    return f"Close the gaps of {milestone}"


def _closing_phase(milestone: str, gaps: Sequence[Gap], step: StepRequest) -> AddPhase:
    last = max((phase.number for phase in step.planning.phases), key=phase_order)
    known = {one.id: one.text for one in step.planning.requirements}
    ids = tuple(dict.fromkeys(gap.about for gap in gaps if gap.about in known))
    others = [gap.truth for gap in gaps if gap.about not in known]
    return AddPhase(
        number=next_phase_number(step.project),
        name=closing_name(milestone),
        goal=f"What the audit of {milestone} found unmet is met: {', '.join([*ids, *others])}"[:MAX_GOAL],
        depends_on=(last,),
        requirements=ids,
        criteria=(*(known[one] or one for one in ids), *others),
    )


def beginning_of(title: str, items: Sequence[str]) -> list[str]:
    """Return the lines of a list for a question, at most the first items; none without items."""
    if not items:
        return []
    more = [f"- and {len(items) - MAX_SHOWN} more"] if len(items) > MAX_SHOWN else []
    return [title, *(f"- {item}" for item in items[:MAX_SHOWN]), *more]


def gap_of(one: AuditedRequirement) -> Gap:
    """Return the gap of a requirement that is not met."""
    text = f"{one.requirement.id}: {one.requirement.text}"
    return Gap(truth=text, reason=one.evidence, about=one.requirement.id, found_by="audit")
