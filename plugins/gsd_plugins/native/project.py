"""From a roadmapper's answer to the project's first files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gsd_core import FileWrite, PlannedPhase, Requirement, StepRequest
from gsd_core.planning.check import check_roadmap
from gsd_core.planning.config import default_config, render_config
from gsd_core.planning.project import render_project
from gsd_core.planning.requirements import render_requirements
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state

from .place import day
from .problems import told
from .schemas import RequirementAnswer, RoadmapAnswer


def roadmap_problems(answer: RoadmapAnswer, max_phases: int) -> tuple[str, ...]:
    """Return what is wrong with a roadmap, for the agent to put right."""
    named = (*requirements_of(answer.requirements), *requirements_of(answer.later, "v2"))
    issues = check_roadmap(phases_of(answer), named)
    blockers = [told(issue) for issue in issues if issue.severity == "blocker"]
    return tuple(dict.fromkeys([*_own_problems(answer, max_phases), *blockers]))


def _own_problems(answer: RoadmapAnswer, max_phases: int) -> Iterator[str]:
    if not answer.name.strip():
        yield "name is empty"
    if not answer.requirements:
        yield "there are no requirements"
    if len(answer.phases) > max_phases:
        yield f"{len(answer.phases)} phases are too many: at most {max_phases}"
    for number, phase in enumerate(answer.phases, start=1):
        later = [other for other in phase.depends_on if other not in map(str, range(1, number))]
        yield from (f"phase {number} depends on {other!r}, which is no earlier phase" for other in later)


def phases_of(answer: RoadmapAnswer) -> tuple[PlannedPhase, ...]:
    """Return the phases, numbered in their order."""
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


def requirements_of(answers: Sequence[RequirementAnswer], version: str = "v1") -> tuple[Requirement, ...]:
    """Return requirements of a version."""
    return tuple(Requirement(id=a.id, text=a.text, category=a.category, version=version) for a in answers)


def files_of(answer: RoadmapAnswer, step: StepRequest) -> tuple[FileWrite, ...]:
    """Return the five files that a project begins with."""
    phases, date = phases_of(answer), day(step)
    wanted, later = requirements_of(answer.requirements), requirements_of(answer.later, "v2")
    excluded = [(item.feature, item.reason) for item in answer.out_of_scope]
    limits = [(item.type, item.what, item.why) for item in answer.constraints]
    name, core = answer.name, answer.core_value
    texts = {
        "PROJECT.md": render_project(name, answer.summary, core, wanted, later, excluded, limits, date),
        "REQUIREMENTS.md": render_requirements(name, core, wanted, later, excluded, phases, date),
        "ROADMAP.md": render_roadmap(name, answer.summary, phases, date),
        "STATE.md": render_state(core_value=core, phases=phases, date=date),
        "config.json": render_config(_config(step)),
    }
    return tuple(FileWrite(path=f".planning/{name}", text=text) for name, text in texts.items())


def _config(step: StepRequest) -> Mapping[str, Any]:
    defaults = {**default_config(step.depth), "model_profile": step.profile}
    return _merged(defaults, step.planning.config)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, level by level; what the user has already wins."""
    return {**below, **{key: _one(below.get(key), value) for key, value in above.items()}}


def _one(below: object, above: object) -> object:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return _merged(cast("Mapping[str, Any]", below), cast("Mapping[str, Any]", above))
    return above
