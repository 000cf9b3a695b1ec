"""The checks of a plan's tasks: before the task, at its commit, and what an attempt has to know.

A check that passes before its task proves nothing about it. So it runs right before the task as well, once,
and the result is a fact: after a crash the tree contains half of the task, and would answer differently.
The planner's decisions about checks are facts too, and count from the moment they are recorded; the PLAN
itself is only written with the step's result.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from attrs import evolve

from gsd_core.machine import facts
from gsd_core.model.checks import CheckResult, ReplacedBecause, ReplacedCheck, TaskCheck
from gsd_core.model.step import StepRequest
from gsd_core.planning.changed_files import listed_in
from gsd_core.planning.model import Plan, Task
from gsd_core.planning.plan_tasks import is_test_file
from gsd_core.protected_paths import protected_part
from gsd_core.sanitize import redact, sanitize

from .check_output import syntax_error, why_unusable
from .commands import check
from .permission import StepGate
from .runtime import Run

MAX_LEFT_BEHIND = 50
"""Paths of uncommitted files that an attempt is told about."""


async def check_before(run: Run, step: StepRequest, gate: StepGate, task: Task) -> CheckResult:
    """See :meth:`gsd_core.StepHost.check_before`."""
    assert step.plan is not None, "only a plan has tasks"
    name = f"{step.plan.id}/{task.number}"
    if (known := _before(run, name, task.check)) is not None:
        return known
    result = await check(gate, task.check, step.tree, run.limits.check)
    # A program or file that is missing now may be what the task is about; wrong syntax stays wrong.
    result = evolve(result, unusable=result.unusable or syntax_error(result.exit, result.output))
    redacted = evolve(result, command=redact(result.command))
    checked = facts.CheckedBefore(task=name, sha256=_digest(task.check), result=redacted)
    run.record(checked, step=step.id, attempt=step.attempt)
    return result


async def check_task(run: Run, step: StepRequest, gate: StepGate, task: Task) -> CheckResult | None:
    """Run the check of a task that is to be committed; ``None`` if it has none."""
    assert step.plan is not None, "only a plan has tasks"
    if not task.check:
        return None
    result = await check(gate, task.check, step.tree, run.limits.check)
    # The files that executing the plan creates or changes.
    promised = frozenset(path.removeprefix("./") for path in listed_in(step.plan))
    why = why_unusable(task.check, result.exit, result.output, promised)
    unusable = result.unusable or why
    return evolve(result, unusable=unusable, passed_before=passed_before(run, step.plan, task))


def problem_of(task: Task, result: CheckResult | None) -> str:
    """Return why a task with that result of its check cannot be committed; empty if it can.

    The tests of a feature that is not there yet have to run, and to fail. Whatever fails for another reason
    shows nothing: a missing program, no tests at all, a test that is not valid code.
    """
    if result is None:
        return ""
    if task.cycle != "red":
        return "" if result.ok else f"the check `{task.check}` {result.outcome}:\n{result.output}"
    invalid = (_INVALID.format(name=re.escape(path.rpartition("/")[2])) for path in task.files)
    why = ""
    if result.exit is None or result.flaw:
        why = result.outcome
    elif result.exit == 0:
        why = "passes although the feature is not there yet: the tests do not test it, or it exists already"
    elif result.unusable or result.exit in (126, 127):
        cause = result.unusable or f"exit code {result.exit}"
        why = f"cannot run ({cause}), so that its failure shows nothing"
    elif any(re.search(pattern, result.output) for pattern in invalid):
        why = "fails because a test file is not valid code; the tests have to run"
    if not why:
        return ""
    return f"this task needs tests that run and fail, but the check `{task.check}` {why}:\n{result.output}"


# Python names the file and the line, then shows the code; Node.js begins with the file and the line.
_INVALID = (
    r"{name}(?:\", line |:)\d+[^\n]*\n(?:[^\n]*\n){{0,6}}?(?:E +)?(?:Syntax|Indentation|Tab)Error: "
    r"(?!The requested module)"
)


def passed_before(run: Run, plan: Plan, task: Task) -> bool:
    """Whether the task's check passed before the task as well, as far as it is known."""
    before = _before(run, f"{plan.id}/{task.number}", task.check)
    return before is not None and before.ok


def replace_check(
    run: Run, step: StepRequest, task: Task, command: str, reason: str, because: ReplacedBecause
) -> None:
    """See :meth:`gsd_core.StepHost.replace_check`."""
    assert step.plan is not None, "only a plan has tasks"
    decision = facts.CheckReplaced(
        plan=step.plan.id,
        task=task.number,
        was=task.check,
        check=sanitize(command).strip(),
        reason=redact(sanitize(reason, multiline=False)),
        because=because,
    )
    # The same call is made again after a crash.
    if decision not in replaced_checks(run, step.id, step.plan):
        run.record(decision, step=step.id, attempt=step.attempt)


def replaced_checks(run: Run, step: str, plan: Plan) -> tuple[ReplacedCheck, ...]:
    """Return the last decision about each check of *plan*, unless the PLAN has another check by now."""
    in_plan = {task.number: task.check for task in plan.tasks}
    decisions = (fact.data for fact in run.facts(facts.CheckReplaced, step=step))
    last = {one.task: one for one in decisions if one.plan == plan.id}
    return tuple(each for number, each in sorted(last.items()) if in_plan.get(number) == each.was)


def with_results_before(run: Run, checks: Iterable[TaskCheck]) -> tuple[TaskCheck, ...]:
    """Return the checks of executed plans, marked if they passed before their task as well."""

    def marked(each: TaskCheck) -> TaskCheck:
        before = _before(run, f"{each.plan}/{each.task}", each.result.command)
        return evolve(each, result=evolve(each.result, passed_before=before is not None and before.ok))

    return tuple(map(marked, checks))


def tests_of_cycle(run: Run, step: StepRequest, task: Task) -> frozenset[str]:
    """Return the test files that the first task of this task's cycle committed."""
    assert step.plan is not None, "only a plan has tasks"
    red = task.number - {"green": 1, "refactor": 2}.get(task.cycle, 0)
    if red == task.number:
        return frozenset()
    for fact in run.facts(facts.TaskCommitted, step=step.id):
        if fact.data.task == f"{step.plan.id}/{red}":
            paths = frozenset(fact.data.paths)
            return frozenset(filter(is_test_file, paths)) or paths
    return frozenset()


def needs_no_changes(run: Run, step: StepRequest, task: Task) -> bool:
    """Whether the task may end without a changed file: its commit is empty then.

    So it is for the cleanup of a test-driven feature, for a task that names no files of the project (it
    verifies or runs something, or its files are planning files, which the core maintains), and for one whose
    files an earlier task of the plan committed.
    """
    assert step.plan is not None, "only a plan has tasks"
    if task.cycle:
        return task.cycle == "refactor"
    names = {f"{step.plan.id}/{other.number}" for other in step.plan.tasks if other.number < task.number}
    done = (fact.data for fact in run.facts(facts.TaskCommitted) if fact.data.task in names)
    committed = {path for task in done for path in task.paths}
    own = {path.removeprefix("./") for path in task.files if not protected_part(path)}
    return own <= committed


async def about_earlier_attempts(run: Run, step: StepRequest) -> dict[str, Any]:
    """Return the fields of a request that say what earlier attempts at the step left."""
    found: dict[str, Any] = {}
    if step.plan is not None:
        found["replaced_checks"] = replaced_checks(run, step.id, step.plan)
    if failure := _last_failure(run, step.id):
        changed = await run.git.changed(run.step(step.id).dirty_before)
        paths = tuple(path for path in changed if not protected_part(path))
        found |= {"last_failure": failure, "left_behind": paths[:MAX_LEFT_BEHIND]}
    return found


def _last_failure(run: Run, step: str) -> str:
    """Return how the last attempt ended, if it failed or was interrupted since the step was last complete."""
    kinds = (facts.AttemptFailed, facts.AttemptLost, facts.StepCompleted)
    ends = [fact.data for fact in run.facts(*kinds, step=step)]
    match ends[-1:]:
        case [facts.AttemptFailed(error=error)]:
            return error.message
        case [facts.AttemptLost(why=why)] if why not in ("parked", "postponed"):
            return "it was interrupted before it was done"
        case _:
            return ""  # a parked attempt continues its conversation, with the answer


def _before(run: Run, name: str, command: str) -> CheckResult | None:
    digest = _digest(command)
    for fact in run.facts(facts.CheckedBefore):
        if fact.data.task == name and fact.data.sha256 == digest:
            return evolve(fact.data.result, command=command)
    return None


def _digest(command: str) -> str:
    return hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()
