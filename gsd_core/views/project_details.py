"""Phases, plans and commits as JSON data for a page about a project: planning files and journal together.

Nothing here assumes that one step or one phase is in progress at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, cast

import attrs

from gsd_core.machine.facts import Record, StepCompleted, TaskCommitted, typed
from gsd_core.machine.history import phase_of
from gsd_core.machine.state import State
from gsd_core.model.gap import HumanCheck
from gsd_core.planning.model import Artifact, PhaseView, Plan, Planning, Statement, Task, Truth, Verdict
from gsd_core.planning.waves import plan_waves
from gsd_core.serializer import FLAG, NUMBER, TEXT, TIME, Serializer, arr, null, values

from .cost import COSTS
from .phases import PhaseRow, Progress, phase_rows
from .plan_graph import GRAPH, NodeState, PlanGraph, plan_graph
from .planning import GAP, CurrentVerdict, verdict_status
from .status import PHASE_ROW, STEP, active_steps, step_json
from .summary import Decision, RunSummary, StepDone


@attrs.frozen(kw_only=True)
class CommitDone:
    """A commit of a run: of the *task* of a plan, or of the *step* itself."""

    sha: str
    subject: str
    step: str
    task: str = ""
    at: datetime | None = None


def commits_of(facts: Iterable[Record]) -> tuple[CommitDone, ...]:
    """Return the commits in *facts*, oldest first, each once."""
    found: dict[str, CommitDone] = {}
    for fact in typed(facts, TaskCommitted, StepCompleted):
        done: TaskCommitted | StepCompleted = cast("Any", fact.data)
        task, subject = (done.task, done.name) if isinstance(done, TaskCommitted) else ("", done.subject)
        sha, subject = done.commit, subject or task
        if sha and sha not in found:
            found[sha] = CommitDone(sha=sha, subject=subject, step=fact.step, task=task, at=fact.at)
    return tuple(found.values())


COMMIT = Serializer(
    CommitDone,
    "sha subject step phase plan task at",
    phase=(null(TEXT), lambda commit: phase_of(commit.step) or None),
    plan=(null(TEXT), lambda commit: commit.task.partition("/")[0] or None),
    task=(null(TEXT), lambda commit: commit.task.partition("/")[2] or None),
)


@attrs.frozen(kw_only=True)
class Details:
    """What the page about a project is made of; *interrupted*: no process works on the project now."""

    planning: Planning
    state: State
    commits: tuple[CommitDone, ...] = ()
    interrupted: bool = False

    @cached_property
    def rows(self) -> Mapping[str, PhaseRow]:
        """The rows of the phases, by number."""
        return {row.number: row for row in phase_rows(self.state)}

    @cached_property
    def graph(self) -> PlanGraph:
        """The plans of all phases, with what they depend on and how far they are."""
        return plan_graph(self.planning.phases, self.state, is_running=not self.interrupted)

    @cached_property
    def plan_states(self) -> Mapping[str, NodeState]:
        """How far the plans are, by id."""
        return {node.id: node.state for node in self.graph.nodes}

    @cached_property
    def made(self) -> Mapping[str, str]:
        """The commits of tasks, by task."""
        return {commit.task: commit.sha for commit in self.commits if commit.task}


def phases_json(details: Details) -> dict[str, Any]:
    """Return the phases of the milestone with their steps and plans as JSON data."""
    planning = details.planning
    phases = [phase_entry(details, phase) for phase in planning.phases]
    return PLANNING.dump(planning, phases=phases, graph=GRAPH.dump(details.graph))


def phase_entry(details: Details, phase: PhaseView) -> dict[str, Any]:
    """Return one phase with its steps and plans as JSON data."""
    row = details.rows.get(phase.number) or _unseen(phase)
    waves = plan_waves(phase.plans)
    active = active_steps(details.state, interrupted=details.interrupted)
    own = [one for one in active if one.id.phase == phase.number]
    entry = PHASE_ENTRY.dump(
        phase,
        verdict=verdict_status(phase.verdict),
        active=[step_json(one, interrupted=details.interrupted) for one in own],
        plans=[plan_entry(details, plan, waves[plan.id]) for plan in phase.plans],
    )
    return {**PHASE_ROW.dump(row), **entry}


def _unseen(phase: PhaseView) -> PhaseRow:
    """Return the row of a phase that no run has observed."""
    done = sum(bool(plan.summary) for plan in phase.plans)
    has_begun = phase.plans or phase.context
    status: Progress = "completed" if phase.ticked else "in_progress" if has_begun else "pending"
    return PhaseRow(
        number=phase.number, name=phase.name, status=status, steps={}, plans=len(phase.plans), plans_done=done
    )


def plan_entry(details: Details, plan: Plan, wave: int) -> dict[str, Any]:
    """Return a plan with its tasks as JSON data; a task that is committed has its commit."""
    made = [(task, details.made.get(f"{plan.id}/{task.number}")) for task in plan.tasks]
    tasks = [TASK.dump(task, commit=commit) for task, commit in made]
    return PLAN_ENTRY.dump(plan, wave=wave, tasks=tasks, status=details.plan_states[plan.id])


TASK = Serializer(Task, "number name type commit", type=TEXT, commit=null(TEXT))
PLAN_ENTRY = Serializer(
    Plan,
    "id phase name objective wave depends_on autonomous files_modified requirements tasks has_summary "
    "gap_closure status",
    wave=NUMBER,
    tasks=arr(TASK.schema),
    has_summary=(FLAG, lambda plan: bool(plan.summary)),
    status=values(NodeState),
)
PHASE_ENTRY = Serializer(
    PhaseView,
    "name goal depends_on requirements complete=ticked verdict active plans",
    verdict=values(CurrentVerdict),
    active=arr(STEP.schema),
    plans=arr(PLAN_ENTRY.schema),
)


@attrs.frozen(kw_only=True)
class PhaseTexts:
    """The texts of a phase's files: of VERIFICATION.md, and of the SUMMARYs by plan."""

    verification: str = ""
    summaries: Mapping[str, str] = attrs.field(factory=dict[str, str])


def phase_details(
    details: Details,
    phase: PhaseView,
    *,
    texts: PhaseTexts,
    summary: RunSummary,
    requirements: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return a phase with everything that was written, verified and done for it as JSON data.

    *requirements* are the rows of :func:`gsd_core.views.planning.requirements_json`.
    """
    entry = phase_entry(details, phase)
    shas = {sha for names in phase.commits.values() for sha in names}
    verdict = phase.verdict
    steps = [step for step in summary.steps if step.phase == phase.number]
    if details.interrupted:
        # Nothing has recorded the end of what was running.
        steps = [attrs.evolve(one, status="cut off") if one.status == "running" else one for one in steps]
    commits = [one for one in details.commits if phase_of(one.step) == phase.number or one.sha in shas]
    return {
        **entry,
        "context": phase.context,
        "research": phase.research,
        "criteria": list(phase.criteria),
        "plans": [
            {**about, **PLAN_TEXTS.dump(plan, summary=texts.summaries.get(plan.id, ""))}
            for about, plan in zip(entry["plans"], phase.plans, strict=True)
        ],
        "verification": verdict
        and VERDICT.dump(verdict, status=verdict_status(verdict), text=texts.verification),
        "requirements_traced": [row for row in requirements if row["phase"] == phase.number],
        "history": [*map(STEP_DONE.dump, steps)],
        "commits": [*map(COMMIT.dump, commits)],
    }


STEP_DONE = Serializer(
    StepDone,
    "id status attempts seconds=took started_at commit? failures cost=costs",
    status=(
        {"type": "string", "enum": ["running", "completed", "failed", "waiting", "cut_off", "skipped"]},
        lambda step: step.status.replace(" ", "_"),
    ),
    started_at=null(TIME),
    cost=COSTS,
)
ANSWERED = Serializer(
    Decision,
    "id text step kind asked_at words=answer.words by=answer.by via=answer.via how=answer.how at=answer.at",
    asked_at=null(TIME),
    how=TEXT,
)
PLANNING = Serializer(
    Planning,
    "name core_value milestone milestone_name idle? phases graph",
    phases=arr(PHASE_ENTRY.schema),
    graph=GRAPH.schema,
)
PLAN_TEXTS = Serializer(
    Plan,
    "text summary truths=must_haves.truths artifacts=must_haves.artifacts",
    truths=Serializer(Truth, "id text serves"),
    artifacts=Serializer(Artifact, "path provides"),
)
VERDICT = Serializer(
    Verdict,
    "status score verified text gaps human",
    text=TEXT,
    gaps=GAP,
    human=Serializer(HumanCheck, "test expected why result"),
)
STATEMENT = Serializer(Statement, "id text line heading")
