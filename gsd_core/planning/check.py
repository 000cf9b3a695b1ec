"""Checks plans and roadmaps in code, before any tokens are spent on them.

Source: the dimensions of GSD's plan checker that need no judgment (requirement coverage, task
completeness, dependency correctness, scope sanity, must-haves), with its limits: 4 tasks are a warning,
5 tasks or 15 files a blocker. Planners and users see the descriptions and hints verbatim.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

import attrs

from gsd_core.model.ids import normal_phase
from gsd_core.protected_paths import protected_part

from .model import PhaseView, Plan, PlannedPhase, Requirement, Task
from .must_haves import criteria_of, served_by
from .plan_tasks import parts_of
from .waves import cycle

Severity: TypeAlias = Literal["blocker", "warning", "info"]

_REQUIREMENT_ID = re.compile(r"[A-Z][A-Z0-9]*-\d+")


@attrs.frozen
class Issue:
    """A problem of a plan, or of a roadmap if *plan* is empty; *task* counts from 1, 0 if it is about none.

    *description* completes a sentence that begins with the plan: "01-02: has no tasks".
    """

    plan: str = attrs.field(default="", kw_only=True)
    dimension: str
    severity: Severity = attrs.field(default="blocker", kw_only=True)
    description: str
    task: int = attrs.field(default=0, kw_only=True)
    fix_hint: str = ""


# Plans


def check_plans(phase: PhaseView, plans: Sequence[Plan], requirements: Sequence[str]) -> tuple[Issue, ...]:
    """Check new *plans* of a phase: each by itself, and against one another and the phase's earlier plans.

    *requirements* are those that the phase has to cover; the earlier plans count too.
    """
    new = {plan.id for plan in plans}
    earlier = [plan for plan in phase.plans if plan.id not in new]
    issues = [*_coverage([*earlier, *plans], requirements), *_dependencies(earlier, plans)]
    issues += [issue for plan in plans for issue in _plan(plan, requirements)]
    return (*issues, *_overlap(plans))


def _coverage(plans: Sequence[Plan], requirements: Sequence[str]) -> Iterator[Issue]:
    covered = {name for plan in plans for name in plan.requirements}
    for name in requirements if all(plan.lists_requirements for plan in plans) else ():
        if name not in covered:
            hint = f"add tasks for {name}, list it in that plan's requirements, and let its truths serve it"
            yield Issue("requirement_coverage", f"no plan covers requirement {name}", hint)


def criteria_texts(phase: PhaseView) -> dict[str, str]:
    """Return the phase's success criteria by id (``01:C2``); its goal as the only one if it has none."""
    return {criterion.id: criterion.text for criterion in criteria_of(phase)}


def check_serves(phase: PhaseView, plans: Sequence[Plan], *, complete: bool = True) -> tuple[Issue, ...]:
    """Check what the truths of new *plans* serve.

    Every truth serves something, and nothing that the phase does not have. If *complete*, every requirement
    and every criterion of the phase is served by a truth of these or of the phase's earlier plans.
    """
    criteria = criteria_texts(phase)
    issues = [issue for plan in plans for issue in _serves(phase, plan, criteria)]
    if not complete:
        return tuple(issues)
    new = {plan.id for plan in plans}
    every = [*plans, *(plan for plan in phase.plans if plan.id not in new)]
    served = {name for plan in every for truth in plan.must_haves.truths for name in served_by(plan, truth)}
    for name in phase.requirements:
        # One that no plan lists either is reported by check_plans.
        if name not in served and any(name in plan.requirements for plan in every):
            hint = f"say what can be observed when {name} is met, as a truth that serves {name}"
            issues.append(Issue("requirement_coverage", f"no truth serves requirement {name}", hint))
    # Criteria are new to plans from other tools, whose truths name nothing that they serve.
    if all(any(truth.serves for truth in plan.must_haves.truths) for plan in every):
        for name in [name for name in criteria if phase.criteria and name not in served]:
            hint = f"add a truth that makes it true, with {name} in its serves"
            problem = f"no truth serves criterion {name}: {criteria[name]}"
            issues.append(Issue("requirement_coverage", problem, hint))
    return tuple(issues)


def _serves(phase: PhaseView, plan: Plan, criteria: Mapping[str, str]) -> Iterator[Issue]:
    known = (*phase.requirements, *criteria)
    for truth in plan.must_haves.truths:
        position = truth.id.rpartition(":T")[2]
        if not truth.text.strip():
            hint = "say what can be observed, or drop it"
            yield Issue("must_haves", f"truth {position} is empty", hint, plan=plan.id)
        elif not truth.serves:
            hint = f"name the requirements and criteria that it makes true ({', '.join(known)}), or drop it"
            yield Issue("must_haves", f"truth {position} serves nothing: {truth.text}", hint, plan=plan.id)
        for name in dict.fromkeys(truth.serves):
            if name not in known:
                problem = f"truth {position} serves {name!r}, which phase {phase.number} does not have"
                hint = f"its requirements and criteria are {', '.join(known)}"
                yield Issue("must_haves", problem, hint, plan=plan.id)


def _dependencies(earlier: Sequence[Plan], plans: Sequence[Plan]) -> Iterator[Issue]:
    known = {plan.id: plan for plan in (*earlier, *plans)}
    if circle := cycle({plan.id: plan.depends_on for plan in known.values()}):
        problem = f"plans depend on each other: {' → '.join(circle)}"
        hint = "remove one of these dependencies"
        yield Issue("dependency_correctness", problem, hint, plan=circle[0])
    for plan in plans:
        # Plans of other phases were executed before.
        heads = {name: name.rpartition("-")[0] or plan.phase for name in plan.depends_on}
        in_phase = [name for name, head in heads.items() if normal_phase(head) == normal_phase(plan.phase)]
        for name in in_phase:
            if name not in known:
                problem = f"depends on {name!r}, which is not a plan of this phase"
                hint = f"the plans of this phase are {', '.join(known)}"
                yield Issue("dependency_correctness", problem, hint, plan=plan.id)
        earliest = 1 + max((known[name].wave for name in in_phase if name in known), default=0)
        hint = f"set wave to {earliest}"
        if plan.wave < earliest:
            problem = f"is in wave {plan.wave}, but depends on a plan in wave {earliest - 1}"
            yield Issue("dependency_correctness", problem, hint, plan=plan.id)
        elif plan.wave > earliest:
            problem = f"is in wave {plan.wave}, but could run in wave {earliest}"
            yield Issue("dependency_correctness", problem, hint, plan=plan.id, severity="warning")


def _plan(plan: Plan, requirements: Sequence[str]) -> Iterator[Issue]:
    # The three tasks of a test-driven feature are one piece of work.
    tasks, files = sum(1 for _ in parts_of(plan.tasks)), len(_files(plan))
    hint = "split the plan: two or three tasks each"
    if tasks == 0:
        yield Issue("task_completeness", "has no tasks", "add two or three tasks", plan=plan.id)
    if tasks >= 4:
        severity: Severity = "blocker" if tasks >= 5 else "warning"
        yield Issue("scope_sanity", f"has {tasks} tasks", hint, plan=plan.id, severity=severity)
    if files >= 15:
        yield Issue("scope_sanity", f"changes {files} files", hint, plan=plan.id)
    for task in plan.tasks:
        yield from _task(plan, task)
    paths = [(path, 0) for path in plan.files_modified]
    paths += [(path, task.number) for task in plan.tasks for path in task.files]
    paths += [(artifact.path, 0) for artifact in plan.must_haves.artifacts]
    for path, number in dict.fromkeys(paths):
        if reason := invalid_path_reason(path):
            hint = "use the path of a file that belongs to the project"
            yield Issue("paths", f"{path!r} {reason}", hint, plan=plan.id, task=number)
    if not plan.must_haves.truths:
        hint = "list what can be observed when the plan is done"
        yield Issue("must_haves", "has no truths", hint, plan=plan.id)
    if not plan.must_haves.artifacts:
        hint = "list the files that must exist when the plan is done"
        yield Issue("must_haves", "has no artifacts", hint, plan=plan.id, severity="warning")
    if unknown := [name for name in plan.requirements if name not in requirements]:
        problem = f"lists requirements that do not belong to this phase: {', '.join(unknown)}"
        hint = "remove them from the plan's requirements"
        yield Issue("requirement_coverage", problem, hint, plan=plan.id, severity="warning")


def _task(plan: Plan, task: Task) -> Iterator[Issue]:
    if not task.name:
        hint = "name what the task does"
        yield Issue("task_completeness", "the task has no name", hint, plan=plan.id, task=task.number)
    if task.type != "auto":
        return
    parts = {
        # The executor names the file of a test that comes first.
        "files": task.files or task.cycle == "red",
        "action": task.action,
        "verify or check": task.verify or task.check,
        "done": task.done,
    }
    if missing := [name for name, value in parts.items() if not value]:
        problem = f"task {task.name!r} is incomplete; missing: {', '.join(missing)}"
        hint = "state which files the task changes, what to do, how to verify it, and when it is done"
        yield Issue("task_completeness", problem, hint, plan=plan.id, task=task.number)


def invalid_path_reason(path: str) -> str:
    """Return the reason why a plan may not name *path* as a file to change; empty if it may."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if not path.strip() or not parts:
        return "is not a path"
    if any(not character.isprintable() for character in path):
        return "contains control characters"
    if parts[0] == "/" or parts[0].startswith("~") or re.match(r"[A-Za-z]:", path) or ".." in parts:
        return "is outside the project"
    if protected_part(path):
        return "is protected: agents may not change it"
    return ""


def _files(plan: Plan) -> set[str]:
    return {*plan.files_modified, *(path for task in plan.tasks for path in task.files)}


def _overlap(plans: Sequence[Plan]) -> Iterator[Issue]:
    for one, other in combinations(plans, 2):
        shared = sorted(_files(one) & _files(other))
        if one.wave == other.wave and shared:
            problem = f"changes {', '.join(shared)} in the same wave as {one.id}"
            hint = f"make it depend on {one.id}, or let only one of the two plans change these files"
            yield Issue("file_overlap", problem, hint, plan=other.id)


# Roadmaps


def check_roadmap(phases: Sequence[PlannedPhase], requirements: Sequence[Requirement]) -> tuple[Issue, ...]:
    """Check that a roadmap covers each v1 requirement in exactly one phase, in an order that is possible."""
    if not phases:
        return (Issue("phases", "the roadmap has no phases", "divide the work into phases"),)
    return (
        *_requirement_ids(requirements),
        *_mapping(phases, requirements),
        *_order(phases),
        *(issue for phase in phases for issue in _substance(phase)),
    )


def _requirement_ids(requirements: Sequence[Requirement]) -> Iterator[Issue]:
    for name, count in Counter(requirement.id for requirement in requirements).items():
        if not _REQUIREMENT_ID.fullmatch(name):
            hint = "write it like AUTH-01"
            yield Issue("ids", f"{name!r} is not a valid requirement id", hint)
        if count > 1:
            hint = "give each requirement a unique id"
            yield Issue("ids", f"requirement {name} appears {count} times", hint)


def _mapping(phases: Sequence[PlannedPhase], requirements: Sequence[Requirement]) -> Iterator[Issue]:
    phases_of: dict[str, list[str]] = {}
    for phase in phases:
        for name in dict.fromkeys(phase.requirements):
            phases_of.setdefault(name, []).append(phase.number)
    known = {requirement.id for requirement in requirements}
    for name in (one.id for one in requirements if one.version == "v1" and one.id not in phases_of):
        yield Issue("requirement_coverage", f"no phase covers requirement {name}", "add it to one phase")
    for name, numbers in phases_of.items():
        if len(numbers) > 1:
            problem = f"requirement {name} is in several phases: {', '.join(numbers)}"
            yield Issue("requirement_coverage", problem, "keep it in one phase")
        if name not in known:
            problem = f"phase {numbers[0]} lists {name!r}, which is not a known requirement"
            yield Issue("requirement_coverage", problem, "correct the id, or remove it from the phase")


def _order(phases: Sequence[PlannedPhase]) -> Iterator[Issue]:
    numbers = [phase.number for phase in phases]
    for number, count in Counter(numbers).items():
        if count > 1:
            hint = "give each phase a unique number"
            yield Issue("phases", f"{count} phases have the number {number}", hint)
    for phase in phases:
        for name in phase.depends_on:
            if name not in numbers:
                problem = f"phase {phase.number} depends on {name!r}, which is not a phase"
                yield Issue("dependency_correctness", problem, f"the phases are {', '.join(numbers)}")
    if circle := cycle({phase.number: phase.depends_on for phase in phases}):
        problem = f"phases depend on each other: {' → '.join(circle)}"
        yield Issue("dependency_correctness", problem, "remove one of these dependencies")


def _substance(phase: PlannedPhase) -> Iterator[Issue]:
    missing = [name for name in ("name", "goal") if not getattr(phase, name).strip()]
    if missing:
        problem = f"phase {phase.number} has no {' and no '.join(missing)}"
        yield Issue("phases", problem, "give it a name, and state what it achieves as its goal")
    if not phase.criteria:
        hint = "list what must be true when the phase is complete"
        problem = f"phase {phase.number} has no success criteria"
        yield Issue("phases", problem, hint, severity="warning")
    if not phase.requirements:
        problem = f"phase {phase.number} has no requirements"
        hint = "list the requirements that it covers"
        yield Issue("requirement_coverage", problem, hint, severity="warning")
