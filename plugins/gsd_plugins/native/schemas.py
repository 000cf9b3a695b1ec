"""What agents answer, as values; the JSON schemas that they are given are made from these.

A field without a default is required. What the fields mean is told in the prompts.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from gsd_core import AgentFunction
from gsd_core.planning.model import TaskType

from .shape import schema_of

VerdictWord: TypeAlias = Literal["holds", "fails", "uncertain", "human"]


@frozen(kw_only=True)
class RequirementAnswer:
    """A requirement of the roadmap."""

    id: str
    category: str
    text: str


@frozen(kw_only=True)
class Exclusion:
    """Something that is not going to be built."""

    feature: str
    reason: str


@frozen(kw_only=True)
class Constraint:
    """A limit that the idea sets."""

    type: str
    what: str
    why: str


@frozen(kw_only=True)
class PhaseAnswer:
    """A phase of the roadmap; its number is its place."""

    name: str
    goal: str
    depends_on: tuple[str, ...]
    requirements: tuple[str, ...]
    criteria: tuple[str, ...]


@frozen(kw_only=True)
class RoadmapAnswer:
    """An idea as requirements and phases."""

    name: str
    summary: str
    core_value: str
    requirements: tuple[RequirementAnswer, ...]
    later: tuple[RequirementAnswer, ...]
    out_of_scope: tuple[Exclusion, ...]
    constraints: tuple[Constraint, ...]
    phases: tuple[PhaseAnswer, ...]


@frozen(kw_only=True)
class ArtifactAnswer:
    """A file that must exist."""

    path: str
    provides: str
    min_lines: int = 0
    contains: str = ""
    exports: tuple[str, ...] = ()


@frozen(kw_only=True)
class LinkAnswer:
    """One file's use of another."""

    source: str = field(metadata={"key": "from"})
    target: str = field(metadata={"key": "to"})
    via: str
    pattern: str = ""


@frozen(kw_only=True)
class OptionAnswer:
    """One choice of a decision."""

    name: str
    pros: str = ""
    cons: str = ""


@frozen(kw_only=True)
class TaskAnswer:
    """One task of a plan."""

    name: str
    type: TaskType = "auto"
    files: tuple[str, ...]
    action: str
    verify: str
    check: str = ""
    done: str
    options: tuple[OptionAnswer, ...] = ()


@frozen(kw_only=True)
class PlanAnswer:
    """One plan; ``depends_on`` counts the plans of the same answer from 1."""

    name: str
    objective: str
    depends_on: tuple[int, ...]
    files_modified: tuple[str, ...]
    requirements: tuple[str, ...]
    truths: tuple[str, ...]
    artifacts: tuple[ArtifactAnswer, ...]
    key_links: tuple[LinkAnswer, ...]
    tasks: tuple[TaskAnswer, ...]


@frozen(kw_only=True)
class PlansAnswer:
    """The plans of a phase, or of one of its gap rounds."""

    plans: tuple[PlanAnswer, ...]


@frozen(kw_only=True)
class ReportAnswer:
    """What an executor has to say at the end; that it is done is not for it to say."""

    deviations: tuple[str, ...]
    decisions: tuple[str, ...]
    issues: tuple[str, ...]


@frozen(kw_only=True)
class VerdictAnswer:
    """What became of one truth."""

    id: str
    status: VerdictWord
    evidence: str
    reason: str
    missing: tuple[str, ...]


@frozen(kw_only=True)
class VerdictsAnswer:
    """The verifier's word on each truth."""

    verdicts: tuple[VerdictAnswer, ...]


@frozen(kw_only=True)
class TaskDone:
    """The arguments of ``task_done``."""

    task: int
    files: tuple[str, ...]
    note: str


ROADMAP: dict[str, Any] = schema_of(RoadmapAnswer)
PLANS: dict[str, Any] = schema_of(PlansAnswer)
REPORT: dict[str, Any] = schema_of(ReportAnswer)
VERDICTS: dict[str, Any] = schema_of(VerdictsAnswer)

TASK_DONE = AgentFunction(
    name="task_done",
    description="Have a finished task checked and committed; replies what became of it.",
    schema=schema_of(TaskDone),
)
