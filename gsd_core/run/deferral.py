"""Defer a task that failed for good: keep what it changed, take it back, and let the plan continue.

What the task left would otherwise get into the commit of the next task. It is kept in a commit below
``refs/gsd/recover`` first. Only files that the task explains are taken back (those that it names, and those
that the agent wrote with a tool): a file that a person changed meanwhile stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from gsd_core.machine.facts import AttemptFailed, StepCompleted, TaskDeferred
from gsd_core.model.step import DeferredTask, StepRequest
from gsd_core.planning.model import Task
from gsd_core.sanitize import clip, redact, safe_text

from .delivery import is_within, may_commit, relative_to
from .guard import check_seal
from .permission import StepGate
from .runtime import Run
from .work import changes, put_aside

MAX_REASON = 2000


async def defer_task(
    run: Run, step: StepRequest, gate: StepGate, task: Task, reason: str, paths: Sequence[str]
) -> DeferredTask:
    """See :meth:`gsd_core.StepHost.defer_task`."""
    assert step.plan is not None, "only a plan has tasks"
    known = next((one for one in deferred_tasks(run, step) if one.task == task.number), None)
    if known:
        return known
    await check_seal(run, step=step.id, attempt=step.attempt)
    named = {relative_to(step.tree, path) for path in (*paths, *task.files)} - {"."}
    found = (await changes(run, step.id)).ours
    taken = tuple(path for path in found if may_commit(path) and is_within(path, {*named, *gate.written}))
    name = f"{run.id}-{step.plan.id}-task-{task.number}"
    # A crash before the fact repeats all of it: what was taken back is no change any more.
    ref = await put_aside(run, name, taken)
    deferred = TaskDeferred(
        plan=step.plan.id,
        task=task.number,
        name=safe_text(task.name, multiline=False),
        reason=clip(redact(safe_text(reason)), MAX_REASON),
        ref=ref,
        paths=taken,
    )
    run.record(deferred, step=step.id, attempt=step.attempt)
    return deferred


def deferred_tasks(run: Run, step: StepRequest) -> tuple[DeferredTask, ...]:
    """Return the tasks of the step's plan that were deferred since an attempt last failed or completed."""
    found: dict[int, DeferredTask] = {}
    for fact in run.facts(TaskDeferred, AttemptFailed, StepCompleted, step=step.id):
        if not isinstance(fact.data, TaskDeferred):
            # Whoever repeats the step wants the whole plan.
            found.clear()
        elif step.plan is not None and fact.data.plan == step.plan.id:
            found[fact.data.task] = fact.data
    return tuple(found.values())
