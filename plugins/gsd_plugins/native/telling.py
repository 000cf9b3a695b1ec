"""What agents are told of a project: each part titled, everything foreign fenced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gsd_core import PhaseView, Plan, StepRequest

from .place import executed
from .prompt import bullets, fenced, joined, titled


def promise(step: StepRequest, phase: PhaseView) -> str:
    """Tell what the phase has to deliver: goal, criteria, and its requirements with their texts."""
    texts = {requirement.id: requirement.text for requirement in step.planning.requirements}
    requirements = [f"{name}: {texts.get(name, '(not in REQUIREMENTS.md)')}" for name in phase.requirements]
    body = joined(
        f"Goal: {phase.goal}",
        _listed("Success criteria", phase.criteria),
        _listed("Requirements", requirements),
        f"Core value of the project: {step.planning.core_value}" if step.planning.core_value else "",
    )
    return titled(f"Phase {phase.number}", fenced("phase", joined(f"Name: {phase.name}", body)))


def context(phase: PhaseView) -> str:
    """Tell what was decided and found out for the phase."""
    return joined(
        titled("Decisions, to be kept", fenced("context", phase.context)),
        titled("Research", fenced("research", phase.research)),
    )


def built(step: StepRequest, phase: PhaseView) -> str:
    """Tell what is there already: each plan that was carried out, and the files it left."""
    done = [plan for plan in _plans(step, phase) if plan.summary]
    open_plans = [plan for plan in phase.plans if not plan.summary]
    return joined(
        titled("Carried out so far", fenced("built", _each(done))),
        titled("Planned in this phase, not carried out", fenced("planned", _each(open_plans))),
    )


def dependencies(step: StepRequest, phase: PhaseView, plan: Plan) -> str:
    """Tell what the plans that this one builds on have left: files, and what these provide."""
    named = {*plan.depends_on}
    before = [other for other in executed(phase) if other.id in named]
    earlier = [other for number in phase.depends_on for other in _plans_of(step, number)]
    return titled("What this plan builds on", fenced("built", _each([*earlier, *before])))


def instructions(step: StepRequest) -> str:
    """Tell the project's own rules for agents, if it has a CLAUDE.md."""
    title = "Conventions of this project, to be followed as far as they fit your task"
    return titled(title, fenced("CLAUDE.md", step.planning.documents.get("CLAUDE.md", "")))


def _plans(step: StepRequest, phase: PhaseView) -> Iterator[Plan]:
    for other in step.planning.phases:
        yield from (phase if other.number == phase.number else other).plans


def _plans_of(step: StepRequest, number: str) -> tuple[Plan, ...]:
    other = step.planning.phase(number)
    return executed(other) if other else ()


def _each(plans: Iterable[Plan]) -> str:
    return "\n".join(_brief(plan) for plan in plans)


def _brief(plan: Plan) -> str:
    files = [
        f"  {a.path}: {a.provides}" + (f" ({', '.join(a.exports)})" if a.exports else "")
        for a in plan.must_haves.artifacts
    ]
    about = plan.name or plan.objective.partition("\n")[0]
    where = f" (see {plan.summary})" if plan.summary else ""
    return "\n".join([f"- {plan.id} {about}{where}", *files])


def _listed(title: str, items: Iterable[str]) -> str:
    body = bullets(items)
    return f"{title}:\n{body}" if body else ""
