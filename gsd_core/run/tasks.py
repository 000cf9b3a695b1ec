"""Commit a task: run its check, commit what belongs to it, record the commit.

A task is committed once. Its commit has trailers that are unique in the history, so a commit that was made
just before a crash, and is not in the journal, is found and recorded instead of made again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import evolve

from gsd_core.errors import GsdError
from gsd_core.git import GitUnavailable, Uncommitted
from gsd_core.machine import facts
from gsd_core.machine.facts import AttemptFailed, StepCompleted, TaskDeferred
from gsd_core.model.checks import CheckResult
from gsd_core.model.counts import some_of
from gsd_core.model.step import DeferredTask, StepRequest, TaskCommit
from gsd_core.planning.changed_files import is_output
from gsd_core.planning.model import Plan, Task
from gsd_core.sanitize import clip, redact, safe_text

from .commit_hooks import commit_with_hooks
from .delivery import (
    is_committable,
    is_within,
    may_commit,
    needs_consent,
    nested_projects,
    promised,
    relative_to,
)
from .guard import check_seal, found_before
from .integration import merge_of
from .permission import StepGate
from .runtime import Run
from .secret_files import REMOVE, allowed_secret_files, bullets, find_secret_files
from .task_checks import check_task, needs_no_changes, passed_before, problem_of, tests_of_cycle
from .work import SHOWN, Changes, changes, put_aside, require_branch, unexplained

MAX_SUBJECT_LENGTH = 120
MAX_BODY_LENGTH = 1000
_REMEDY = (
    "Move them, change the rule that ignores them, or remove the inner repository; "
    "name in `files` only what you created, changed or deleted in the project's repository."
)
_KEEP_TESTS = (
    "Take these changes back, so that the tests are those that failed before. If a test itself was wrong, "
    "say so in the note and call task_done again: the change is then reported as a deviation from the plan."
)


async def commit_task(
    run: Run,
    step: StepRequest,
    gate: StepGate,
    task: Task,
    subject: str,
    paths: Sequence[str],
    note: str = "",
) -> TaskCommit:
    """See :meth:`gsd_core.StepHost.commit_task`."""
    assert step.plan is not None, "only a plan has tasks"
    if known := await _known_commit(run, step, step.plan, task):
        return evolve(known, undone=found_before(run, step.id))
    result = await check_task(run, step, gate, task)
    if problem := problem_of(task, result):
        return TaskCommit(check=result, problem=problem)
    # The check runs what the agent wrote; nothing may be committed on top of what it did to the history.
    await check_seal(run, step=step.id, attempt=step.attempt)
    named = {relative_to(step.tree, path) for path in (*paths, *task.files)} - {"."}
    is_last = await _is_last(run, step, step.plan, task)
    if is_last:
        named |= set(promised(step.plan))
    found = await changes(run, step.id)
    if tests := sorted(tests_of_cycle(run, step, task) & {*found.ours}):
        # What the check ran is what is committed: otherwise an edited test would pass, and stay out of sight.
        named |= {*tests}
        if not gate.asked_about_tests:
            gate.asked_about_tests = True
            lines = "".join(f"\n- {path}" for path in tests)
            problem = f"it changes tests of the first task:{lines}\n{_KEEP_TESTS}"
            return TaskCommit(check=result, problem=problem)
    merge = merge_of(run, step.id, task)
    explained = {*named, *gate.written}
    taken = tuple(p for p in found.ours if may_commit(p) and (merge or is_within(p, explained)))
    if merge and (marked := await run.git.with_conflict_markers(taken)):
        return TaskCommit(check=result, problem=f"these files have conflict markers: {', '.join(marked)}")
    # A task may name a file in a nested project; that a folder above it is named, or a tool was used, is
    # not enough.
    folders = nested_projects(run.tree, taken)
    nested = [folder for folder in folders if not any(is_within(n, [folder]) for n in named)]
    taken = tuple(path for path in taken if not is_within(path, nested))
    by_name = [p for p in found.ours if needs_consent(p) and is_within(p, {*named, *gate.written})]
    suspects = await find_secret_files(run, [*taken, *by_name])
    if suspects and not gate.asked_to_remove:
        gate.asked_to_remove = True
        return TaskCommit(check=result, problem=f"these files contain secrets:{bullets(suspects)}\n{REMOVE}")
    allowed = await allowed_secret_files(run, step, suspects)
    withheld = {path for path in suspects if path not in allowed}
    taken = tuple(sorted({path for path in taken if path not in withheld} | allowed))
    left = unexplained(run.tree, found.ours, [*taken, *withheld])
    covered = {*taken, *withheld, *found.theirs}
    listed = [path for path in named if is_committable(path) and path not in covered]
    missing = [*_absent(run, step, paths, found), *await run.git.uncommitted(listed)]
    missing = [u for u in missing if u.path not in covered]
    # What the agent names too generously, such as __pycache__, is left out silently.
    missing = [u for u in missing if may_commit(u.path) or is_within(u.path, promised(step.plan))]
    if missing:
        lines = "".join(f"\n- {u.path}: {u.reason}" for u in missing[:SHOWN])
        return TaskCommit(check=result, problem=f"these files would not be in the commit:{lines}\n{_REMEDY}")
    # A task that has nothing to change gets an empty commit: a task is done once it has a commit.
    if not taken and not withheld and not needs_no_changes(run, step, task):
        named_here = f" (you named {', '.join(paths)})" if paths else ""
        problem = f"no file of the task has changed since the last commit{named_here}"
        return TaskCommit(check=result, problem=f"{problem}{_others(run.tree, left)}", left=left)
    if is_last and left and not gate.asked_to_name:
        gate.asked_to_name = True
        problem = f"these files would be left out of the plan's commits{_others(run.tree, left)}"
        return TaskCommit(check=result, problem=problem, left=left)
    await require_branch(run)
    name = f"{step.plan.id}/{task.number}"
    # A commit with these trailers is believed after a crash because of this fact: anybody can write trailers.
    begun = facts.TaskCommitting(task=name, parent=await run.git.head() or "")
    run.record(begun, step=step.id, attempt=step.attempt)
    try:
        commit = await commit_with_hooks(
            run,
            taken,
            clip(safe_text(subject, multiline=False), MAX_SUBJECT_LENGTH),
            {**trailers(run, step.id, name), **co_author(run)},
            empty=not taken,
            body=clip(safe_text(note).strip(), MAX_BODY_LENGTH),
        )
    except GitUnavailable:
        raise  # no agent can fix this; see `resumable`
    except GsdError as exc:
        # For example, a git hook of the user refused it; the agent can fix what the hook complains about.
        return TaskCommit(check=result, problem=f"git did not commit: {exc}")
    done = await _read_commit(run, commit)
    if merge:
        done = evolve(done, commit=await run.effects.as_merge(commit, merge.theirs, may_commit))
    done = evolve(done, at=run.now(), check=result, left=left)
    await run.sandbox.show_commits()
    _record(run, step, step.plan, task.number, done)
    return done


def _absent(run: Run, step: StepRequest, paths: Sequence[str], found: Changes) -> Iterator[Uncommitted]:
    """Yield those of *paths*, which the agent names, that do not exist and that it did not delete either."""
    deleted = (path for fact in run.facts(facts.TaskCommitted, step=step.id) for path in fact.data.deleted)
    known = [*found.ours, *found.theirs, *deleted]
    for path in dict.fromkeys(relative_to(step.tree, path) for path in paths):
        is_known = any(is_within(other, [path]) or fnmatchcase(other, path) for other in known)
        if not is_known and not os.path.lexists(step.tree / path):
            yield Uncommitted(path=path, reason="it does not exist, and you deleted no such file")


async def has_merged(run: Run, step: StepRequest, merge: facts.MergeFailed) -> bool:
    """Return whether the last task, which resolves *merge*, is committed.

    A process may have been killed before the commit became a merge: then that is done here. Later, while an
    agent works, HEAD may only move forward.
    """
    assert step.plan is not None, "only a plan has tasks"
    number = step.plan.tasks[-1].number
    commit = await _interrupted_commit(run, step.id, f"{step.plan.id}/{number}")
    if commit and commit == await run.git.head():
        await run.effects.as_merge(commit, merge.theirs, may_commit)
    return bool(commit) or number in step.tasks_done


async def _is_last(run: Run, step: StepRequest, plan: Plan, task: Task) -> bool:
    """Whether every other task of the plan that changes files is committed, or deferred."""
    recorded = {fact.data.task for fact in run.facts(facts.TaskCommitted, step=step.id)}
    recorded |= {f"{plan.id}/{one.task}" for one in deferred_tasks(run, step)}
    others = [t.number for t in plan.tasks if t.type == "auto" and t.number != task.number]
    return all(n in step.tasks_done or f"{plan.id}/{n}" in recorded for n in others)


def _others(root: Path, left: Sequence[str]) -> str:
    """Return a sentence about files that changed without being named; none of it asks to commit output."""
    written = [path for path in left if is_output(root, path)]
    others = [path for path in left if path not in written]
    found = ""
    if others:
        found += (
            f"; changed, and not named: {some_of(others, SHOWN)}. Name in `files` what belongs to the "
            "task, delete what was a trial, and leave alone what is not yours"
        )
    if written:
        found += (
            f"; output or data, which no commit needs: {some_of(written, SHOWN)}. Add it to .gitignore, or "
            "delete it"
        )
    return found


def trailers(run: Run, step: str, task: str = "") -> dict[str, str]:
    """Return the trailers of a commit; together they are unique in the history."""
    found = {"GSD-Run": run.id, "GSD-Step": step}
    return found | ({"GSD-Task": task} if task else {})


def co_author(run: Run) -> dict[str, str]:
    """Return the trailer that names a co-author, if the settings ask for one; no commit is found by it."""
    named = clip(safe_text(run.settings.co_authored_by, multiline=False).strip(), MAX_SUBJECT_LENGTH)
    return {"Co-Authored-By": named} if named else {}


def made_plan(run: Run, step: str) -> Plan | None:
    """Return the plan that the step made for itself, in this or an earlier attempt, if any."""
    found: Plan | None = None
    for fact in run.facts(facts.PlanMade, facts.StepCompleted, step=step):
        found = fact.data.plan if isinstance(fact.data, facts.PlanMade) else None
    return found


def record_plan(run: Run, step: StepRequest, plan: Plan) -> Plan:
    """Record a plan that the step made for itself, and return it as the journal has it."""
    run.record(facts.PlanMade(plan=plan), step=step.id, attempt=step.attempt)
    found = made_plan(run, step.id)
    assert found is not None
    return found


async def _known_commit(run: Run, step: StepRequest, plan: Plan, task: Task) -> TaskCommit | None:
    """Return the task's commit, if any: from the journal, else from the history."""
    number = task.number
    name = f"{plan.id}/{number}"
    for fact in run.facts(facts.TaskCommitted, step=step.id):
        if (known := fact.data).task == name:
            was = known.check
            return TaskCommit(
                commit=known.commit,
                paths=known.paths,
                created=known.created,
                deleted=known.deleted,
                at=known.at,
                note=known.note,
                check=CheckResult(command=was.command, exit=was.exit, passed_before=was.passed_before)
                if was
                else None,
            )
    commit = await _interrupted_commit(run, step.id, name)
    if commit is None and number in step.tasks_done:
        commit = (await committed_tasks(run, step.id, plan)).get(number)
    if commit is None:
        return None
    # The commit exists, so the check had passed, or failed as it has to.
    code, before = int(task.cycle == "red"), passed_before(run, plan, task)
    check = CheckResult(command=task.check, exit=code, passed_before=before)
    done = evolve(await _read_commit(run, commit), check=check if task.check else None)
    _record(run, step, plan, number, done)
    return done


async def _read_commit(run: Run, commit: str) -> TaskCommit:
    """Return what *commit* did. Read from git, because what was dirty before it does not say what is new."""
    did = await run.git.content_of(commit)
    return TaskCommit(
        commit=commit, paths=did.paths, created=did.created, deleted=did.deleted, at=did.at, note=did.body
    )


async def _interrupted_commit(run: Run, step: str, task: str) -> str | None:
    """Return the commit that a killed process made for a task and did not record, if any."""
    begun = [fact.data for fact in run.facts(facts.TaskCommitting, step=step) if fact.data.task == task]
    if not begun:
        return None
    return await run.git.find(trailers(run, step, task), since=begun[-1].parent)


async def committed_tasks(run: Run, step: str, plan: Plan) -> dict[int, str]:
    """Return the commits of the plan's tasks in the history: of this run, or of any since the plan's own.

    So a plan continues where it was left even if its journal is lost, and a plan that was rewritten starts
    from its first task, although an earlier version has commits under the same names. Trailers are
    claims: those of this run are believed if the journal knows the commit, others if the commit was
    there when the run was opened.
    """
    names = {f"{plan.id}/{task.number}": task.number for task in plan.tasks}
    found = [c for c in await run.git.trailed() if c.step == step and c.task in names]
    since = await run.git.last_of(plan.path) if any(c.run != run.id for c in found) else ""
    known = {fact.data.commit for fact in run.facts(facts.TaskCommitted)}
    opened = [fact.data.head for fact in run.facts(facts.RunOpened)]
    tasks: dict[int, str] = {}
    for commit in found:
        keys = {"GSD-Run": commit.run, "GSD-Step": commit.step, "GSD-Task": commit.task}
        if commit.run == run.id:
            is_ours = commit.sha in known or commit.sha == await _interrupted_commit(run, step, commit.task)
        else:
            was_there = opened and opened[-1] and await run.git.is_ancestor(commit.sha, opened[-1])
            is_ours = bool(since and was_there and await run.git.find(keys, since=since))
        if is_ours:
            tasks[names[commit.task]] = commit.sha
    return tasks


def _record(run: Run, step: StepRequest, plan: Plan, number: int, done: TaskCommit) -> None:
    check = None
    if (was := done.check) is not None:
        digest = hashlib.sha256(was.output.encode()).hexdigest()
        check = facts.CommittedCheck(
            command=redact(was.command), exit=was.exit, passed_before=was.passed_before, sha256=digest
        )
    title = next((task.name for task in plan.tasks if task.number == number), "")
    committed = facts.TaskCommitted(
        task=f"{plan.id}/{number}",
        name=safe_text(title, multiline=False),
        commit=done.commit,
        paths=done.paths,
        created=done.created,
        deleted=done.deleted,
        note=done.note,
        at=done.at,
        check=check,
    )
    run.record(committed, step=step.id, attempt=step.attempt)


MAX_REASON = 2000


async def defer_task(
    run: Run, step: StepRequest, gate: StepGate, task: Task, reason: str, paths: Sequence[str]
) -> DeferredTask:
    """See :meth:`gsd_core.StepHost.defer_task`.

    What the task left would otherwise get into the commit of the next task. It is kept in a commit below
    ``refs/gsd/recover`` first. Only files that the task explains are taken back (those that it names, and
    those that the agent wrote with a tool): a file that a person changed meanwhile stays as it is.
    """
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
