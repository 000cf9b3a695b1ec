"""init: turn an idea into a project with requirements and a roadmap."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from gsd_core import FileWrite, Permanent, Statement, StepHost, StepRequest, StepResult
from gsd_core.planning.check import check_roadmap
from gsd_core.planning.config import default_config, merge_config, render_config
from gsd_core.planning.exact import exact_facts, missing_facts
from gsd_core.planning.idea import (
    CONSTRAINT,
    CONTEXT,
    OUT_OF_SCOPE,
    mark_statements,
    render_idea,
    split_statements,
)
from gsd_core.planning.project import render_project
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state

from . import next_milestone
from .answers import RoadmapAnswer, acceptance, parse_answer
from .depth import DIVISIONS, phases_hint
from .models import task_for
from .next_milestone import phases_of, requirements_of
from .paths import date_of
from .plan_checks import blockers
from .prompt_context import codebase_section, fence, join, section, system_prompt
from .skills import rules_section

MAX_QUOTED = 40
"""How many unused statements a complaint quotes; the ids of the others follow."""
MAX_QUOTE = 160


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Run a roadmapper on the idea, check its answer and write the project's first files."""
    if step.idea is None:
        raise Permanent("no idea given", hint="gsd run IDEA.md")
    continues = bool(step.planning.idle)
    statements = split_statements(step.idea.text)
    task = task_for(
        step,
        "roadmapper",
        system=system_prompt("roadmap"),
        prompt=join(
            section("The idea", fence(step.idea.name, mark_statements(step.idea.text))),
            f"The statements of the idea are S1 to S{len(statements)}." if statements else "",
            codebase_section(step),
            rules_section(step, "roadmapper"),
            next_milestone.context(step) if continues else "",
            phases_hint(step.depth, len(statements)),
        ),
        answer=RoadmapAnswer,
        tools=(),
        turns=10,
    )

    def problems(answer: RoadmapAnswer) -> Sequence[str]:
        return validate_roadmap(answer, DIVISIONS[step.depth].phases[1], statements)

    def doubts(answer: RoadmapAnswer) -> Iterator[str]:
        return islice(lost_facts(answer, statements), MAX_QUOTED)

    result = await host.run_agent("roadmap", task, acceptance(RoadmapAnswer, problems, doubts))
    answer = parse_answer(RoadmapAnswer, result.value)
    if continues:
        return next_milestone.result(answer, step, used_by)
    return StepResult(subject=f"docs: initialize {' '.join(answer.name.split())}", files=_files(answer, step))


def validate_roadmap(
    answer: RoadmapAnswer, most_phases: int, statements: Sequence[Statement]
) -> tuple[str, ...]:
    """Return the problems of a roadmap for an idea with these *statements*, for the agent to fix."""
    requirements = (*requirements_of(answer.requirements), *requirements_of(answer.later, "v2"))
    issues = check_roadmap(phases_of(answer), requirements)
    problems = [*_problems(answer, most_phases), *blockers(issues), *_statement_problems(answer, statements)]
    return tuple(dict.fromkeys(problems))


def _problems(answer: RoadmapAnswer, most_phases: int) -> Iterator[str]:
    if not answer.name.strip():
        yield "name is empty"
    if not answer.requirements:
        yield "there are no requirements"
    if len(answer.phases) > most_phases:
        yield f"too many phases: {len(answer.phases)}, the maximum is {most_phases}"
    for number, phase in enumerate(answer.phases, start=1):
        earlier = {str(other) for other in range(1, number)}
        for name in phase.depends_on:
            if name not in earlier:
                yield f"phase {number} depends on {name!r}, which is not an earlier phase"
        if not any(criterion.strip() for criterion in phase.criteria):
            yield f"phase {number} has no criteria: name two to five facts that a user can observe"


def _uses(answer: RoadmapAnswer) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each part of the roadmap that comes from statements.

    A part has a name for complaints, what IDEA.md says that its statements became, and the statements.
    """
    for one in (*answer.requirements, *answer.later):
        yield f"requirement {one.id}", one.id, one.statements
    for exclusion in answer.out_of_scope:
        yield f"out_of_scope {exclusion.feature!r:.80}", OUT_OF_SCOPE, exclusion.statements
    for constraint in answer.constraints:
        yield f"constraint {constraint.what!r:.80}", CONSTRAINT, constraint.statements
    yield "context", CONTEXT, answer.context


def used_by(answer: RoadmapAnswer) -> dict[str, tuple[str, ...]]:
    """Return what each statement became, by its id."""
    found: dict[str, dict[str, None]] = {}
    for _, name, statements in _uses(answer):
        for statement in statements:
            found.setdefault(statement, {})[name] = None
    return {statement: tuple(names) for statement, names in found.items()}


def _statement_problems(answer: RoadmapAnswer, statements: Sequence[Statement]) -> Iterator[str]:
    known = {statement.id: statement for statement in statements}
    for where, _, used in _uses(answer):
        for name in used:
            if name not in known:
                scope = f"S1 to S{len(known)}" if known else "none: the idea has no statements"
                yield f"{where}: there is no statement {name!r}; the statements are {scope}"
    became = used_by(answer)
    for name in known:
        others = [other for other in became.get(name, ()) if other != CONTEXT]
        if others and CONTEXT in became[name]:
            yield (
                f"{name} is in context, which means that it asks for nothing, but {', '.join(others)} comes "
                f"from it: remove it from one of them"
            )
    for one in answer.requirements:
        if not one.statements and not one.reason.strip():
            yield (
                f"requirement {one.id} comes from no statement: add its statements, or say in its reason why "
                "the product cannot work without it, or move it to later"
            )
    unused = [statement for name, statement in known.items() if name not in became]
    for statement in unused[:MAX_QUOTED]:
        yield (
            f"{statement.id} is used nowhere: add it to the statements of what it asks for, or to context if "
            f"it asks for nothing. It says: {_quote(statement.text)}"
        )
    if rest := unused[MAX_QUOTED:]:
        yield f"these are used nowhere either: {', '.join(statement.id for statement in rest)}"


def lost_facts(answer: RoadmapAnswer, statements: Sequence[Statement]) -> Iterator[str]:
    """Yield a complaint for each statement with an exact fact that nothing that comes from it contains.

    A statement is kept by all that names it together: requirements, with the criteria of their phases, and
    constraints. A reason that names the statement is accepted.
    """
    criteria = {name: phase.criteria for phase in answer.phases for name in phase.requirements}
    reasons = [one.reason for one in (*answer.requirements, *answer.later)]
    kept, beside = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for one in (*answer.requirements, *answer.later):
        for name in one.statements:
            kept[name].append(f"{one.id}: {one.text}")
            beside[name] += criteria.get(one.id, ())
    for constraint in answer.constraints:
        reasons.append(constraint.why)
        for name in constraint.statements:
            kept[name].append(f"{constraint.type}: {constraint.what}")
    for statement in statements:
        name = statement.id
        # What is out of scope or context has no text of its own. A block of lines is given to the planner
        # as it is.
        if name not in kept or "\n" in statement.text or re.search(rf"\b{name}\b", "\n".join(reasons)):
            continue
        if lost := missing_facts(exact_facts(statement.text), "\n".join([*kept[name], *beside[name]])):
            facts = ", ".join(repr(one.text) for one in lost)
            yield (
                f"{name} says {_quote(statement.text)}, but {facts} is not in what comes from it: "
                f"{_quote('; '.join(kept[name]))}. Keep it there or in a criterion of the phase, or give a "
                f"reason that names {name}"
            )


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= MAX_QUOTE else f"{words[:MAX_QUOTE]}…")


def _files(answer: RoadmapAnswer, step: StepRequest) -> tuple[FileWrite, ...]:
    phases, date = phases_of(answer), date_of(step)
    requirements, later = requirements_of(answer.requirements), requirements_of(answer.later, "v2")
    excluded = [(item.feature, item.reason) for item in answer.out_of_scope]
    limits = [(item.type, item.what, item.why) for item in answer.constraints]
    derived = [(one.id, one.reason) for one in answer.requirements if one.reason or not one.statements]
    name, core = answer.name, answer.core_value
    # Research costs money, so GSD's default (always) is not ours.
    ours = {"model_profile": step.profile, "workflow": {"research": step.depth == "comprehensive"}}
    # The user may have written a config.json before the first run: their values win over our defaults.
    defaults = dict(default_config(step.depth))
    # A gate that is true in the file is asked. The defaults of GSD's own commands are all true.
    del defaults["gates"]
    config = merge_config(merge_config(defaults, ours), step.planning.config)
    idea = step.idea
    texts = {
        **({"IDEA.md": render_idea(idea.name, idea.text, used_by(answer), derived)} if idea else {}),
        "PROJECT.md": render_project(name, answer.summary, core, requirements, later, excluded, limits, date),
        "REQUIREMENTS.md": render_requirements(name, core, requirements, later, excluded, phases, date),
        "ROADMAP.md": render_roadmap(name, answer.summary, phases, date),
        "STATE.md": render_state(core_value=core, phases=phases, date=date),
        "config.json": render_config(config),
    }
    return tuple(FileWrite(path=f".planning/{name}", text=text) for name, text in texts.items())
