"""Commit a task: run its check, commit what changed, record the commit.

A task is committed once. Its commit has trailers that are unique in the history, so a commit that was made
just before a crash, and is not in the journal, is found and recorded instead of made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath

from gsd_core.errors import GsdError
from gsd_core.model.step import StepRequest, TaskCommit
from gsd_core.planning.model import Plan, Task
from gsd_core.protected_paths import is_secret_name, protected_part
from gsd_core.sanitize import clip, redact, sanitize

from .permission import StepGate
from .runtime import Run
from .verification import check

LEFT_OUT = ("__pycache__", "node_modules", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache")
MAX_SUBJECT_LENGTH = 120


async def commit_task(
    run: Run, step: StepRequest, gate: StepGate, task: Task, subject: str, paths: Sequence[str]
) -> TaskCommit:
    """See :meth:`gsd_core.StepHost.commit_task`."""
    assert step.plan is not None, "only a plan has tasks"
    if known := await _known_commit(run, step, step.plan, task.number):
        return known
    result = await check(gate, task.check, step.tree, run.limits.check) if task.check else None
    if result is not None and not result.ok:
        outcome = "did not run" if result.exit is None else f"exited with {result.exit}"
        return TaskCommit(check=result, problem=f"the check `{task.check}` {outcome}:\n{result.output}")
    # All changed files, not only those that the agent lists: agents forget some. Files that were dirty
    # before the step began are the user's.
    changes = await run.git.changed(run.step(step.id).dirty_before)
    changed = tuple(path for path in changes if may_commit(path))
    # A task that only has a check, and no files, gets an empty commit: a task is done once it has a commit.
    is_check_only = result is not None and not task.files
    if not changed and not is_check_only:
        named = f" (you named {', '.join(paths)})" if paths else ""
        problem = f"no file of the project has changed since the last commit{named}"
        return TaskCommit(check=result, problem=problem)
    new = await run.git.untracked()
    name = f"{step.plan.id}/{task.number}"
    try:
        commit = await run.effects.commit(
            changed,
            clip(sanitize(subject, multiline=False), MAX_SUBJECT_LENGTH),
            trailers(run, step.id, name),
            verify=True,
            empty=not changed,
        )
    except GsdError as exc:
        # For example, a git hook of the user refused it; the agent can fix what the hook complains about.
        return TaskCommit(check=result, problem=f"git did not commit: {exc}")
    created = tuple(path for path in changed if path in new)
    done = TaskCommit(commit=commit, paths=changed, created=created, at=run.now(), check=result)
    _record(run, step, step.plan, task.number, done)
    return done


def trailers(run: Run, step: str, task: str = "") -> dict[str, str]:
    """Return the trailers of a commit; together they are unique in the history."""
    found = {"GSD-Run": run.id, "GSD-Step": step}
    return found | ({"GSD-Task": task} if task else {})


async def _known_commit(run: Run, step: StepRequest, plan: Plan, number: int) -> TaskCommit | None:
    """Return the task's commit, if any: from the journal, else from the history."""
    name = f"{plan.id}/{number}"
    for fact in run.journal.events(run=run.id, kinds=["task.committed"]):
        if fact.step == step.id and fact.data["task"] == name:
            data = fact.data
            return TaskCommit(
                commit=data["commit"],
                paths=tuple(data["paths"]),
                created=tuple(data.get("created") or ()),
                at=datetime.fromisoformat(data["at"]) if data.get("at") else None,
            )
    commit = await run.git.find(trailers(run, step.id, name))
    if commit is None and number in step.tasks_done:
        commit = (await committed_tasks(run, step.id, plan)).get(number)
    if commit is None:
        return None
    done = TaskCommit(
        commit=commit,
        paths=await run.git.paths_of(commit),
        created=await run.git.created_by(commit),
        at=await run.git.time_of(commit),
    )
    _record(run, step, plan, number, done)
    return done


async def committed_tasks(run: Run, step: str, plan: Plan) -> dict[int, str]:
    """Return the commits of the plan's tasks in the history: of this run, or of any since the plan's own.

    So a plan continues where it was left even if its journal is lost, and a plan that was rewritten starts
    from its first task, although an earlier version has commits under the same names.
    """
    names = {f"{plan.id}/{task.number}": task.number for task in plan.tasks}
    found = [c for c in await run.git.trailed() if c.step == step and c.task in names]
    since = await run.git.last_of(plan.path) if any(c.run != run.id for c in found) else ""
    tasks: dict[int, str] = {}
    for commit in found:
        keys = {"GSD-Run": commit.run, "GSD-Step": commit.step, "GSD-Task": commit.task}
        is_later = since and await run.git.find(keys, since=since) is not None
        if commit.run == run.id or is_later:
            tasks[names[commit.task]] = commit.sha
    return tasks


def _record(run: Run, step: StepRequest, plan: Plan, number: int, done: TaskCommit) -> None:
    check_data = None
    if done.check is not None:
        check_data = {
            "command": redact(done.check.command),
            "exit": done.check.exit,
            "sha256": hashlib.sha256(done.check.output.encode()).hexdigest(),
        }
    title = next((task.name for task in plan.tasks if task.number == number), "")
    data = {
        "task": f"{plan.id}/{number}",
        "name": sanitize(title, multiline=False),
        "commit": done.commit,
        "paths": list(done.paths),
        "created": list(done.created),
        "at": done.at.isoformat() if done.at else None,
        "check": check_data,
    }
    run.record("task.committed", data, step=step.id, attempt=step.attempt)


def may_commit(path: str) -> bool:
    """Return whether a task may commit *path*: not if it is protected, generated or a secret."""
    # In lower case, because the file systems of macOS ignore case.
    parts = PurePosixPath(path).parts
    is_generated = any(part.lower() in LEFT_OUT for part in parts)
    return not (protected_part(path) or is_generated or is_secret_name(parts[-1]))
