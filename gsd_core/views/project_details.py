"""Phases, plans and commits as JSON data for a page about a project: planning files and journal together.

Nothing here assumes that one step or one phase is in progress at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from gsd_core.machine.state import Fact, State, StepRecord
from gsd_core.planning.model import PhaseView, Plan, Planning
from gsd_core.planning.waves import plan_waves

from .cost import costs_json
from .phases import PhaseRow, Progress, phase_rows
from .planning import PhaseGaps, gaps_json, verdict_status
from .status import active_steps, phase_json, phase_of, step_json, time_json
from .summary import Decision, RunSummary, StepDone


@attrs.frozen(kw_only=True)
class CommitDone:
    """A commit of a run: of the *task* of a plan, or of the *step* itself."""

    sha: str
    subject: str
    step: str
    task: str = ""
    at: str | None = None


def commits_of(facts: Iterable[Fact]) -> tuple[CommitDone, ...]:
    """Return the commits in *facts*, oldest first, each once."""
    found: dict[str, CommitDone] = {}
    for fact in facts:
        sha = str(fact.data.get("commit") or "")
        if fact.kind not in ("task.committed", "step.completed") or not sha or sha in found:
            continue
        task = str(fact.data.get("task") or "")
        subject = str(fact.data.get("subject") or fact.data.get("name") or task)
        found[sha] = CommitDone(sha=sha, subject=subject, step=fact.step, task=task, at=time_json(fact.at))
    return tuple(found.values())


def commit_json(commit: CommitDone) -> dict[str, Any]:
    """Return a commit as JSON data."""
    plan, _, number = commit.task.partition("/")
    return {
        "sha": commit.sha,
        "subject": commit.subject,
        "step": commit.step,
        "phase": phase_of(commit.step) or None,
        "plan": plan or None,
        "task": number or None,
        "at": commit.at,
    }


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
    def executions(self) -> Mapping[str, Sequence[StepRecord]]:
        """The records of the steps that execute a plan, by plan."""
        found: dict[str, list[StepRecord]] = {}
        for record in self.state.steps.values():
            if record.id.kind == "execute":
                found.setdefault(record.id.detail, []).append(record)
        return found

    @cached_property
    def made(self) -> Mapping[str, str]:
        """The commits of tasks, by task."""
        return {commit.task: commit.sha for commit in self.commits if commit.task}


def phases_json(details: Details) -> dict[str, Any]:
    """Return the phases of the milestone with their steps and plans as JSON data."""
    planning = details.planning
    return {
        "name": planning.name,
        "core_value": planning.core_value,
        "milestone": planning.milestone,
        "milestone_name": planning.milestone_name,
        "idle": planning.idle or None,
        "phases": [phase_entry(details, phase) for phase in planning.phases],
    }


def phase_entry(details: Details, phase: PhaseView) -> dict[str, Any]:
    """Return one phase with its steps and plans as JSON data."""
    row = details.rows.get(phase.number) or _unseen(phase)
    active = [one for one in active_steps(details.state) if one.id.phase == phase.number]
    waves = plan_waves(phase.plans)
    return {
        **phase_json(row),
        "name": phase.name,
        "goal": phase.goal,
        "depends_on": list(phase.depends_on),
        "requirements": list(phase.requirements),
        "complete": phase.ticked,
        "verdict": verdict_status(phase.verdict),
        "active": [step_json(one, interrupted=details.interrupted) for one in active],
        "plans": [plan_entry(details, plan, waves[plan.id]) for plan in phase.plans],
    }


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
    return {
        "id": plan.id,
        "phase": plan.phase,
        "name": plan.name,
        "objective": plan.objective,
        "wave": wave,
        "depends_on": list(plan.depends_on),
        "autonomous": plan.autonomous,
        "files_modified": list(plan.files_modified),
        "requirements": list(plan.requirements),
        "tasks": [
            {
                "number": task.number,
                "name": task.name,
                "type": task.type,
                "commit": details.made.get(f"{plan.id}/{task.number}"),
            }
            for task in plan.tasks
        ],
        "has_summary": bool(plan.summary),
        "gap_closure": plan.gap_closure,
        "status": _plan_status(details, plan),
    }


def _plan_status(details: Details, plan: Plan) -> str:
    if plan.summary:
        return "completed"
    records = details.executions.get(plan.id, ())
    if any(record.status == "failed" for record in records):
        return "failed"
    return "in_progress" if any(_has_begun(record) for record in records) else "pending"


def _has_begun(record: StepRecord) -> bool:
    return record.status in ("running", "parked", "result", "waiting")


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
    return {
        **entry,
        "context": phase.context,
        "research": phase.research,
        "criteria": list(phase.criteria),
        "plans": [
            {**about, **_plan_texts(plan, texts)}
            for about, plan in zip(entry["plans"], phase.plans, strict=True)
        ],
        "verification": _verification(phase, texts.verification),
        "requirements_traced": [row for row in requirements if row["phase"] == phase.number],
        "history": [step_done_json(step) for step in summary.steps if step.phase == phase.number],
        "commits": [
            commit_json(commit)
            for commit in details.commits
            if phase_of(commit.step) == phase.number or commit.sha in shas
        ],
    }


def _plan_texts(plan: Plan, texts: PhaseTexts) -> dict[str, Any]:
    found = plan.must_haves
    return {
        "text": plan.text,
        "summary": texts.summaries.get(plan.id, ""),
        "truths": [{"id": one.id, "text": one.text, "serves": list(one.serves)} for one in found.truths],
        "artifacts": [{"path": one.path, "provides": one.provides} for one in found.artifacts],
    }


def _verification(phase: PhaseView, text: str) -> dict[str, Any] | None:
    verdict = phase.verdict
    if verdict is None:
        return None
    status = verdict_status(verdict)
    return {
        "status": status,
        "score": verdict.score,
        "verified": verdict.verified,
        "text": text,
        "gaps": gaps_json(PhaseGaps(status=status, gaps=verdict.gaps))["gaps"],
        "human": [
            {"test": one.test, "expected": one.expected, "why": one.why, "result": one.result}
            for one in verdict.human
        ],
    }


def step_done_json(step: StepDone) -> dict[str, Any]:
    """Return the work on a step as JSON data."""
    return {
        "id": step.id,
        "status": step.status.replace(" ", "_"),
        "attempts": step.attempts,
        "seconds": step.took.total_seconds(),
        "started_at": time_json(step.started_at),
        "commit": step.commit or None,
        "failures": list(step.failures),
        "cost": costs_json(step.costs),
    }


def answered_json(decision: Decision) -> dict[str, Any]:
    """Return a question that was answered as JSON data."""
    given = decision.answer
    assert given is not None, f"{decision.id} is open"
    return {
        "id": decision.id,
        "text": decision.text,
        "step": decision.step,
        "kind": decision.kind,
        "asked_at": time_json(decision.asked_at),
        "words": given.words,
        "by": given.by,
        "via": given.via,
        "how": given.how,
        "at": time_json(given.at),
    }
