"""init: turn an idea into a project with requirements and a roadmap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gsd_core import (
    AgentResult,
    AgentTask,
    FileWrite,
    Limits,
    Permanent,
    PlannedPhase,
    Requirement,
    StepHost,
    StepRequest,
    StepResult,
)
from gsd_core.planning.check import check_roadmap
from gsd_core.planning.config import default_config, render_config
from gsd_core.planning.project import render_project
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state

from .answers import ROADMAP, RequirementAnswer, RoadmapAnswer, parse_answer, validate_answer
from .models import model_for
from .paths import date_of
from .plan_checks import describe
from .prompt_context import conventions_section, fence, join, section, system_prompt

MAX_PHASES = {"quick": 5, "standard": 8, "comprehensive": 12}


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Run a roadmapper on the idea, check its answer and write the project's first files."""
    if step.idea is None:
        raise Permanent("no idea given", hint="gsd run IDEA.md")
    max_phases = MAX_PHASES[step.depth]
    task = AgentTask(
        step=step.id,
        run=step.run,
        role="roadmapper",
        system=system_prompt("roadmap"),
        prompt=join(
            section("The idea", fence(step.idea.name, step.idea.text)),
            conventions_section(step),
            f"At most {max_phases} phases.",
        ),
        schema=ROADMAP,
        model=model_for("roadmapper", step),
        tree=step.tree,
        limits=Limits(turns=10),
    )

    def accept(result: AgentResult) -> Sequence[str]:
        return validate_answer(RoadmapAnswer, result.value) or validate_roadmap(
            parse_answer(RoadmapAnswer, result.value), max_phases
        )

    result = await host.run_agent("roadmap", task, accept)
    answer = parse_answer(RoadmapAnswer, result.value)
    return StepResult(subject=f"docs: initialize {' '.join(answer.name.split())}", files=_files(answer, step))


def validate_roadmap(answer: RoadmapAnswer, max_phases: int) -> tuple[str, ...]:
    """Return the problems of a roadmap, for the agent to fix."""
    requirements = (*_requirements(answer.requirements), *_requirements(answer.later, "v2"))
    issues = check_roadmap(_phases(answer), requirements)
    blockers = [describe(issue) for issue in issues if issue.severity == "blocker"]
    return tuple(dict.fromkeys([*_problems(answer, max_phases), *blockers]))


def _problems(answer: RoadmapAnswer, max_phases: int) -> Iterator[str]:
    if not answer.name.strip():
        yield "name is empty"
    if not answer.requirements:
        yield "there are no requirements"
    if len(answer.phases) > max_phases:
        yield f"too many phases: {len(answer.phases)}, the maximum is {max_phases}"
    for number, phase in enumerate(answer.phases, start=1):
        earlier = {str(other) for other in range(1, number)}
        for name in phase.depends_on:
            if name not in earlier:
                yield f"phase {number} depends on {name!r}, which is not an earlier phase"


def _phases(answer: RoadmapAnswer) -> tuple[PlannedPhase, ...]:
    return tuple(
        PlannedPhase(
            number=str(number),
            name=phase.name,
            goal=phase.goal,
            depends_on=phase.depends_on,
            requirements=phase.requirements,
            criteria=phase.criteria,
        )
        for number, phase in enumerate(answer.phases, start=1)
    )


def _requirements(answers: Sequence[RequirementAnswer], version: str = "v1") -> tuple[Requirement, ...]:
    return tuple(Requirement(id=a.id, text=a.text, category=a.category, version=version) for a in answers)


def _files(answer: RoadmapAnswer, step: StepRequest) -> tuple[FileWrite, ...]:
    phases, date = _phases(answer), date_of(step)
    requirements, later = _requirements(answer.requirements), _requirements(answer.later, "v2")
    excluded = [(item.feature, item.reason) for item in answer.out_of_scope]
    limits = [(item.type, item.what, item.why) for item in answer.constraints]
    name, core = answer.name, answer.core_value
    # The user may have written a config.json before the first run: their values win over our defaults.
    config = _merged({**default_config(step.depth), "model_profile": step.profile}, step.planning.config)
    texts = {
        "PROJECT.md": render_project(name, answer.summary, core, requirements, later, excluded, limits, date),
        "REQUIREMENTS.md": render_requirements(name, core, requirements, later, excluded, phases, date),
        "ROADMAP.md": render_roadmap(name, answer.summary, phases, date),
        "STATE.md": render_state(core_value=core, phases=phases, date=date),
        "config.json": render_config(config),
    }
    return tuple(FileWrite(path=f".planning/{name}", text=text) for name, text in texts.items())


def _merged(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return both mappings merged at every level; *values* win."""
    merged = dict(defaults)
    for key, value in values.items():
        default = merged.get(key)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(cast("Mapping[str, Any]", default), cast("Mapping[str, Any]", value))
        else:
            merged[key] = value
    return merged
