"""The review of new plans by an agent that did not write them, in comprehensive projects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gsd_core import Inquiry, Option, Permanent, Plan, Question, StepHost, StepRequest
from gsd_core.planning.config import get
from gsd_core.planning.plan import render_plan

from .answers import PlanIssuesAnswer, acceptance, parse_answer
from .models import task_for
from .paths import phase_of
from .prompt_context import (
    bullets,
    capped,
    existing_plans_section,
    fence,
    files_section,
    join,
    phase_sections,
    section,
    system_prompt,
)
from .skills import agent_skills_section

MAX_PLANS_TEXT = 80_000
"""Characters of the plans that the reviewer sees."""
EXECUTE, STOP = "Execute them anyway", "Stop"


def is_reviewed(step: StepRequest) -> bool:
    """Whether plans are reviewed: at depth comprehensive, unless ``workflow.plan_check`` is false."""
    return step.depth == "comprehensive" and get(step.planning.config, "workflow.plan_check", True)


async def review_plans(
    step: StepRequest, plans: Sequence[Plan], number: int, host: StepHost
) -> tuple[str, ...]:
    """Return the blockers that an agent finds in *plans*; *number* counts the reviews of the step from 1."""
    phase = phase_of(step)
    known = {plan.id for plan in plans}
    text = "\n\n".join(f"{plan.path}\n{render_plan(plan)}" for plan in plans)
    gaps = step.report.gaps if step.round and step.report else ()
    task = task_for(
        step,
        "checker",
        agent="plan-checker",
        system=system_prompt("plan_check"),
        prompt=join(
            section("The plans to review", fence("plans", capped(text, MAX_PLANS_TEXT))),
            section("They have to close these gaps", fence("gaps", bullets(gap.truth for gap in gaps))),
            phase_sections(step, phase),
            existing_plans_section(step, phase),
            files_section(step, phase),
            agent_skills_section(step, "plan-checker"),
        ),
        answer=PlanIssuesAnswer,
        turns=40,
    )

    def problems(answer: PlanIssuesAnswer) -> Iterator[str]:
        scope = ", ".join(sorted(known))
        for issue in answer.issues:
            if issue.plan not in known:
                yield f"there is no plan {issue.plan!r}; the plans are {scope}"

    result = await host.run_agent(f"review-{number}", task, acceptance(PlanIssuesAnswer, problems))
    return tuple(
        f"{issue.plan}: {issue.problem}" + (f" ({issue.fix})" if issue.fix.strip() else "")
        for issue in parse_answer(PlanIssuesAnswer, result.value).issues
        if issue.severity == "blocker"
    )


async def ask_about_objections(step: StepRequest, objections: Sequence[str], host: StepHost) -> None:
    """Ask whether plans are executed to which the reviewer still objects; raise ``Permanent`` if not."""
    phase = phase_of(step)
    question = Question(
        text=f"The review of the plans for phase {phase.number} still objects:\n{bullets(objections)}",
        header="Plan review",
        options=(
            Option(label=EXECUTE, description="the verification will show what is missing", recommended=True),
            Option(label=STOP, description="edit the phase or its plans, then resume"),
        ),
        free_text=False,
    )
    inquiry = Inquiry(step=step.id, questions=(question,), reason="the planner has revised them already")
    [answer] = await host.ask(inquiry)
    if answer.chosen == (STOP,):
        raise Permanent(
            f"the plans for phase {phase.number} are not executed: {'; '.join(objections)}",
            hint="edit the phase in .planning/ROADMAP.md, or write its plans by hand, and resume",
        )
