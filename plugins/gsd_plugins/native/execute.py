"""execute: run one plan in one fresh conversation. A task counts once it is checked and committed."""

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
from gsd_core.planning.summary import render_summary

from .answers import REPORT, TASK_DONE, ReportAnswer, parse_answer, validate_answer
from .models import model_for
from .paths import date_of, executed_plans, phase_of, position
from .prompt_context import conventions_section, dependencies_section, fence, join, section, system_prompt
from .task_log import FinishedTask, TaskLog


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have an executor do the plan's tasks, and write the plan's summary."""
    if step.plan is None:
        raise Permanent(f"step {step.id!r} has no plan")
    phase, plan = phase_of(step), step.plan
    task = AgentTask(
        step=step.id,
        run=step.run,
        role="executor",
        system=system_prompt("execute"),
        prompt=_prompt(step, phase, plan),
        tools=("Read", "Write", "Edit", "Bash", "Glob", "Grep", "AskUserQuestion"),
        functions=(TASK_DONE,),
        schema=REPORT,
        model=model_for("executor", step),
        tree=step.tree,
        writable=True,
        limits=Limits(turns=150),
    )
    log = TaskLog(step=step, plan=plan, host=host)

    def accept(result: AgentResult) -> Sequence[str]:
        # Once a task has failed for good, a better answer would not help: do not ask for one.
        return () if log.failure else (*log.complaints(), *validate_answer(ReportAnswer, result.value))

    result = await host.run_agent("execute", task, accept, {TASK_DONE.name: log.task_done})
    log.raise_if_unfinished()
    report = parse_answer(ReportAnswer, result.value)
    summary = _summary(step, plan, await log.finished(), report)

    open_plans = {p.id for p in phase.plans} - {p.id for p in executed_plans(phase)} - {plan.id}
    status = "In progress" if open_plans else "Ready to verify"
    folder = plan.path.rpartition("/")[0]
    changes = (
        TickPlan(phase=phase.number, plan=plan.id),
        position(step, status=status, activity=f"Completed {plan.id}", done=(plan.id,)),
    )
    decisions = AddDecisions(phase=phase.number, decisions=report.decisions)
    return StepResult(
        subject=f"docs({plan.id}): complete {' '.join((plan.name or phase.name).split())} plan",
        files=(FileWrite(path=f"{folder}/{plan.id}-SUMMARY.md", text=summary),),
        changes=(*changes, decisions) if report.decisions else changes,
    )


def _prompt(step: StepRequest, phase: PhaseView, plan: Plan) -> str:
    tasks = "\n".join(f"{task.number}. {task.name} ({task.type})" for task in plan.tasks)
    committed = ", ".join(map(str, sorted(step.tasks_done)))
    return join(
        section(f"Plan {plan.id}, to be executed", fence("plan", plan.text or render_plan(plan))),
        section("Its tasks, with their numbers for task_done", fence("tasks", tasks)),
        f"Tasks already committed, do not repeat them: {committed}." if committed else "",
        dependencies_section(step, phase, plan),
        conventions_section(step),
    )


def _summary(step: StepRequest, plan: Plan, tasks: Sequence[FinishedTask], report: ReportAnswer) -> str:
    """Return the text of SUMMARY.md."""
    # After a crash the step runs again and must give the same text. So the dates come from the commits
    # and the first attempt, not from this attempt.
    commits = [(finished.task.name, finished.commit) for finished in tasks if finished.commit.commit]
    last = commits[-1][1].at if commits else None
    created = {path for finished in tasks for path in finished.commit.created}
    changed = {path for finished in tasks for path in finished.commit.paths}
    return render_summary(
        plan,
        date=last.date().isoformat() if last else date_of(step),
        duration=last - step.began if last and step.began and last >= step.began else None,
        commits=[(name, commit.commit) for name, commit in commits],
        created=sorted(created),
        modified=sorted(changed - created),
        accomplishments=[finished.task.name for finished in tasks],
        decisions=report.decisions,
        deviations=report.deviations,
        issues=report.issues,
    )
