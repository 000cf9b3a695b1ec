"""quick: one small task outside of the roadmap, planned, executed and, if asked for, verified in one step.

Source of the files: the workflow ``quick`` of GSD v1.20.5 (``.planning/quick/001-slug/001-PLAN.md``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from gsd_core import (
    AddQuickTask,
    AgentResult,
    Done,
    FileWrite,
    Found,
    Gap,
    Permanent,
    PhaseView,
    Plan,
    StepHost,
    StepRequest,
    StepResult,
    StepType,
    Verified,
)
from gsd_core.planning.check import check_plans, criteria_texts
from gsd_core.planning.plan import render_plan

from . import execute as execution
from . import verify as verification
from .answers import PlansAnswer, acceptance, parse_answer
from .models import task_for
from .paths import date_of
from .plan import MAX_REVISIONS, feature_problems, plans_from, revision_of
from .plan_checks import blockers, find_bad_patterns, trivial_checks
from .prompt_context import capped, fence, join, prompt_text, section, system_prompt
from .skills import code_sections

FULL = "--full "
"""A step whose text begins with this is verified, too."""
MAX_WORDS = 20_000
MAX_NAME = 80
STATUS = {"passed": "Verified", "gaps_found": "Gaps", "human_needed": "Needs Review"}

step_type = StepType(
    kind="quick", writes=(".planning/quick/*/*.md",), title="Do a small task outside of the roadmap"
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have the task planned and executed, verify it if asked for, and return its files."""
    match = re.fullmatch(r"(\d{3,})-[a-z0-9-]+", step.detail)
    words = step.text.removeprefix(FULL).strip()
    if match is None or not words:
        raise Permanent(f"step {step.id!r} is not a quick task", hint='gsd quick "what to do"')
    number, folder = match[1], f".planning/quick/{step.detail}"
    name = " ".join(words.split())[:MAX_NAME]
    # What the user asked for is a criterion of its own: a planner may have left something out.
    view = PhaseView(
        number=number, name=name, project=step.tree, goal=words, criteria=(words,), directory=folder
    )
    plan = step.plan or await _plan(step, host, view)
    step = await host.begin_plan(plan)
    plan = step.plan or plan
    view = attrs.evolve(view, plans=(plan,))
    try:
        executed = await execution.execute(attrs.evolve(step, phase=view), host)
    except Permanent as error:
        # The plan is not a file yet, so nobody can edit it.
        hint = "run `gsd resume` to try it again, or answer Skip and ask for it in other words"
        raise Permanent(str(error), hint=hint) from error
    summary = next(file.text for file in executed.files if file.path.endswith("-SUMMARY.md"))
    plan_text = next((file.text for file in executed.files if file.path == plan.path), plan.text)
    files = [
        FileWrite(path=plan.path, text=plan_text),
        FileWrite(path=f"{folder}/{number}-SUMMARY.md", text=summary.replace("# Phase ", "# Quick Task ", 1)),
    ]
    outcome: Done | Found = Done()
    status = ""
    if step.text.startswith(FULL):
        outcome, status, report = await _verify(step, host, view, plan)
        files.append(FileWrite(path=f"{folder}/{number}-VERIFICATION.md", text=report))
    # All tasks are committed, so the host only looks the last commit up.
    tasks = [task for task in plan.tasks if task.type == "auto"]
    commit = (await host.commit_task(tasks[-1], tasks[-1].name, ())).commit if tasks else ""
    row = AddQuickTask(
        number=number,
        description=name,
        date=date_of(step),
        commit=commit,
        directory=step.detail,
        status=status,
    )
    subject = f"docs(quick-{number}): {name}"
    return StepResult(subject=subject, outcome=outcome, files=tuple(files), changes=(row,))


async def _plan(step: StepRequest, host: StepHost, view: PhaseView) -> Plan:
    """Run a planner, and have it revise its plan until it passes the checks of code."""
    task = task_for(
        step,
        "planner",
        system=join(system_prompt("plan"), prompt_text("quick")),
        prompt=join(
            section("The task", fence("task", capped(view.goal, MAX_WORDS))),
            code_sections(step, view, "planner"),
        ),
        answer=PlansAnswer,
        turns=40,
    )

    def problems_of(answer: PlansAnswer) -> Sequence[str]:
        if len(answer.plans) != 1:
            return (f"plans: exactly one plan is required, not {len(answer.plans)}",)
        return feature_problems(answer.plans)

    accept = acceptance(PlansAnswer, problems_of)
    result = await host.run_agent("plan", task, accept)
    revision = 0
    while problems := _problems(view, plan := _plan_of(result, view)):
        if revision == MAX_REVISIONS:
            problem = f"the plan still has problems after {MAX_REVISIONS} revisions: {'; '.join(problems)}"
            raise Permanent(problem, hint="ask for it in other words, or for a smaller part of it")
        revision += 1
        result = await host.run_agent(f"revise-{revision}", revision_of(task, result, problems), accept)
    return plan


def _plan_of(result: AgentResult, view: PhaseView) -> Plan:
    """Return the answer as the plan of a quick task, with its text."""
    [plan] = plans_from(parse_answer(PlansAnswer, result.value).plans, view, gap_closure=False)
    truths = tuple(
        attrs.evolve(truth, id=f"{view.number}:T{number}", serves=tuple(criteria_texts(view)))
        for number, truth in enumerate(plan.must_haves.truths, start=1)
    )
    plan = attrs.evolve(
        plan,
        id=view.number,
        depends_on=(),
        requirements=(),
        must_haves=attrs.evolve(plan.must_haves, truths=truths),
        path=f"{view.directory}/{view.number}-PLAN.md",
    )
    return attrs.evolve(plan, text=render_plan(plan))


def _problems(view: PhaseView, plan: Plan) -> tuple[str, ...]:
    issues = blockers(check_plans(view, [plan], ()))
    return (*issues, *find_bad_patterns(plan), *trivial_checks(plan))


async def _verify(step: StepRequest, host: StepHost, view: PhaseView, plan: Plan) -> tuple[Found, str, str]:
    """Return the outcome of a verification, its status in a word, and the text of its file."""
    done = attrs.evolve(plan, summary=f"{view.directory}/{view.number}-SUMMARY.md")
    view, report = await host.find_gaps(attrs.evolve(view, plans=(done,)))
    verified = await verification.execute(attrs.evolve(step, phase=view, report=report), host)
    if not isinstance(verified.outcome, Verified):
        raise Permanent("the verification returned no report")
    report = verified.outcome.report
    failed = tuple(
        Gap(truth="Every gap detector works", reason=reason, status="unverified", about=reason)
        for reason in report.failed_detectors
    )
    text = verified.files[0].text.replace("# Phase ", "# Quick Task ", 1)
    status = "gaps_found" if report.gaps or failed else "human_needed" if report.human else "passed"
    return Found(gaps=(*report.gaps, *failed)), STATUS[status], text
