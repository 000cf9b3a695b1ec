"""Bring the work of a plan from its work tree into the run's branch; git alone knows what is there already.

If the branch got other commits meanwhile, they are merged: nothing is replayed, so every commit keeps its id,
and a process that was killed finds out with one question to git what it has done. The checks of the plans
that are merged run on the result before the branch moves.

What a program generates, such as a lock file, is not merged by line if both changed it: the program generates
it again from what was merged.

If both changed the same lines, or a check fails, the plan gets one more task, in its own work tree: there,
the files are merged with the branch as it was, and an agent resolves what git cannot. Only the second failure
is one of the step.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from attrs import evolve

from gsd_core.errors import Permanent, ProjectError
from gsd_core.files import read_below
from gsd_core.git import GitError
from gsd_core.machine import facts
from gsd_core.machine.claims import standing
from gsd_core.model.counts import some_of
from gsd_core.model.ids import EXECUTE, StepId
from gsd_core.planning.model import Plan, Task
from gsd_core.sanitize import safe_text

from .checkout import checkout_of
from .guard import guarded_commands
from .permission import StepGate
from .runtime import Run
from .work import require_branch

TRIES = 5
"""How often a merge is made anew because a person has committed meanwhile."""
MAX_MERGES = 1
"""How often a plan gets a task to merge its work before the step fails."""
MAX_OUTPUT = 2_000
GENERATED = {
    "package-lock.json": "npm install --package-lock-only --ignore-scripts",
    "npm-shrinkwrap.json": "npm install --package-lock-only --ignore-scripts",
    "pnpm-lock.yaml": "pnpm install --lockfile-only --ignore-scripts",
    "yarn.lock": "yarn install --mode=update-lockfile || yarn install --ignore-scripts",
    "uv.lock": "uv lock",
    "poetry.lock": "poetry lock",
    "Cargo.lock": "cargo update --workspace",
    "go.sum": "go mod tidy",
    "composer.lock": "composer update --lock --no-install --no-scripts",
    "Gemfile.lock": "bundle lock",
}
"""What makes a file that is not written by hand: each command keeps the versions that still fit."""


class Collision(Permanent):
    """The work of a plan conflicts with what others did meanwhile; *about* is what to record."""

    def __init__(self, message: str, about: facts.MergeFailed, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.about = about


class InTheWay(ProjectError):
    """A person's *files* are in the way of a plan's work."""

    def __init__(self, message: str, files: tuple[str, ...]) -> None:
        super().__init__(message, hint="commit them or move them away, then resume")
        self.files = files


async def take_over(run: Run, step: str) -> None:
    """Bring commits of *step* that attempts made in other work trees into the run's own, if they are missing.

    Raises :class:`Collision`, :class:`InTheWay`, ``GitError``, and ``GitUnavailable`` on another branch.
    """
    for commit in commits_of(run, step):
        await require_branch(run)
        for _ in range(TRIES):
            head = await run.git.head() or ""
            base = await run.git.base_of(commit, [head])
            if base == commit:
                break
            is_newer = base == head
            target = commit if is_newer else await _merged(run, step, head, commit)
            if merges(run, step) or not is_newer:
                await _check(run, step, head, commit, target)
            if files := await run.git.in_the_way(target):
                message = f"{step} is done, but changes of yours are in its way: {some_of(files)}"
                raise InTheWay(message, files)
            try:
                await run.effects.fast_forward(target)
                break
            except GitError:
                if await run.git.head() == head:
                    raise
        else:
            raise GitError(f"the branch changes all the time, so that {step} cannot be merged", hint="resume")


def merges(run: Run, step: str) -> tuple[facts.MergeFailed, ...]:
    """Return the merges of the step's current work that failed, oldest first."""
    found: list[facts.MergeFailed] = []
    for fact in run.facts(facts.MergeFailed, facts.StepCompleted, step=step):
        found = [*found, fact.data] if isinstance(fact.data, facts.MergeFailed) else []
    return tuple(found)


def with_merges(run: Run, step: str, plan: Plan) -> Plan:
    """Return *plan* with a task for each merge that failed."""
    first = max((task.number for task in plan.tasks), default=0) + 1
    more = tuple(
        Task(
            number=number,
            name=_name(about),
            files=about.paths,
            action="Make the files do what both sides intend, without conflict markers; then call task_done.",
            check=about.check,
            done="The work of both sides is there",
        )
        for number, about in enumerate(merges(run, step), first)
    )
    return evolve(plan, tasks=(*plan.tasks, *more)) if more else plan


def merge_of(run: Run, step: str, task: Task) -> facts.MergeFailed | None:
    """Return the merge that *task* of the step is about, if it is about one."""
    return next((one for one in merges(run, step) if _name(one) == task.name), None)


def describe(about: facts.MergeFailed, plan: str) -> str:
    """Return what an agent has to know about a merge that failed."""
    generated = "".join(
        f"\nDo not edit `{path}` by hand: it is as it was before, and `{command}` generates it again."
        for path in about.paths
        if (command := generated_by(path))
    )
    where = (
        "The files of this work tree now contain both sides. "
        f"Both changed the same lines of {some_of(about.paths)}: they are between conflict markers there, "
        f"first those of plan {plan}"
        if about.paths
        else f"The files of this work tree now contain both sides, but `{about.check}` fails with them:\n"
        f"{about.output}"
    )
    why = f"The work of plan {plan} had to be merged with what others committed meanwhile."
    return f"{why} {where}{generated}"


def generated_by(path: str) -> str:
    """Return the command that generates the file at *path*; empty if it is written by hand."""
    pure = PurePosixPath(path)
    command = GENERATED.get(pure.name, "")
    return f"cd {shlex.quote(str(pure.parent))} && {command}" if command and pure.parent.name else command


def _name(about: facts.MergeFailed) -> str:
    return f"Merge with {about.theirs[:12]}"


def commits_of(run: Run, step: str) -> Iterator[str]:
    """Yield what attempts at the step's current work committed in other work trees, the newest first.

    Once the branch has that one, it has those before it too, unless a work tree was lost.
    """
    elsewhere, found = False, dict[str, None]()
    kinds = (facts.AttemptStarted, facts.TaskCommitted, facts.StepReturned, facts.StepCompleted)
    for fact in run.facts(*kinds, step=step):
        match fact.data:
            case facts.StepCompleted():
                elsewhere, found = False, {}
            case facts.AttemptStarted(tree=tree):
                elsewhere = elsewhere or tree is not None
            case facts.TaskCommitted(commit=commit) | facts.StepReturned(tip=commit):
                found |= {commit: None} if commit else {}
            case _:
                pass
    yield from reversed(found if elsewhere else {})


async def _merged(run: Run, step: str, ours: str, theirs: str) -> str:
    """Return the merge of *theirs* into *ours*; no branch has it yet."""
    plan = StepId.parse(step).detail
    names = {"GSD-Run": run.id, "GSD-Step": step, "GSD-Task": f"{plan}/merge"}
    text = await run.git.full_message(f"chore({plan}): merge its commits", "", names)
    try:
        generated = await run.git.changed_by_both(ours, theirs, generated_by)
        commit, paths = await run.git.merge(ours, theirs, text, generated)
        if generated and not paths:
            made = await _generated(run, step, ours, theirs, commit, generated)
            commit, paths = await run.git.merge(ours, theirs, text, made)
    except GitError as error:
        hint = f"merge its work there: git merge {theirs[:10]}; then resume. From git 2.38 on, gsd does it"
        where = f"{step} was committed in another work tree, {run.tree} got other commits"
        raise GitError(f"{where}, and git cannot merge them: {error}", hint=hint) from error
    if paths:
        about = facts.MergeFailed(ours=theirs, theirs=ours, paths=(*paths, *generated))
        raise _collision(step, about, f"both changed the same lines of {some_of(paths)}")
    return commit


async def _generated(
    run: Run, step: str, ours: str, theirs: str, merged: str, paths: Iterable[str]
) -> dict[str, str]:
    """Return the blobs of *paths* as the programs that generate them make them for *merged*."""
    found: dict[str, str] = {}
    gate, attempt = StepGate(run, step), run.step(step).attempt
    async with guarded_commands(run, run.tree, step, attempt), checkout_of(run.git, merged) as clean:
        assert clean is not None
        for path in paths:
            command = generated_by(path)
            result = await clean.run(command, gate, run.limits.check)
            if not result.ok:
                output = safe_text(result.output[-MAX_OUTPUT:])
                about = facts.MergeFailed(ours=theirs, theirs=ours, check=command, output=output)
                raise _collision(step, about, f"both changed {path}, and `{command}` fails")
            found[path] = await run.git.store(read_below(clean.tree, path))
    return found


async def _check(run: Run, step: str, ours: str, theirs: str, merged: str) -> None:
    """Run the checks of the phase's executed plans, and of the step's own tasks, on the tree of *merged*.

    Tasks that are not committed yet have nothing to check: the next attempt may work in another tree.
    """
    found = StepId.parse(step)
    phase = run.planning.phase(found.phase)
    plans = [plan for plan in (phase.plans if phase else ()) if plan.summary or plan.id == found.detail]
    # With phases side by side, what this run has executed for others that are not complete counts too.
    done = {one.id.detail for one in run.state.steps.values() if one.id.kind == EXECUTE and one.completed}
    open_ = {one.number for one in run.state.phases if standing(run.state, one) == "open"} - {found.phase}
    others = [plan for one in run.planning.phases if one.number in open_ for plan in one.plans]
    plans += [plan for plan in others if plan.summary and plan.id in done]
    committed = {fact.data.task for fact in run.facts(facts.TaskCommitted, step=step)}
    pairs = [(plan, task) for plan in plans for task in plan.tasks if task.cycle not in ("red", "refactor")]
    tasks = [task for plan, task in pairs if plan.summary or f"{plan.id}/{task.number}" in committed]
    commands = dict.fromkeys(task.check for task in tasks if task.check)
    gate, attempt = StepGate(run, step), run.step(step).attempt
    async with guarded_commands(run, run.tree, step, attempt), checkout_of(run.git, merged) as clean:
        for command in commands if clean else ():
            assert clean is not None
            result = await clean.run(command, gate, run.limits.check)
            # One that was denied says nothing about the merge.
            if result.ok or result.exit is None:
                continue
            output = safe_text(result.output[-MAX_OUTPUT:])
            about = facts.MergeFailed(ours=theirs, theirs=ours, check=command, output=output)
            raise _collision(step, about, f"with both, `{command}` fails with exit code {result.exit}")


def _collision(step: str, about: facts.MergeFailed, why: str) -> Collision:
    sha = about.ours[:10]
    hint = f"its commits are kept at {sha}: merge them yourself (git merge {sha}), and then choose Retry"
    return Collision(f"{step} conflicts with what others did meanwhile: {why}", about, hint=hint)
