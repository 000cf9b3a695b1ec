"""execute: run one plan in one fresh conversation. A task counts once it is checked and committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from gsd_core import (
    AddDecisions,
    AgentResult,
    FileWrite,
    Permanent,
    PhaseView,
    Plan,
    PlanningError,
    RejectedAnswer,
    StepHost,
    StepRequest,
    StepResult,
    Task,
    TickPlan,
)
from gsd_core.planning.deferred import NAME, with_deferred
from gsd_core.planning.markdown import read_text, without
from gsd_core.planning.plan import plan_body, render_plan, with_checks
from gsd_core.planning.plan_tasks import is_test_file
from gsd_core.planning.summary import changes_of, render_summary

from .answers import (
    ASK_ARCHITECTURE,
    NEED_AUTHENTICATION,
    TASK_DONE,
    AskArchitecture,
    NeedAuthentication,
    ReportAnswer,
    TaskDone,
    handler,
    parse_answer,
    validate_answer,
)
from .models import task_for
from .paths import date_of, executed_plans, phase_of, position
from .plan_checks import addresses
from .prompt_context import (
    bullets,
    capped,
    dependencies_section,
    describe_gap,
    fence,
    gap_details,
    handoff_section,
    join,
    notes_section,
    phase_sections,
    prompt_text,
    section,
    system_prompt,
)
from .skills import code_sections, skills_section
from .task_log import FinishedTask, TaskLog

MAX_PLAN = 60_000
"""Characters of the plan that the executor sees; a plan of GSD's own has a few thousand."""
MAX_FAILURE = 2000
MAX_LEFT_BEHIND = 30
_BECAUSE = {"passes before": "passed before the task", "cannot run": "could not run", "disputed": "was wrong"}


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have an executor do the plan's tasks, and write the plan's summary."""
    if step.plan is None:
        raise Permanent(f"step {step.id!r} has no plan")
    phase, plan = phase_of(step), step.plan
    task = task_for(
        step,
        "executor",
        system=system_prompt("execute"),
        prompt="",
        tools=("Read", "Write", "Edit", "Bash", "Glob", "Grep", "AskUserQuestion"),
        functions=(TASK_DONE, NEED_AUTHENTICATION, ASK_ARCHITECTURE),
        answer=ReportAnswer,
        writable=True,
        turns=150,
    )
    log = TaskLog(step=step, plan=plan, host=host)
    await log.look_ahead()
    if log.failure:
        log.raise_if_unfinished()
    task = attrs.evolve(task, prompt=_prompt(step, phase, plan, [log.with_check(t) for t in plan.tasks]))

    def accept(result: AgentResult) -> Sequence[str]:
        problems = () if log.failure else validate_answer(ReportAnswer, result.value)
        return (*log.complaints(_report_in(result.value).issues), *problems)

    try:
        functions = {
            TASK_DONE.name: handler(TaskDone, log.task_done),
            NEED_AUTHENTICATION.name: handler(NeedAuthentication, log.need_authentication),
            ASK_ARCHITECTURE.name: handler(AskArchitecture, log.ask_architecture),
        }
        result = await host.run_agent("execute", task, accept, functions)
    except RejectedAnswer as error:
        failures = "\n".join([str(error), *log.deferred_lines])
        message = f"plan {plan.id}: {failures}{log.diagnosis(_report_in(error.value).issues)}"
        raise Permanent(message, hint=f"if the plan is wrong, edit {plan.path}; then resume") from error
    report = _report_in(result.value)
    log.raise_if_unfinished(report.issues)
    summary = _summary(step, plan, await log.finished(), report, log)

    open_plans = {p.id for p in phase.plans} - {p.id for p in executed_plans(phase)} - {plan.id}
    status = "In progress" if open_plans else "Phase complete — ready for verification"
    folder = plan.path.rpartition("/")[0]
    changes = (
        TickPlan(phase=phase.number, plan=plan.id),
        position(step, status=status, activity=f"Completed {plan.id}"),
    )
    chosen = (*log.decided, *report.decisions)
    decisions = AddDecisions(phase=phase.number, decisions=chosen)
    return StepResult(
        subject=f"docs({plan.id}): complete {' '.join((plan.name or phase.name).split())} plan",
        files=(
            FileWrite(path=f"{folder}/{plan.id}-SUMMARY.md", text=summary),
            *_revised_plan(plan, log),
            *_deferred_items(step, plan, (*log.deferred_lines, *report.deferred)),
        ),
        changes=(*changes, decisions) if chosen else changes,
    )


def _report_in(value: object) -> ReportAnswer:
    """Return the executor's report; an empty one if its answer is not valid."""
    if validate_answer(ReportAnswer, value):
        return ReportAnswer(deviations=(), decisions=(), issues=())
    return parse_answer(ReportAnswer, value)


def _revised_plan(plan: Plan, log: TaskLog) -> tuple[FileWrite, ...]:
    """Return the PLAN with the checks that the planner replaced, so that the verification runs them too."""
    replaced = {n: each.check for n, each in log.decisions.items() if each.check != each.was}
    text = with_checks(plan, replaced) if replaced and plan.text and plan.path else plan.text
    return (FileWrite(path=plan.path, text=text),) if text != plan.text else ()


def _deferred_items(step: StepRequest, plan: Plan, items: Sequence[str]) -> tuple[FileWrite, ...]:
    """Return the phase's list of deferred items with those of this plan, if that changes it."""
    path = f"{plan.path.rpartition('/')[0]}/{NAME}"
    try:
        before = read_text(step.project, path) if (step.project / path).exists() else ""
    except PlanningError:
        # Somebody else's file that cannot be read stays as it is; the summary lists the items as well.
        return ()
    text = with_deferred(before, plan.id, items)
    return (FileWrite(path=path, text=text),) if items and text != before else ()


def _prompt(step: StepRequest, phase: PhaseView, plan: Plan, tasks: Sequence[Task]) -> str:
    # The plan is the executor's task, so it is not fenced; everything else is material.
    text = plan_body(plan) if plan.text else render_plan(plan)
    # They are for GSD's own commands: how to execute a plan, and how to write its summary.
    text = without(without(text, "execution_context"), "output")
    listed = "\n".join(_describe_task(task, text) for task in tasks)
    found = phase.verdict.gaps if phase.verdict and plan.gap_closure else ()
    gaps = (describe_gap(gap.key, gap_details(gap)) for gap in found if addresses(plan, gap))
    committed = ", ".join(map(str, sorted(step.tasks_done)))
    deferred = ", ".join(str(one.task) for one in step.deferred)
    return join(
        section(f"Your task: execute plan {plan.id}", capped(text.strip(), MAX_PLAN)),
        section("The tasks' numbers for task_done", listed),
        section(
            "The plan also promises this, and code looks for it; if it is wrong, say so in `issues`",
            _promises(plan, text),
        ),
        section("Gaps that the plan closes", fence("gaps", "\n".join(gaps))),
        f"Tasks already committed, do not repeat them: {committed}." if committed else "",
        f"Deferred: {deferred}. Leave these tasks alone." if deferred else "",
        _last_attempt(step),
        phase_sections(step, phase),
        dependencies_section(step, phase, plan),
        notes_section(step, phase),
        prompt_text("tdd") if any(task.cycle for task in tasks) else "",
        code_sections(step, phase, "executor"),
        skills_section(step),
        handoff_section(step),
    )


def _promises(plan: Plan, shown: str) -> str:
    """Return the must-haves of *plan* that the text *shown* does not name: they are in its frontmatter."""
    found = plan.must_haves
    lines = [truth.text for truth in found.truths if truth.text not in shown]
    for one in found.artifacts:
        parts = (
            one.provides,
            f"exports {', '.join(one.exports)}" if one.exports else "",
            f"contains `{one.contains}`" if one.contains else "",
            f"has at least {one.min_lines} lines" if one.min_lines else "",
        )
        lines.append(f"{one.path}: {'; '.join(filter(None, parts))}".removesuffix(": "))
    for link in found.key_links:
        pattern = f", with a match of the regular expression `{link.pattern}`" if link.pattern else ""
        lines.append(f"{link.source} refers to {link.target}{pattern}: {link.via}".removesuffix(": "))
    return fence("promises", bullets(lines))


def _describe_task(task: Task, shown: str) -> str:
    """Return a task's number, and what the text *shown* does not say: a check that replaces the plan's."""
    lines = [f"{task.number}. {' '.join(task.name.split())} ({task.type})"]
    if task.check and (task.cycle or task.check not in shown):
        must_fail = " (has to fail, because the feature is not there yet)" if task.cycle == "red" else ""
        lines.append(f"   check: {task.check}{must_fail}")
    if any(path.startswith(".planning/") for path in task.files):
        lines.append(
            "   Its files in .planning/ are not yours to write: do the rest, and say in `note` what they "
            "should contain. Then call task_done."
        )
    return "\n".join(lines)


def _last_attempt(step: StepRequest) -> str:
    """Return what the last attempt at this step failed with, and what it left uncommitted."""
    if not step.last_failure:
        return ""
    failure = fence("failure", capped(step.last_failure, MAX_FAILURE))
    left = bullets(step.left_behind[:MAX_LEFT_BEHIND])
    more = len(step.left_behind) - MAX_LEFT_BEHIND
    files = fence("files", f"{left}\n… and {more} more" if more > 0 else left)
    return section(
        "How the last attempt at this plan ended",
        join(failure, f"It left these changes uncommitted; look at them first:\n{files}" if left else ""),
    )


def _summary(
    step: StepRequest, plan: Plan, tasks: Sequence[FinishedTask], report: ReportAnswer, log: TaskLog
) -> str:
    """Return the text of SUMMARY.md."""
    # After a crash the step runs again and must give the same text. So the dates come from the commits
    # and the first attempt, not from this attempt.
    commits = [(finished.task.name, finished.commit) for finished in tasks if finished.commit.commit]
    last = commits[-1][1].at if commits else None
    files = changes_of([finished.commit for finished in tasks])
    undone = dict.fromkeys(what for finished in tasks for what in finished.commit.undone)
    return render_summary(
        plan,
        date=last.date().isoformat() if last else date_of(step),
        duration=last - step.began if last and step.began and last >= step.began else None,
        commits=[(name, commit.commit) for name, commit in commits],
        created=files.created,
        modified=files.modified,
        deleted=files.deleted,
        one_liner=report.summary,
        accomplishments=[finished.what for finished in tasks],
        checks=[_check_line(finished, log) for finished in tasks if finished.task.check],
        decisions=(*log.decided, *report.decisions),
        deviations=(
            *report.deviations,
            *(
                f"The check of task {number} was replaced, because it {_BECAUSE[each.because]}: "
                f"`{each.was}` became `{each.check}` ({each.reason})"
                for number, each in sorted(log.decisions.items())
                if each.check != each.was
            ),
            *_cycle_deviations(tasks),
            *(f"An agent did what only the run may do, which was undone: {what}" for what in undone),
        ),
        issues=report.issues,
        deferred=report.deferred,
        logins=log.logins,
        undone=log.deferred_lines,
        postponed=[f"Task {task.number}: {task.name}" for task in log.postponed],
    )


def _check_line(finished: FinishedTask, log: TaskLog) -> str:
    line = f"Task {finished.task.number}: `{finished.task.check}` passed"
    check = finished.commit.check
    if finished.task.cycle == "red":
        code = f" with exit code {check.exit}" if check else ""
        return f"Task {finished.task.number}: `{finished.task.check}` failed{code} before the implementation"
    if check is None or not check.passed_before:
        return line
    decision = log.decisions.get(finished.task.number)
    if decision is None and any(map(is_test_file, finished.commit.paths)):
        return f"{line}, as it did with the tests that were there before"
    reason = f" ({decision.reason})" if decision else ""
    return f"{line}, but passed before the task too: it only shows that nothing broke{reason}"


def _cycle_deviations(tasks: Sequence[FinishedTask]) -> Iterator[str]:
    """Yield where a test-driven plan was not: tests that were changed later, or were not seen to fail."""
    tests: frozenset[str] = frozenset()
    for finished in tasks:
        task, commit = finished.task, finished.commit
        if task.cycle == "red":
            tests = frozenset(filter(is_test_file, commit.paths)) or frozenset(commit.paths)
            if not task.check:
                yield f"[TDD] Task {task.number}: the plan has no command that shows that the tests fail"
        elif task.cycle:
            edited = {path for path in commit.paths if is_test_file(path) and path not in commit.created}
            hidden = {path for path in commit.created if path.rpartition("/")[2] == "conftest.py"}
            if changed := sorted((tests & {*commit.paths}) | edited | hidden):
                yield (
                    f"[TDD] Task {task.number} ({commit.commit[:7]}) changed tests after they had failed: "
                    f"{', '.join(changed)}. {finished.what}"
                )
