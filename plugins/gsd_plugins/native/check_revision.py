"""A task's check that cannot be used as planned, or is disputed: the planner is asked about it, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gsd_core import (
    CheckResult,
    Plan,
    RejectedAnswer,
    ReplacedBecause,
    ReplacedCheck,
    StepHost,
    StepRequest,
    Task,
)

from .answers import CheckAnswer, acceptance, parse_answer
from .models import task_for
from .plan_checks import is_trivial_check
from .prompt_context import fence, join, programs_section, section, system_prompt

OUTPUT_LIMIT = 1500
"""Characters of the check's output that the planner sees, from its end."""
SAID_LIMIT = 1000
"""Characters of what the executor says that the planner sees."""


_KEYS: dict[ReplacedBecause, str] = {"passes before": "check", "cannot run": "repair", "disputed": "dispute"}


async def revise_check(
    step: StepRequest,
    plan: Plan,
    task: Task,
    result: CheckResult,
    because: ReplacedBecause,
    host: StepHost,
    said: str = "",
) -> ReplacedCheck:
    """Return the planner's decision about the check of *task*, and record it.

    *task* is the plan's task, *result* that of the check which counts now; it may differ from the plan's.
    *said* is what the executor says about the check or, if it does not dispute it, about its work.
    """
    request = task_for(
        step,
        "planner",
        system=system_prompt("check"),
        prompt=_prompt(step, plan, task, result, because, said),
        answer=CheckAnswer,
        turns=20,
    )
    try:
        key = f"{_KEYS[because]}-{task.number}"
        replied = await host.run_agent(key, request, acceptance(CheckAnswer, _problems))
        answer = parse_answer(CheckAnswer, replied.value)
    except RejectedAnswer:
        answer = CheckAnswer(check=result.command, reason="the planner gave no valid answer")
    decision = ReplacedCheck(
        task=task.number,
        was=task.check,
        check=answer.check.strip() or result.command,
        reason=" ".join(answer.reason.split()),
        because=because,
    )
    await host.replace_check(task, decision.check, decision.reason, because)
    return decision


def _problems(answer: CheckAnswer) -> Iterator[str]:
    if is_trivial_check(answer.check):
        yield f"check: `{answer.check}` cannot fail; give a command that fails without the task"
    if not answer.reason.strip():
        yield "reason: say in one sentence why"


def _prompt(
    step: StepRequest, plan: Plan, task: Task, result: CheckResult, because: ReplacedBecause, said: str
) -> str:
    match because:
        case "passes before":
            why = (
                "The check passes before anything was done for the task. So it does not show that it is done."
            )
        case "cannot run":
            why = f"The check cannot run: {result.unusable}."
        case "disputed":
            why = "The check fails with the work as it is now. Decide whether the check or the work is wrong."
        case _:
            assert_never(because)
    about = join(
        f"Plan {plan.id}: {plan.objective}",
        f"Task {task.number}: {task.name}\nFiles: {', '.join(task.files)}\n{task.action}",
        f"Verify: {task.verify}" if task.verify else "",
        f"Done: {task.done}" if task.done else "",
    )
    output = f"{result.command}\n{result.outcome}\n{result.output[-OUTPUT_LIMIT:]}"
    return join(
        why,
        section("The task", fence("task", about)),
        section("Its check, and what it printed", fence("check", output)),
        section("What the executor says", fence("executor", said[:SAID_LIMIT])),
        programs_section(step),
    )
