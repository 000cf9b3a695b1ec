"""execute: one plan in one fresh conversation; each task counts once it is checked and committed."""

from __future__ import annotations

from collections.abc import Sequence

from gsd_core import (
    AddDecisions,
    AgentResult,
    AgentTask,
    FileWrite,
    Limits,
    Permanent,
    PhaseView,
    Plan,
    StepHost,
    StepRequest,
    StepResult,
    TickPlan,
)
from gsd_core.planning.plan import render_plan

from .models import model_for
from .place import executed, phase_of, position
from .prompt import fenced, joined, system, titled
from .schemas import REPORT, TASK_DONE, ReportAnswer
from .shape import faults, read
from .summary import summary_of
from .telling import dependencies, instructions
from .worklog import Worklog

TOOLS = ("Read", "Write", "Edit", "Bash", "Glob", "Grep", "AskUserQuestion")


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have an executor carry the plan out, and write down what came of it."""
    plan = plan_of(step)
    log = Worklog(step=step, plan=plan, host=host)

    def complaints(result: AgentResult) -> Sequence[str]:
        return () if log.failure else (*log.left(), *faults(ReportAnswer, result.value))

    functions = {TASK_DONE.name: log.task_done}
    result = await host.run_agent("execute", _task(step, plan), complaints, functions)
    log.raise_if_unfinished()
    report = read(ReportAnswer, result.value)
    text = summary_of(step, plan, await log.records(), report)
    return _result(step, plan, report, text)


def plan_of(step: StepRequest) -> Plan:
    """Return the step's plan."""
    if step.plan is None:
        raise Permanent(f"step {step.id!r} names no plan")
    return step.plan


def _task(step: StepRequest, plan: Plan) -> AgentTask:
    return AgentTask(
        step=step.id,
        run=step.run,
        role="executor",
        system=system("execute"),
        prompt=_prompt(step, phase_of(step), plan),
        tools=TOOLS,
        functions=(TASK_DONE,),
        schema=REPORT,
        model=model_for("executor", step),
        tree=step.tree,
        writable=True,
        limits=Limits(turns=150),
    )


def _prompt(step: StepRequest, phase: PhaseView, plan: Plan) -> str:
    tasks = "\n".join(f"{task.number}. {task.name} ({task.type})" for task in plan.tasks)
    done = ", ".join(map(str, sorted(step.tasks_done)))
    committed = f"Tasks committed already, not to be done again: {done}." if done else ""
    return joined(
        titled(f"Plan {plan.id}, to be carried out", fenced("plan", plan.text or render_plan(plan))),
        titled("Its tasks, by the numbers for task_done", fenced("tasks", tasks)),
        committed,
        dependencies(step, phase, plan),
        instructions(step),
    )


def _result(step: StepRequest, plan: Plan, report: ReportAnswer, summary: str) -> StepResult:
    phase = phase_of(step)
    open_plans = {p.id for p in phase.plans} - {p.id for p in executed(phase)} - {plan.id}
    status = "In progress" if open_plans else "Ready to verify"
    decided = AddDecisions(phase=phase.number, decisions=report.decisions)
    return StepResult(
        subject=f"docs({plan.id}): complete {' '.join((plan.name or phase.name).split())} plan",
        files=(FileWrite(path=_summary_path(plan), text=summary),),
        changes=(
            TickPlan(phase=phase.number, plan=plan.id),
            position(step, status=status, activity=f"Completed {plan.id}", done=(plan.id,)),
            *((decided,) if report.decisions else ()),
        ),
    )


def _summary_path(plan: Plan) -> str:
    folder = plan.path.rpartition("/")[0]
    return f"{folder}/{plan.id}-SUMMARY.md"
