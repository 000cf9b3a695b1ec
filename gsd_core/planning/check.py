"""Checks plans and roadmaps in code, before a token is spent on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

from attrs import frozen

from gsd_core.model.ids import normal_phase

from .model import PhaseView, Plan, PlannedPhase, Requirement, Task
from .paths import refused
from .waves import cycle

Severity: TypeAlias = Literal["blocker", "warning", "info"]

_ID = re.compile(r"[A-Z][A-Z0-9]*-\d+")


@frozen(kw_only=True)
class Issue:
    """Something wrong with a plan (or a roadmap: *plan* is empty); *task* counts from 1, 0 for none."""

    plan: str = ""
    dimension: str
    severity: Severity = "blocker"
    description: str
    task: int = 0
    fix_hint: str = ""


def check_plans(phase: PhaseView, plans: Sequence[Plan], requirements: Sequence[str]) -> tuple[Issue, ...]:
    """Check new *plans* of a phase against each other, its earlier plans and its *requirements*."""
    new = {plan.id for plan in plans}
    earlier = [plan for plan in phase.plans if plan.id not in new]
    issues = [*_coverage([*earlier, *plans], requirements), *_dependencies(earlier, plans)]
    issues += [issue for plan in plans for issue in _plan(plan, requirements)]
    return (*issues, *_overlap(plans))


def check_roadmap(phases: Sequence[PlannedPhase], requirements: Sequence[Requirement]) -> tuple[Issue, ...]:
    """Check that a roadmap builds each v1 requirement in exactly one phase, in a possible order."""
    if not phases:
        return (_issue("phases", "the roadmap has no phase", "divide the work into phases"),)
    return (
        *_ids(requirements),
        *_mapping(phases, requirements),
        *_order(phases),
        *(issue for phase in phases for issue in _substance(phase)),
    )


def _issue(dimension: str, description: str, fix_hint: str = "", *, plan: str = "", task: int = 0) -> Issue:
    return Issue(plan=plan, dimension=dimension, description=description, task=task, fix_hint=fix_hint)


def _warning(dimension: str, description: str, fix_hint: str = "", *, plan: str = "", task: int = 0) -> Issue:
    return Issue(
        plan=plan,
        dimension=dimension,
        severity="warning",
        description=description,
        task=task,
        fix_hint=fix_hint,
    )


def _coverage(plans: Sequence[Plan], requirements: Sequence[str]) -> Iterator[Issue]:
    covered = {identity for plan in plans for identity in plan.requirements}
    for identity in requirements:
        if identity not in covered:
            yield _issue(
                "requirement_coverage",
                f"no plan covers requirement {identity}",
                f"add tasks for {identity} and list it in that plan's requirements",
            )


def _dependencies(earlier: Sequence[Plan], plans: Sequence[Plan]) -> Iterator[Issue]:
    known = {plan.id: plan for plan in (*earlier, *plans)}
    if circle := cycle({plan.id: plan.depends_on for plan in known.values()}):
        yield _issue(
            "dependency_correctness", f"plans depend on each other: {' → '.join(circle)}", plan=circle[0]
        )
    for plan in plans:
        own = [name for name in plan.depends_on if _same_phase(name, plan)]
        for name in own:
            if name not in known:
                yield _issue(
                    "dependency_correctness",
                    f"depends on {name!r}, which is no plan of this phase",
                    f"plans: {', '.join(known)}",
                    plan=plan.id,
                )
        yield from _wave(plan, [known[name].wave for name in own if name in known])


def _same_phase(name: str, plan: Plan) -> bool:
    """Say whether a dependency is meant to be in the plan's own phase; others were done before."""
    head, dash, _ = name.rpartition("-")
    return not dash or normal_phase(head) == normal_phase(plan.phase)


def _wave(plan: Plan, before: Sequence[int]) -> Iterator[Issue]:
    earliest = max(before, default=0) + 1
    if plan.wave < earliest:
        yield _issue(
            "dependency_correctness",
            f"is in wave {plan.wave}, but what it depends on is in wave {earliest - 1}",
            f"set wave to {earliest}",
            plan=plan.id,
        )
    elif plan.wave > earliest:
        yield _warning(
            "dependency_correctness", f"could run in wave {earliest}, not {plan.wave}", plan=plan.id
        )


def _plan(plan: Plan, requirements: Sequence[str]) -> Iterator[Issue]:
    yield from _size(plan)
    for task in plan.tasks:
        yield from _task(plan, task)
    yield from _paths(plan)
    if not plan.must_haves.truths:
        yield _issue("must_haves", "has no truths", "say what can be observed when it is done", plan=plan.id)
    if not plan.must_haves.artifacts:
        yield _warning("must_haves", "has no artifacts", "name the files that must exist", plan=plan.id)
    if unknown := [identity for identity in plan.requirements if identity not in requirements]:
        yield _warning(
            "requirement_coverage", f"names requirements of no concern: {', '.join(unknown)}", plan=plan.id
        )


def _size(plan: Plan) -> Iterator[Issue]:
    count, files = len(plan.tasks), len(_files(plan))
    hint = "split the plan: 2 or 3 tasks each"
    if count == 0:
        yield _issue("task_completeness", "has no tasks", plan=plan.id)
    if count >= 5:
        yield _issue("scope_sanity", f"has {count} tasks", hint, plan=plan.id)
    elif count == 4:
        yield _warning("scope_sanity", "has 4 tasks", hint, plan=plan.id)
    if files >= 15:
        yield _issue("scope_sanity", f"touches {files} files", hint, plan=plan.id)


def _task(plan: Plan, task: Task) -> Iterator[Issue]:
    if not task.name:
        yield _issue("task_completeness", "a task without a name", plan=plan.id, task=task.number)
    if task.type != "auto":
        return
    parts = {
        "files": bool(task.files),
        "action": bool(task.action),
        "verify or check": bool(task.verify or task.check),
        "done": bool(task.done),
    }
    if missing := [name for name, there in parts.items() if not there]:
        yield _issue(
            "task_completeness",
            f"task {task.name!r} lacks {', '.join(missing)}",
            "every task says which files, what to do, how it is proved and when it is done",
            plan=plan.id,
            task=task.number,
        )


def _paths(plan: Plan) -> Iterator[Issue]:
    named = [(path, 0) for path in plan.files_modified]
    named += [(path, task.number) for task in plan.tasks for path in task.files]
    named += [(artifact.path, 0) for artifact in plan.must_haves.artifacts]
    for path, task in dict.fromkeys(named):
        if reason := refused(path):
            yield _issue("paths", f"{path!r} {reason}", "name a file of the project", plan=plan.id, task=task)


def _files(plan: Plan) -> set[str]:
    return {*plan.files_modified, *(path for task in plan.tasks for path in task.files)}


def _overlap(plans: Sequence[Plan]) -> Iterator[Issue]:
    for one, other in combinations(plans, 2):
        shared = sorted(_files(one) & _files(other))
        if one.wave == other.wave and shared:
            yield _issue(
                "file_overlap",
                f"changes {', '.join(shared)} in the same wave as {one.id}",
                f"let it depend on {one.id}, or divide the files",
                plan=other.id,
            )


def _ids(requirements: Sequence[Requirement]) -> Iterator[Issue]:
    for identity, count in Counter(requirement.id for requirement in requirements).items():
        if not _ID.fullmatch(identity):
            yield _issue("ids", f"{identity!r} is no requirement id", "write it like AUTH-01")
        if count > 1:
            yield _issue("ids", f"requirement {identity} stands {count} times", "give each its own id")


def _mapping(phases: Sequence[PlannedPhase], requirements: Sequence[Requirement]) -> Iterator[Issue]:
    homes: dict[str, list[str]] = {}
    for phase in phases:
        for identity in dict.fromkeys(phase.requirements):
            homes.setdefault(identity, []).append(phase.number)
    known = {requirement.id for requirement in requirements}
    for identity in (one.id for one in requirements if one.version == "v1" and one.id not in homes):
        yield _issue("requirement_coverage", f"no phase has requirement {identity}", "give it to one phase")
    for identity, numbers in homes.items():
        if len(numbers) > 1:
            where = ", ".join(numbers)
            yield _issue("requirement_coverage", f"{identity} is in phases {where}", "leave it in one phase")
        if identity not in known:
            yield _issue("requirement_coverage", f"phase {numbers[0]} has unknown requirement {identity!r}")


def _order(phases: Sequence[PlannedPhase]) -> Iterator[Issue]:
    numbers = [phase.number for phase in phases]
    for number, count in Counter(numbers).items():
        if count > 1:
            yield _issue("phases", f"there are {count} phases {number}")
    for phase in phases:
        for name in phase.depends_on:
            if name not in numbers:
                yield _issue(
                    "dependency_correctness",
                    f"phase {phase.number} depends on {name!r}, which is no phase",
                    f"phases: {', '.join(numbers)}",
                )
    if circle := cycle({phase.number: phase.depends_on for phase in phases}):
        yield _issue("dependency_correctness", f"phases depend on each other: {' → '.join(circle)}")


def _substance(phase: PlannedPhase) -> Iterator[Issue]:
    if not phase.name.strip() or not phase.goal.strip():
        yield _issue("phases", f"phase {phase.number} lacks a name or a goal")
    if not phase.criteria:
        yield _warning("phases", f"phase {phase.number} has no success criteria")
    if not phase.requirements:
        yield _warning("requirement_coverage", f"phase {phase.number} has no requirements")
