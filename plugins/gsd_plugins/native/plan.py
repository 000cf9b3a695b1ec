"""plan: a phase, or the gaps that its verification found, as plans that were checked by code."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from gsd_core import (
    AgentResult,
    AgentTask,
    Conversation,
    FileWrite,
    Gap,
    Limits,
    ListPlans,
    Permanent,
    PhaseView,
    Plan,
    StepHost,
    StepRequest,
    StepResult,
    padded,
)
from gsd_core.planning.plan import render_plan

from .models import model_for
from .place import phase_of, position
from .plans import missing_ids, plans_from
from .problems import problems
from .prompt import bullets, fenced, joined, system, titled, words
from .schemas import PLANS, PlansAnswer
from .shape import faults, read
from .telling import built, context, instructions, promise

MAX_REVISIONS = 3
MAX_PLANS = {"quick": 3, "standard": 5, "comprehensive": 10}


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have a planner plan, send back what the checks find, at most three times."""
    task = _task(step)
    answer = await host.run_agent("plan", task, _complaints)
    for revision in range(1, MAX_REVISIONS + 1):
        if not (found := problems(step, _plans(step, answer))):
            break
        answer = await host.run_agent(f"revise-{revision}", _revision(task, answer, found), _complaints)
    plans = _plans(step, answer)
    if found := problems(step, plans):
        raise Permanent(
            f"the plans of phase {phase_of(step).number} are not right after {MAX_REVISIONS} revisions: "
            + "; ".join(found),
            hint="edit the phase in .planning/ROADMAP.md, or write its plans by hand, and resume",
        )
    return _result(step, plans)


def _complaints(result: AgentResult) -> Sequence[str]:
    return faults(PlansAnswer, result.value) or (
        () if read(PlansAnswer, result.value).plans else ("plans: at least one is needed",)
    )


def _plans(step: StepRequest, result: AgentResult) -> tuple[Plan, ...]:
    answers = read(PlansAnswer, result.value).plans
    return plans_from(answers, phase_of(step), gap_closure=step.round > 0)


def _task(step: StepRequest) -> AgentTask:
    return AgentTask(
        step=step.id,
        run=step.run,
        role="planner",
        system=joined(system("plan"), words("gaps") if step.round else ""),
        prompt=_prompt(step),
        tools=("Read", "Glob", "Grep"),
        schema=PLANS,
        model=model_for("planner", step),
        tree=step.tree,
        limits=Limits(turns=60),
    )


def _revision(task: AgentTask, answer: AgentResult, found: Sequence[str]) -> AgentTask:
    """Ask again in the same conversation; without one, say everything again."""
    points = titled(words("revise"), fenced("points", bullets(found)))
    if not answer.conversation:
        return evolve(task, prompt=joined(task.prompt, points))
    conversation = Conversation(id=answer.conversation, cwd=str(task.tree), resume=True)
    return evolve(task, prompt=points, conversation=conversation)


def _prompt(step: StepRequest) -> str:
    phase = phase_of(step)
    gaps = step.report.gaps if step.report and step.round else ()
    return joined(
        promise(step, phase),
        context(phase),
        built(step, phase),
        instructions(step),
        titled("Gaps to close", fenced("gaps", "\n".join(_told(gap) for gap in gaps))),
        titled("Listed in the roadmap, to be written now", bullets(missing_ids(phase))),
        "" if step.round else f"At most {MAX_PLANS[step.depth]} plans.",
    )


def _told(gap: Gap) -> str:
    details = {
        "truth": gap.truth,
        "reason": gap.reason,
        "evidence": gap.evidence,
        "files": "; ".join(f"{artifact.path}: {artifact.issue}" for artifact in gap.artifacts),
        "missing": "; ".join(gap.missing),
    }
    told = [f"  {name}: {' '.join(text.split())}" for name, text in details.items() if text]
    return "\n".join([f"- gap {gap.key}", *told])


def _result(step: StepRequest, plans: tuple[Plan, ...]) -> StepResult:
    phase = phase_of(step)
    ids = [plan.id for plan in plans]
    return StepResult(
        subject=f"docs({padded(phase.number)}): plan {'gap closure' if step.round else 'phase'}",
        files=tuple(FileWrite(path=plan.path, text=render_plan(plan)) for plan in plans),
        changes=(
            ListPlans(phase=phase.number, plans=tuple((plan.id, plan.name) for plan in plans)),
            position(step, status="Ready to execute", activity=_activity(phase, ids), planned=ids),
        ),
    )


def _activity(phase: PhaseView, ids: Sequence[str]) -> str:
    return f"Planned Phase {phase.number}: {', '.join(ids)}"
