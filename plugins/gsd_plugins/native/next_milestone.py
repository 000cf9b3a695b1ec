"""init for a project whose milestones have shipped: requirements and phases of the next one.

The agent numbers its phases from 1, and may use ids of requirements that exist: code gives both the next
free numbers, which costs no second answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve

from gsd_core import FileWrite, PlannedPhase, Requirement, SetPosition, StepRequest, StepResult
from gsd_core.planning.idea import PATH as IDEA
from gsd_core.planning.idea import render_idea
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
from gsd_core.planning.state import begin_milestone as name_milestone
from gsd_core.planning.state import render_state, set_position
from gsd_core.planning.survey import survey

from .answers import RequirementAnswer, RoadmapAnswer
from .paths import date_of, text_if_readable
from .prompt_context import fence, join, section

ARCHIVE = ".planning/milestones"
MAX_IDS = 200
UsedBy = Callable[[RoadmapAnswer], Mapping[str, tuple[str, ...]]]


def context(step: StepRequest) -> str:
    """Return what the roadmapper has to know about the project so far."""
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


def result(answer: RoadmapAnswer, step: StepRequest, used_by: UsedBy) -> StepResult:
    """Return the files of the next milestone."""
    version = next_version(step.project)
    name = " ".join(answer.name.split())
    return StepResult(
        subject=f"docs: start milestone {version} {name}", files=tuple(_files(answer, step, version, used_by))
    )


def _files(answer: RoadmapAnswer, step: StepRequest, version: str, used_by: UsedBy) -> Iterator[FileWrite]:
    new = free_ids(
        [one.id for one in (*answer.requirements, *answer.later)], used_requirement_ids(step.project)
    )
    answer = _renamed(answer, new)
    phases = phases_of(answer, int(next_phase_number(step.project)))
    requirements, later = requirements_of(answer.requirements), requirements_of(answer.later, "v2")
    excluded = [(item.feature, item.reason) for item in answer.out_of_scope]
    date, documents, planning = date_of(step), step.planning.documents, step.planning
    name, core = planning.name or answer.name, planning.core_value or answer.core_value
    features = [phase.name for phase in phases]
    yield from _archives(step)
    if step.idea:
        derived = [(one.id, one.reason) for one in answer.requirements if one.reason or not one.statements]
        text = render_idea(step.idea.name, step.idea.text, dict(used_by(answer)), derived)
        yield FileWrite(path=IDEA, text=text)
    if project := documents.get("PROJECT.md"):
        active = [one.text for one in requirements]
        project = begin_in_project(project, version, answer.name, answer.summary, features, active, date)
    else:
        project = render_project(name, answer.summary, core, requirements, later, excluded, [], date)
    yield FileWrite(path=".planning/PROJECT.md", text=project)
    text = render_requirements(name, core, requirements, later, excluded, phases, date)
    yield FileWrite(path=".planning/REQUIREMENTS.md", text=text)
    yield FileWrite(path=".planning/STATE.md", text=_state(step, version, answer.name, core, phases))
    roadmap = documents.get("ROADMAP.md", f"# Roadmap: {name}\n")
    text = begin_milestone(roadmap, version, answer.name, answer.summary, phases)
    yield FileWrite(path=".planning/ROADMAP.md", text=text)


def _renamed(answer: RoadmapAnswer, ids: Mapping[str, str]) -> RoadmapAnswer:
    def of(found: Sequence[RequirementAnswer]) -> tuple[RequirementAnswer, ...]:
        return tuple(evolve(one, id=ids[one.id]) for one in found)

    phases = tuple(
        evolve(phase, requirements=tuple(ids.get(one, one) for one in phase.requirements))
        for phase in answer.phases
    )
    return evolve(answer, requirements=of(answer.requirements), later=of(answer.later), phases=phases)


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


def _archives(step: StepRequest) -> Iterator[FileWrite]:
    """Yield copies of the files of the last milestone that are replaced now."""
    milestones = survey(step.project).milestones
    if not milestones:
        return
    last = milestones[-1].version
    for path, name in ((IDEA, "IDEA"), (".planning/REQUIREMENTS.md", "REQUIREMENTS")):
        target = f"{ARCHIVE}/{last}-{name}.md"
        if (text := text_if_readable(step.project, path)) and not (step.project / target).exists():
            yield FileWrite(path=target, text=text)


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
