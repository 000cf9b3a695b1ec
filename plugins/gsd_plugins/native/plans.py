"""From a planner's answer to plans: their numbers, waves and must-haves are given here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice

from attrs import evolve

from gsd_core import Artifact, KeyLink, MustHaves, PhaseView, Plan, Task, Truth, padded
from gsd_core.planning.markdown import escape
from gsd_core.planning.waves import waves

from .place import phase_file
from .schemas import OptionAnswer, PlanAnswer, TaskAnswer


def plans_from(answers: Sequence[PlanAnswer], phase: PhaseView, *, gap_closure: bool) -> tuple[Plan, ...]:
    """Return the plans of an answer, numbered on from those that the phase has already.

    Plans that close gaps come after everything that was carried out: their waves do, too.
    """
    ids = next_ids(phase, len(answers))
    plans = [_plan(answer, ids, number, phase) for number, answer in enumerate(answers)]
    placed = waves({plan.id: plan.depends_on for plan in plans})
    placed_plans = (evolve(plan, wave=placed.get(plan.id, 1)) for plan in plans)
    return tuple(_closing(plan, phase) if gap_closure else plan for plan in placed_plans)


def _closing(plan: Plan, phase: PhaseView) -> Plan:
    """Put a plan behind the phase's last wave; it is for what the plans were for whose files it mends."""
    last = max((before.wave for before in phase.plans), default=0)
    return evolve(
        plan,
        gap_closure=True,
        wave=last + plan.wave,
        depends_on=plan.depends_on or tuple(before.id for before in phase.plans if before.wave == last),
        requirements=plan.requirements or _concerned(plan, phase),
    )


def _concerned(plan: Plan, phase: PhaseView) -> tuple[str, ...]:
    files = set(plan.files_modified)
    mended = [before for before in phase.plans if files & set(before.files_modified)]
    names = [name for before in mended for name in before.requirements]
    return tuple(dict.fromkeys(names)) or phase.requirements


def missing_ids(phase: PhaseView) -> tuple[str, ...]:
    """Return the ids of plans that the roadmap lists and nobody has written."""
    written = {plan.id for plan in phase.plans}
    return tuple(sorted(name for name in phase.listed if name not in written))


def next_ids(phase: PhaseView, wanted: int) -> tuple[str, ...]:
    """Return the ids of the next plans: first those that are listed but not there, then new ones."""
    taken = {*phase.listed, *(plan.id for plan in phase.plans)}
    last = max((_number(name) for name in taken), default=0)
    new = (f"{padded(phase.number)}-{number:02d}" for number in count(last + 1))
    return (*missing_ids(phase), *islice(new, wanted))[:wanted]


def _number(plan_id: str) -> int:
    digits = plan_id.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _plan(answer: PlanAnswer, ids: tuple[str, ...], place: int, phase: PhaseView) -> Plan:
    plan_id = ids[place]
    return Plan(
        id=plan_id,
        phase=phase.number,
        name=answer.name,
        objective=answer.objective,
        depends_on=tuple(_named(answer.depends_on, ids)),
        files_modified=answer.files_modified,
        autonomous=all(task.type == "auto" for task in answer.tasks),
        requirements=answer.requirements,
        must_haves=_must_haves(answer, plan_id),
        tasks=tuple(_task(task, number) for number, task in enumerate(answer.tasks, start=1)),
        path=phase_file(phase, f"{plan_id}-PLAN.md"),
    )


def _named(numbers: Iterable[int], ids: tuple[str, ...]) -> Iterable[str]:
    """Name the plans of the answer by their numbers; a number that is none stays, to be found wrong."""
    return (ids[number - 1] if 0 < number <= len(ids) else str(number) for number in numbers)


def _must_haves(answer: PlanAnswer, plan_id: str) -> MustHaves:
    return MustHaves(
        truths=tuple(
            Truth(id=f"{plan_id}:T{number}", text=text) for number, text in enumerate(answer.truths, start=1)
        ),
        artifacts=tuple(
            Artifact(
                path=item.path,
                provides=item.provides,
                min_lines=item.min_lines,
                exports=item.exports,
                contains=item.contains,
            )
            for item in answer.artifacts
        ),
        key_links=tuple(
            KeyLink(source=link.source, target=link.target, via=link.via, pattern=link.pattern)
            for link in answer.key_links
        ),
    )


def _task(answer: TaskAnswer, number: int) -> Task:
    task = Task(number=number, name=answer.name, type=answer.type, files=answer.files, done=answer.done)
    if answer.type == "auto":
        return evolve(task, action=answer.action, verify=answer.verify, check=answer.check)
    return evolve(task, details=_details(answer))


def _details(answer: TaskAnswer) -> Mapping[str, str]:
    """Return a checkpoint's texts under the names that GSD gives them."""
    if answer.type == "checkpoint:human-verify":
        return {"what-built": answer.action, "how-to-verify": answer.verify}
    if answer.type == "checkpoint:decision":
        options = "\n".join(_option(number, o) for number, o in enumerate(answer.options, start=1))
        return {"decision": answer.action, "context": answer.verify, "options": options}
    return {"instructions": answer.action, "verification": answer.verify}


def _option(number: int, option: OptionAnswer) -> str:
    parts = {"name": option.name, "pros": option.pros, "cons": option.cons}
    inside = "".join(f"<{name}>{escape(text, 'option')}</{name}>" for name, text in parts.items() if text)
    return f'<option id="option-{number}">{inside}</option>'
