"""What executed plans left to the verification: tasks that they went on without, and checks by a person.

Both are sections of SUMMARY.md, so that they hold whatever the settings say by the time of the verification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from gsd_core import Gap, GapReport, HumanCheck, PhaseView, Plan, Task
from gsd_core.planning.markdown import elements, named
from gsd_core.planning.plan_tasks import HUMAN_CHECK
from gsd_core.planning.summary import POSTPONED, UNDONE, tasks_listed

from .checkpoints import postponed_check
from .paths import executed_plans, text_if_readable
from .plan_checks import addresses

_KEPT = re.compile(r"\brefs/gsd/recover/[^\s)]+")


def with_unfinished(phase: PhaseView, report: GapReport) -> GapReport:
    """Return *report* with a gap for each task that is missing, and the checks that a person has to make."""
    gaps, human = list(report.gaps), list(report.human)
    known = {gap.key for gap in gaps} | {check.about for check in human}
    for plan in executed_plans(phase):
        text = text_if_readable(phase.project, plan.summary)
        tasks = {task.number: task for task in plan.tasks}
        for number, said in tasks_listed(text, UNDONE).items():
            gap = _gap(plan, tasks[number]) if number in tasks else None
            # A check decides by itself: it runs in each verification.
            if gap and not tasks[number].check and gap.key not in known and not _is_closed(phase, plan, gap):
                gaps.append(gap)
            if kept := _KEPT.search(said):
                hint = f"look first at what was done for it and taken back: git show {kept[0]}"
                gaps = [
                    attrs.evolve(one, missing=(*one.missing, hint)) if gap and one.key == gap.key else one
                    for one in gaps
                ]
        checks = [postponed_check(plan, tasks[n]) for n in tasks_listed(text, POSTPONED) if n in tasks]
        checks += [check for task in plan.tasks for check in _human_checks(plan, task)]
        human += [check for check in checks if check.about not in known]
    return attrs.evolve(report, gaps=tuple(gaps), human=tuple(human))


def _gap(plan: Plan, task: Task) -> Gap:
    return Gap(
        truth=f"Task {task.number} of plan {plan.id} is done: {task.name}",
        reason="it failed three times, and the plan was completed without it",
        about=f"{plan.id}/{task.number}",
        missing=(task.done or task.action,),
    )


def _is_closed(phase: PhaseView, plan: Plan, gap: Gap) -> bool:
    """Whether a later plan took the task over; its own truths are verified like all others."""
    later = [other for other in executed_plans(phase) if other.gap_closure and other.id != plan.id]
    return any(addresses(other, gap) for other in later)


def _human_checks(plan: Plan, task: Task) -> Iterator[HumanCheck]:
    """Yield the ``<human-check>`` blocks of a task, which GSD's planners write in place of checkpoints."""
    for number, block in enumerate(named(task.details.get(HUMAN_CHECK, ""), HUMAN_CHECK), start=1):
        parts = {part.name: part.text for part in elements(block.inside)}
        test = parts.get("test") or block.text
        if test.strip():
            yield HumanCheck(
                test=test,
                expected=parts.get("expected", ""),
                why=parts.get("why_human", "") or f"task {task.number} of plan {plan.id}",
                about=f"{plan.id}/{task.number}/{number}",
            )
