"""Commit a task: run its check, stage what changed, commit with trailers, record. Once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from gsd_core.errors import GsdError
from gsd_core.git import TrailedCommit
from gsd_core.model.step import StepRequest, TaskCommit
from gsd_core.planning.model import Plan, Task
from gsd_core.protected import is_secret_name, protected_part
from gsd_core.sanitize import clip, redact, sanitize

from .permission import Gate
from .runtime import Run
from .verification import check

LEFT_OUT = ("__pycache__", "node_modules", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache")


async def commit_task(
    run: Run, step: StepRequest, gate: Gate, task: Task, subject: str, paths: Sequence[str]
) -> TaskCommit:
    """See :meth:`gsd_core.StepHost.commit_task`."""
    assert step.plan is not None, "only a plan has tasks"
    name = f"{step.plan.id}/{task.number}"
    if known := await _known(run, step, name):
        return known
    result = await check(gate, task.check, step.tree, run.limits.check) if task.check else None
    if result is not None and not result.ok:
        code = "did not run" if result.exit is None else f"exited with {result.exit}"
        return TaskCommit(check=result, problem=f"the check `{task.check}` {code}:\n{result.output}")
    changed = await _changed(run, step)
    only_checks = result is not None and not task.files
    if not changed and not only_checks:
        return TaskCommit(check=result, problem=_nothing(paths))
    new = await run.git.untracked()
    try:
        commit = await run.effects.commit(
            changed, _subject(subject), trailers(run, step.id, name), verify=True, empty=not changed
        )
    except GsdError as exc:
        return TaskCommit(check=result, problem=f"git did not commit: {exc}")
    created = tuple(path for path in changed if path in new)
    done = TaskCommit(commit=commit, paths=changed, created=created, at=run.now(), check=result)
    _record(run, step, name, done)
    return done


def trailers(run: Run, step: str, task: str = "") -> dict[str, str]:
    """Return the trailers of a commit; together they are unique in the history."""
    found = {"GSD-Run": run.id, "GSD-Step": step}
    return found | ({"GSD-Task": task} if task else {})


def _subject(text: str) -> str:
    return clip(sanitize(text, multiline=False), 120)


def _nothing(paths: Sequence[str]) -> str:
    named = f" (you named {', '.join(paths)})" if paths else ""
    return f"no file of the project has changed since the last commit{named}"


async def committed_tasks(run: Run, step: str, plan: Plan) -> dict[int, str]:
    """Return the commits of the plan's tasks that the history holds: this run's, or any since the plan's own.

    So a plan goes on where it was left although its journal is lost, and a plan that was made
    anew begins anew.
    """
    names = {f"{plan.id}/{task.number}": task.number for task in plan.tasks}
    found = [c for c in await run.git.trailed() if c.step == step and c.task in names]
    since = await run.git.last_of(plan.path) if any(c.run != run.id for c in found) else ""
    tasks: dict[int, str] = {}
    for commit in found:
        if commit.run == run.id or (since and await _is_later(run, commit, since)):
            tasks[names[commit.task]] = commit.sha
    return tasks


async def _is_later(run: Run, commit: TrailedCommit, since: str) -> bool:
    keys = {"GSD-Run": commit.run, "GSD-Step": commit.step, "GSD-Task": commit.task}
    return await run.git.find(keys, since=since) is not None


async def _known(run: Run, step: StepRequest, name: str) -> TaskCommit | None:
    """Return the task's commit if there is one: in the journal, or by its trailers in the history."""
    for fact in run.journal.events(run=run.id, kinds=["task.committed"]):
        if fact.step == step.id and fact.data["task"] == name:
            return _recorded(fact.data)
    commit = await run.git.find(trailers(run, step.id, name))
    number = int(name.rpartition("/")[2])
    if commit is None and step.plan is not None and number in step.tasks_done:
        commit = (await committed_tasks(run, step.id, step.plan)).get(number)
    if commit is None:
        return None
    git = run.git
    paths, created = await git.paths_of(commit), await git.created_by(commit)
    done = TaskCommit(commit=commit, paths=paths, created=created, at=await git.time_of(commit))
    _record(run, step, name, done)
    return done


def _recorded(data: Mapping[str, Any]) -> TaskCommit:
    paths, created = tuple(data["paths"]), tuple(data.get("created") or ())
    at = datetime.fromisoformat(data["at"]) if data.get("at") else None
    return TaskCommit(commit=data["commit"], paths=paths, created=created, at=at)


def _record(run: Run, step: StepRequest, name: str, done: TaskCommit) -> None:
    result = done.check
    check_data = (
        None
        if result is None
        else {
            "command": redact(result.command),
            "exit": result.exit,
            "sha256": hashlib.sha256(result.output.encode()).hexdigest(),
        }
    )
    number = int(name.rpartition("/")[2])
    title = next((t.name for t in step.plan.tasks if t.number == number), "") if step.plan else ""
    data = {
        "task": name,
        "name": sanitize(title, multiline=False),
        "commit": done.commit,
        "paths": list(done.paths),
        "created": list(done.created),
        "at": done.at.isoformat() if done.at else None,
        "check": check_data,
    }
    run.record("task.committed", data, step=step.id, attempt=step.attempt)


async def _changed(run: Run, step: StepRequest) -> tuple[str, ...]:
    """Return what changed and may be committed: not what was dirty before, denied, litter or secret."""
    changed = await run.git.changed(run.step(step.id).dirty_before)
    return tuple(path for path in changed if may_commit(path))


def may_commit(path: str) -> bool:
    """Whether a task may commit *path*."""
    parts = PurePosixPath(path).parts
    is_left_out = any(part.lower() in LEFT_OUT for part in parts)
    return not (protected_part(path) or is_left_out or is_secret_name(parts[-1]))
