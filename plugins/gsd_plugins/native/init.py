"""init: an idea becomes a project, its requirements and its roadmap."""

from __future__ import annotations

from collections.abc import Sequence

from gsd_core import AgentResult, AgentTask, Idea, Limits, Permanent, StepHost, StepRequest, StepResult

from .models import model_for
from .project import files_of, roadmap_problems
from .prompt import fenced, joined, system, titled
from .schemas import ROADMAP, RoadmapAnswer
from .shape import faults, read
from .telling import instructions

MAX_PHASES = {"quick": 5, "standard": 8, "comprehensive": 12}


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have a roadmapper read the idea; what it answers is checked and written by code."""
    idea = _idea(step)
    limit = MAX_PHASES[step.depth]

    def complaints(result: AgentResult) -> Sequence[str]:
        return faults(RoadmapAnswer, result.value) or roadmap_problems(
            read(RoadmapAnswer, result.value), limit
        )

    result = await host.run_agent("roadmap", _task(step, idea, limit), complaints)
    answer = read(RoadmapAnswer, result.value)
    return StepResult(
        subject=f"docs: initialize {' '.join(answer.name.split())}", files=files_of(answer, step)
    )


def _idea(step: StepRequest) -> Idea:
    if step.idea is None:
        raise Permanent("there is no idea to begin from", hint="gsd run IDEA.md")
    return step.idea


def _task(step: StepRequest, idea: Idea, limit: int) -> AgentTask:
    return AgentTask(
        step=step.id,
        run=step.run,
        role="roadmapper",
        system=system("roadmap"),
        prompt=joined(
            titled("The idea", fenced(idea.name, idea.text)), instructions(step), f"At most {limit} phases."
        ),
        schema=ROADMAP,
        model=model_for("roadmapper", step),
        tree=step.tree,
        limits=Limits(turns=10),
    )
