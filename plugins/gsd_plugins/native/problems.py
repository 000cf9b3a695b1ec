"""What is wrong with plans, told so that a planner can put it right."""

from __future__ import annotations

from collections.abc import Iterator

from gsd_core import Gap, Plan, StepRequest
from gsd_core.planning.check import Issue, check_plans

from .place import phase_of
from .plans import missing_ids
from .vacuous import always_passes


def problems(step: StepRequest, plans: tuple[Plan, ...]) -> tuple[str, ...]:
    """Return what has to be put right; warnings are not in it.

    Plans that close gaps need not cover the phase's requirements, but every gap.
    """
    phase = phase_of(step)
    issues = check_plans(phase, plans, () if step.round else phase.requirements)
    found = [told(issue) for issue in issues if issue.severity == "blocker"]
    gaps = step.report.gaps if step.round and step.report else ()
    found += [
        *_vacuous(plans),
        *_unwritten(step, plans),
        *(_unaddressed(gap) for gap in gaps if not _addresses(plans, gap)),
    ]
    return tuple(dict.fromkeys(found))


def told(issue: Issue) -> str:
    """Return an issue in one line: where, what, and the way out."""
    where = f"{issue.plan}, task {issue.task}" if issue.task else issue.plan
    hint = f" ({issue.fix_hint})" if issue.fix_hint else ""
    return f"{where}: {issue.description}{hint}" if where else f"{issue.description}{hint}"


def _vacuous(plans: tuple[Plan, ...]) -> Iterator[str]:
    for plan in plans:
        for task in plan.tasks:
            if always_passes(task.check):
                hint = "give a command that fails before the task and passes after it"
                yield f"{plan.id}, task {task.number}: the check `{task.check}` proves nothing ({hint})"


def _unwritten(step: StepRequest, plans: tuple[Plan, ...]) -> Iterator[str]:
    written = {plan.id for plan in plans}
    if left := [name for name in missing_ids(phase_of(step)) if name not in written]:
        yield f"the roadmap lists more plans: {', '.join(left)} must be written, too"


def _unaddressed(gap: Gap) -> str:
    return f"no plan closes the gap {gap.key}: have its truth among the truths of one: {gap.truth}"


def _addresses(plans: tuple[Plan, ...], gap: Gap) -> bool:
    """A gap is addressed where its truth is promised, its id is named, or its file is worked on."""
    return any(
        _same(gap.truth) in map(_same, _promises(plan))
        or (gap.about and gap.about in {*plan.files_modified, *plan.requirements})
        or (gap.about and any(gap.about in text for text in _promises(plan)))
        for plan in plans
    )


def _promises(plan: Plan) -> tuple[str, ...]:
    truths = (truth.text for truth in plan.must_haves.truths)
    return (plan.objective, *truths, *(task.action for task in plan.tasks))


def _same(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
