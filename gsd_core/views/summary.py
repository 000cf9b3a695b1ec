"""A run in figures and lists, for its end and for the report: steps, tasks, commits, gaps, answers, costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from gsd_core.machine.fold import Structure
from gsd_core.machine.ledger import Call
from gsd_core.machine.state import Fact
from gsd_core.model.question import Answer, Inquiry

from .cost import Costs, calls_of, sum_of
from .status import phase_of


@attrs.frozen(kw_only=True)
class TaskDone:
    """A task with its commit; *check* is the command that passed after it, empty if it has none."""

    task: str
    name: str
    commit: str
    check: str = ""
    note: str = ""


@attrs.frozen(kw_only=True)
class StepDone:
    """The work on one step, all attempts together.

    *took* is the time from the start of each attempt to its end; *failures* are the reasons of failed
    attempts. *commit* is that of its documents, empty as long as it is not completed.
    """

    id: str
    started_at: datetime
    attempts: int = 1
    took: timedelta = timedelta()
    status: str = "running"
    commit: str = ""
    subject: str = ""
    tasks: tuple[TaskDone, ...] = ()
    failures: tuple[str, ...] = ()
    costs: Costs = attrs.field(factory=Costs)

    @property
    def phase(self) -> str:
        """The phase that the step belongs to; empty if none."""
        return phase_of(self.id)


@attrs.frozen(kw_only=True)
class GapFound:
    """A gap that a verification of *phase* found in *found_in*; *closed_in* is the first one without it."""

    phase: str
    truth: str
    reason: str
    found_by: str
    found_in: str
    at: datetime
    closed_in: str = ""


@attrs.frozen(kw_only=True)
class Decision:
    """A question of the run; *answer* is ``None`` as long as it is open."""

    id: str
    step: str
    text: str
    reason: str
    kind: str
    asked_at: datetime
    options: tuple[str, ...] = ()
    answer: Answer | None = None


@attrs.frozen(kw_only=True)
class RunSummary:
    """What a run did; *worked* is the time during which a process worked on it."""

    run: str = ""
    started_at: datetime | None = None
    last_at: datetime | None = None
    worked: timedelta = timedelta()
    processes: int = 0
    steps: tuple[StepDone, ...] = ()
    gaps: tuple[GapFound, ...] = ()
    decisions: tuple[Decision, ...] = ()
    calls: tuple[Call, ...] = ()
    costs: Costs = attrs.field(factory=Costs)

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits of its tasks and steps, oldest first."""
        found = [name for step in self.steps for name in (*(task.commit for task in step.tasks), step.commit)]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def assumed(self) -> tuple[Decision, ...]:
        """The questions that a policy or a timeout answered: nobody looked."""
        return tuple(one for one in self.decisions if one.answer and one.answer.is_assumption)


def summarize(facts: Iterable[Fact], structure: Structure) -> RunSummary:
    """Return the summary of the run whose *facts* these are, in order."""
    listed = list(facts)
    if not listed:
        return RunSummary()
    calls = calls_of(listed, structure)
    steps = _Steps()
    decisions: dict[str, Decision] = {}
    gaps: dict[tuple[str, str], GapFound] = {}
    for fact in listed:
        steps.add(fact)
        if fact.kind == "question.asked":
            decisions |= {one.id: one for one in _decisions(fact, structure)}
        elif fact.kind == "question.answered":
            answer = structure(fact.data["answer"], Answer)
            if answer.question in decisions:
                decisions[answer.question] = attrs.evolve(decisions[answer.question], answer=answer)
        elif fact.kind == "step.result":
            _note_gaps(gaps, fact)
    opened = [fact for fact in listed if fact.kind == "run.opened"]
    return RunSummary(
        run=listed[0].run,
        started_at=listed[0].at,
        last_at=listed[-1].at,
        worked=_worked(listed),
        processes=len(opened),
        steps=tuple(
            attrs.evolve(step, costs=sum_of(call for call in calls if call.step == step.id))
            for step in steps.found.values()
        ),
        gaps=tuple(gaps.values()),
        decisions=tuple(decisions.values()),
        calls=calls,
        costs=sum_of(calls),
    )


def _worked(facts: Iterable[Fact]) -> timedelta:
    """Return the time between the first and the last fact of each process."""
    spans: dict[int, tuple[datetime, datetime]] = {}
    for fact in facts:
        begin, _ = spans.get(fact.epoch, (fact.at, fact.at))
        spans[fact.epoch] = begin, fact.at
    return sum((max(end - begin, timedelta()) for begin, end in spans.values()), timedelta())


@attrs.define
class _Steps:
    """The steps so far, by id; the facts that began attempts in progress; the last time of each process."""

    found: dict[str, StepDone] = attrs.field(factory=dict[str, StepDone])
    _began: dict[str, Fact] = attrs.field(factory=dict[str, Fact])
    _last: dict[int, datetime] = attrs.field(factory=dict[int, datetime])

    def add(self, fact: Fact) -> None:
        self._last[fact.epoch] = fact.at
        data, known = fact.data, self.found.get(fact.step)
        if fact.kind == "attempt.started":
            self._began[fact.step] = fact
            again = attrs.evolve(known, attempts=known.attempts + 1, status="running") if known else None
            self.found[fact.step] = again or StepDone(id=fact.step, started_at=fact.at)
            return
        if known is None:
            return
        match fact.kind:
            case "task.committed":
                task = _task(data)
                others = tuple(one for one in known.tasks if one.task != task.task)
                self.found[fact.step] = attrs.evolve(known, tasks=(*others, task))
            case "step.completed":
                about = {"commit": str(data.get("commit") or ""), "subject": str(data.get("subject") or "")}
                self._end(fact, known, "completed", **about)
            case "attempt.failed" | "step.failed":
                error: Mapping[str, Any] = data["error"]
                reason = str(error.get("message") or error.get("kind") or "")
                failures = known.failures if reason in known.failures else (*known.failures, reason)
                self._end(fact, known, "failed", failures=failures)
            case "attempt.lost":
                self._end(fact, known, "waiting" if data.get("why") == "parked" else "cut off")
            case "step.skipped":
                self._end(fact, known, "skipped")
            case _:
                pass

    def _end(self, fact: Fact, step: StepDone, status: str, **about: Any) -> None:
        took = step.took
        if began := self._began.pop(fact.step, None):
            # That an attempt was lost is recorded by a later process: nobody worked in between.
            took += max(self._last[began.epoch] - began.at, timedelta())
        self.found[fact.step] = attrs.evolve(step, status=status, took=took, **about)


def _task(data: Mapping[str, Any]) -> TaskDone:
    check: Mapping[str, Any] = data.get("check") or {}
    return TaskDone(
        task=str(data["task"]),
        name=str(data.get("name") or ""),
        commit=str(data.get("commit") or ""),
        check=str(check.get("command") or "") if check.get("exit") == 0 else "",
        note=str(data.get("note") or ""),
    )


def _decisions(fact: Fact, structure: Structure) -> Iterable[Decision]:
    inquiry: Inquiry = structure(fact.data["inquiry"], Inquiry)
    for question in inquiry.questions:
        yield Decision(
            id=question.id,
            step=inquiry.step or fact.step,
            text=question.text,
            reason=inquiry.reason,
            kind=inquiry.kind,
            asked_at=fact.at,
            options=tuple(option.label for option in question.options),
        )


def _note_gaps(gaps: dict[tuple[str, str], GapFound], fact: Fact) -> None:
    """Add the gaps that a verification lists, and close those that it does not list any more."""
    result: Mapping[str, Any] = fact.data.get("result") or {}
    outcome: Mapping[str, Any] = result.get("outcome") or {}
    report: Mapping[str, Any] | None = outcome.get("report")
    if not isinstance(report, Mapping):
        return
    phase = phase_of(fact.step)
    listed: Iterable[Mapping[str, Any]] = report.get("gaps") or ()
    now = {str(gap.get("truth") or ""): gap for gap in listed}
    for (of, truth), gap in gaps.items():
        if of == phase and truth not in now and not gap.closed_in:
            gaps[of, truth] = attrs.evolve(gap, closed_in=fact.step)
    for truth, data in now.items():
        known = gaps.get((phase, truth))
        gaps[phase, truth] = (
            attrs.evolve(known, closed_in="")
            if known
            else GapFound(
                phase=phase,
                truth=truth,
                reason=str(data.get("reason") or ""),
                found_by=str(data.get("found_by") or ""),
                found_in=fact.step,
                at=fact.at,
            )
        )
