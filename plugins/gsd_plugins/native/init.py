"""init: turn an idea into a project with requirements and a roadmap, or into its next milestone.

The agent numbers the phases from 1, and may use ids of requirements that exist: for a next milestone, code
gives both the next free numbers, which costs no second answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import attrs

from gsd_core import (
    FileWrite,
    Idea,
    Permanent,
    PlannedPhase,
    Requirement,
    SetPosition,
    Statement,
    StepHost,
    StepRequest,
    StepResult,
)
from gsd_core.planning.check import check_roadmap
from gsd_core.planning.config import default_config, merge_config, render_config
from gsd_core.planning.exact import changed_facts, exact_facts, missing_facts
from gsd_core.planning.idea import (
    CONSTRAINT,
    CONTEXT,
    OUT_OF_SCOPE,
    mark_statements,
    render_idea,
    split_statements,
)
from gsd_core.planning.next_milestone import (
    begin_in_project,
    begin_milestone,
    free_ids,
    next_phase_number,
    next_version,
    used_requirement_ids,
)
from gsd_core.planning.project import render_project
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import begin_milestone as name_milestone
from gsd_core.planning.state import render_state, set_position
from gsd_core.planning.survey import survey

from .answers import RequirementAnswer, RoadmapAnswer, acceptance, parse_answer
from .depth import DIVISIONS, phases_hint
from .models import task_for
from .paths import date_of, text_if_readable
from .plan_checks import blockers
from .prompt_context import codebase_section, fence, join, section, system_prompt
from .skills import rules_section

MAX_QUOTED = 40
"""How many unused statements a complaint quotes; the ids of the others follow."""
MAX_QUOTE = 160
MAX_IDS = 200


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Run a roadmapper on the idea, check its answer and write the project's first files."""
    idea, continues = step.idea, bool(step.planning.idle)
    if idea is None:
        raise Permanent("no idea given", hint="gsd run IDEA.md")
    statements = split_statements(idea.text)
    task = task_for(
        step,
        "roadmapper",
        system=system_prompt("roadmap"),
        prompt=join(
            section("The idea", fence(idea.name, mark_statements(idea.text))),
            f"The statements of the idea are S1 to S{len(statements)}." if statements else "",
            codebase_section(step),
            rules_section(step, "roadmapper"),
            _context(step) if continues else "",
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
    name = " ".join(answer.name.split())
    if continues:
        version = next_version(step.project)
        subject, texts = f"docs: start milestone {version} {name}", _next_texts(answer, step, idea, version)
    else:
        subject, texts = f"docs: initialize {name}", _texts(answer, step, idea)
    files = tuple(FileWrite(path=f".planning/{path}", text=text) for path, text in texts.items())
    return StepResult(subject=subject, files=files)


def _context(step: StepRequest) -> str:
    """Return what the roadmapper of a next milestone has to know about the project so far."""
    version = next_version(step.project)
    used = sorted(used_requirement_ids(step.project))[:MAX_IDS]
    ids = f"Ids of requirements that are in use: {', '.join(used)}." if used else ""
    document = step.planning.documents.get("PROJECT.md", "")
    return join(
        section(
            "The project so far",
            f"The project exists: {step.planning.idle}. The idea is about its next milestone, {version}. "
            "What is validated below is built already: it is not required again. `name` is a name for the "
            f"milestone, in one to three words. {ids}".strip(),
        ),
        fence("PROJECT.md", document) if document else "",
    )


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
    constraints. A reason that names the statement is accepted. One that is context has no such fact.
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
        facts = exact_facts(statement.text)
        # A bare number may be an example of what is wrong today, and a name that of what others change.
        rules = [one for one in facts if one.kind != "number" or one.bound or one.unit]
        is_new = missing_facts(rules, "\n".join(chain(*kept.values(), *beside.values()))) == tuple(rules)
        if name in answer.context and name not in kept and rules and is_new:
            yield (
                f"{name} is in context, which means that it asks for nothing, but it says "
                f"{_quote(statement.text)}: make a requirement or a constraint of it, or leave it there if "
                "nothing has to be built or checked for it"
            )
        # What is out of scope has no text of its own. A block of lines is given to the planner as it is.
        if name not in kept or "\n" in statement.text or re.search(rf"\b{name}\b", "\n".join(reasons)):
            continue
        derived = "\n".join([*kept[name], *beside[name]])
        if lost := changed_facts(statement.text, derived, derived):
            said = ", ".join(repr(one.text) for one in lost)
            yield (
                f"{name} says {_quote(statement.text)}, but {said} is not in what comes from it: "
                f"{_quote('; '.join(kept[name]))}. Keep it there or in a criterion of the phase, or give a "
                f"reason that names {name}"
            )


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= MAX_QUOTE else f"{words[:MAX_QUOTE]}…")


def _texts(answer: RoadmapAnswer, step: StepRequest, idea: Idea) -> dict[str, str]:
    """Return the texts of the project's first files, by name."""
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
    return {
        "IDEA.md": render_idea(idea.name, idea.text, used_by(answer), derived),
        "PROJECT.md": render_project(name, answer.summary, core, requirements, later, excluded, limits, date),
        "REQUIREMENTS.md": render_requirements(name, core, requirements, later, excluded, phases, date),
        "ROADMAP.md": render_roadmap(name, answer.summary, phases, date),
        "STATE.md": render_state(core_value=core, phases=phases, date=date),
        "config.json": render_config(config),
    }


def _next_texts(answer: RoadmapAnswer, step: StepRequest, idea: Idea, version: str) -> dict[str, str]:
    """Return the texts of the milestone *version*: ids and numbers of phases are the next free ones."""
    ids = [one.id for one in (*answer.requirements, *answer.later)]
    answer = _renamed(answer, free_ids(ids, used_requirement_ids(step.project)))
    phases = phases_of(answer, int(next_phase_number(step.project)))
    requirements, later = requirements_of(answer.requirements), requirements_of(answer.later, "v2")
    excluded = [(item.feature, item.reason) for item in answer.out_of_scope]
    derived = [(one.id, one.reason) for one in answer.requirements if one.reason or not one.statements]
    date, documents, planning = date_of(step), step.planning.documents, step.planning
    name, core = planning.name or answer.name, planning.core_value or answer.core_value
    if project := documents.get("PROJECT.md"):
        features, active = [phase.name for phase in phases], [one.text for one in requirements]
        project = begin_in_project(project, version, answer.name, answer.summary, features, active, date)
    else:
        project = render_project(name, answer.summary, core, requirements, later, excluded, [], date)
    roadmap = documents.get("ROADMAP.md", f"# Roadmap: {name}\n")
    return {
        **_archives(step),
        "IDEA.md": render_idea(idea.name, idea.text, used_by(answer), derived),
        "PROJECT.md": project,
        "REQUIREMENTS.md": render_requirements(name, core, requirements, later, excluded, phases, date),
        "STATE.md": _state(step, version, answer.name, core, phases),
        "ROADMAP.md": begin_milestone(roadmap, version, answer.name, answer.summary, phases),
    }


def _renamed(answer: RoadmapAnswer, ids: Mapping[str, str]) -> RoadmapAnswer:
    def of(found: Sequence[RequirementAnswer]) -> tuple[RequirementAnswer, ...]:
        return tuple(attrs.evolve(one, id=ids[one.id]) for one in found)

    phases = tuple(
        attrs.evolve(phase, requirements=tuple(ids.get(one, one) for one in phase.requirements))
        for phase in answer.phases
    )
    return attrs.evolve(answer, requirements=of(answer.requirements), later=of(answer.later), phases=phases)


def phases_of(answer: RoadmapAnswer, first: int = 1) -> tuple[PlannedPhase, ...]:
    """Return the phases of a roadmapper's answer, which numbers them from 1, numbered from *first*."""
    return tuple(
        PlannedPhase(
            number=str(number),
            name=phase.name,
            goal=phase.goal,
            # Only a valid answer gets here with another first number: its dependencies are numbers.
            depends_on=tuple(str(int(one) + first - 1) if first > 1 else one for one in phase.depends_on),
            requirements=phase.requirements,
            criteria=phase.criteria,
        )
        for number, phase in enumerate(answer.phases, start=first)
    )


def requirements_of(found: Sequence[RequirementAnswer], version: str = "v1") -> tuple[Requirement, ...]:
    """Return a roadmapper's requirements."""
    return tuple(Requirement(id=a.id, text=a.text, category=a.category, version=version) for a in found)


def _archives(step: StepRequest) -> dict[str, str]:
    """Return copies of the files of the last milestone that are replaced now."""
    copies: dict[str, str] = {}
    for last in survey(step.project).milestones[-1:]:
        for name in ("IDEA.md", "REQUIREMENTS.md"):
            target = f"milestones/{last.version}-{name}"
            there = (step.project / ".planning" / target).exists()
            if (text := text_if_readable(step.project, f".planning/{name}")) and not there:
                copies[target] = text
    return copies


def _state(step: StepRequest, version: str, name: str, core: str, phases: Sequence[PlannedPhase]) -> str:
    date, text = date_of(step), step.planning.documents.get("STATE.md", "")
    if not text:
        return render_state(core_value=core, phases=phases, date=date)
    first = phases[0]
    here = SetPosition(
        phase=first.number,
        phases=len(phases),
        name=first.name,
        plan=0,
        plans=0,
        last=int(phases[-1].number),
        status="Ready to plan",
        percent=0,
        date=date,
        activity=f"Milestone {version} started",
        done=0,
        all_plans=0,
        phases_done=0,
        at=step.now.isoformat(),
    )
    return name_milestone(set_position(text, here), version, name)
