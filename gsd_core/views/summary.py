"""A run in figures and lists, for its end and for the report: steps, tasks, commits, gaps, answers, costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from gsd_core.machine import facts
from gsd_core.machine.facts import KIND_OF, Record, Recorded, typed
from gsd_core.machine.history import phase_of
from gsd_core.machine.ledger import Call
from gsd_core.model.question import Answer, Inquiry
from gsd_core.serializer import Serializer

from .cost import Costs, calls_of, sum_of


@attrs.frozen(kw_only=True)
class StepDone:
    """The work on one step, all attempts together.

    *spans* are the start of each attempt and its end; *failures* are the reasons of failed attempts. *commit*
    is that of its documents, empty as long as it is not completed.
    """

    id: str
    started_at: datetime
    attempts: int = 1
    spans: tuple[tuple[datetime, datetime], ...] = ()
    status: str = "running"
    commit: str = ""
    subject: str = ""
    tasks: tuple[facts.TaskCommitted, ...] = ()
    failures: tuple[str, ...] = ()
    costs: Costs = attrs.field(factory=Costs)

    @property
    def took(self) -> timedelta:
        """The time from the start of each attempt to its end."""
        return sum((end - begin for begin, end in self.spans), timedelta())

    @property
    def phase(self) -> str:
        """The phase that the step belongs to; empty if none."""
        return phase_of(self.id)


@attrs.frozen(kw_only=True)
class GapFound:
    """A gap that the verification *found_in* found; *closed_in* is the first one without it."""

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

    started_at: datetime | None = None
    last_at: datetime | None = None
    worked: timedelta = timedelta()
    processes: int = 0
    steps: tuple[StepDone, ...] = ()
    gaps: tuple[GapFound, ...] = ()
    decisions: tuple[Decision, ...] = ()
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


ASSUMED = Serializer(Decision, "question=id text answer=answer.words by=answer.who")
"""Of an answer that a policy or a timeout gave."""
_KINDS: tuple[type[object], ...] = (
    *(facts.AttemptStarted, facts.AttemptFailed, facts.AttemptLost, facts.TaskCommitted),
    *(facts.StepReturned, facts.StepCompleted, facts.StepFailed, facts.StepSkipped),
    *(facts.QuestionAsked, facts.QuestionAnswered),
)


def summarize(records: Iterable[Record]) -> RunSummary:
    """Return the summary of the run whose *records* these are, in order."""
    listed = list(records)
    if not listed:
        return RunSummary()
    calls = calls_of(listed)
    steps = _Steps()
    began: dict[int, datetime] = {}
    decisions: dict[str, Decision] = {}
    gaps: dict[tuple[str, str], GapFound] = {}
    for record in listed:
        began.setdefault(record.epoch, record.at)
        steps.last[record.epoch] = record.at
        for fact in typed([record], *_KINDS):
            steps.add(fact)
            match fact.data:
                case facts.QuestionAsked(inquiry=inquiry):
                    decisions |= {one.id: one for one in _decisions(fact, inquiry)}
                case facts.QuestionAnswered(answer=answer) if answer.question in decisions:
                    decisions[answer.question] = attrs.evolve(decisions[answer.question], answer=answer)
                case facts.StepReturned(result=result):
                    _note_gaps(gaps, fact, result)
                case _:
                    pass
    calls_by_step: dict[str, list[Call]] = {}
    for call in calls:
        calls_by_step.setdefault(call.step, []).append(call)
    # The time between the first and the last record of each process.
    times = (max(steps.last[epoch] - at, timedelta()) for epoch, at in began.items())
    return RunSummary(
        started_at=listed[0].at,
        last_at=listed[-1].at,
        worked=sum(times, timedelta()),
        processes=sum(fact.kind == KIND_OF[facts.RunOpened] for fact in listed),
        steps=tuple(
            attrs.evolve(step, costs=sum_of(calls_by_step.get(step.id, ()))) for step in steps.found.values()
        ),
        gaps=tuple(gaps.values()),
        decisions=tuple(decisions.values()),
        costs=sum_of(calls),
    )


@attrs.define
class _Steps:
    """The steps so far, by id; the facts that began attempts in progress; the last time of each process."""

    found: dict[str, StepDone] = attrs.field(factory=dict[str, StepDone])
    _began: dict[str, Recorded[object]] = attrs.field(factory=dict[str, Recorded[object]])
    last: dict[int, datetime] = attrs.field(factory=dict[int, datetime])

    def add(self, fact: Recorded[object]) -> None:
        known = self.found.get(fact.step)
        if isinstance(fact.data, facts.AttemptStarted):
            self._began[fact.step] = fact
            again = attrs.evolve(known, attempts=known.attempts + 1, status="running") if known else None
            self.found[fact.step] = again or StepDone(id=fact.step, started_at=fact.at)
            return
        if known is None:
            return
        match fact.data:
            case facts.TaskCommitted() as task:
                others = tuple(one for one in known.tasks if one.task != task.task)
                self.found[fact.step] = attrs.evolve(known, tasks=(*others, task))
            case facts.StepCompleted(commit=commit, subject=subject):
                self._end(fact, known, "completed", commit=commit or "", subject=subject)
            case facts.AttemptFailed(error=error) | facts.StepFailed(error=error):
                reason = error.message or error.kind
                failures = known.failures if reason in known.failures else (*known.failures, reason)
                self._end(fact, known, "failed", failures=failures)
            case facts.AttemptLost(why=why):
                self._end(fact, known, "waiting" if why in ("parked", "postponed") else "cut off")
            case facts.StepSkipped():
                self._end(fact, known, "skipped")
            case _:
                pass

    def _end(self, fact: Recorded[object], step: StepDone, status: str, **about: Any) -> None:
        spans = step.spans
        if began := self._began.pop(fact.step, None):
            # That an attempt was lost is recorded by a later process: nobody worked in between.
            spans = (*spans, (began.at, max(self.last[began.epoch], began.at)))
        self.found[fact.step] = attrs.evolve(step, status=status, spans=spans, **about)


def _decisions(fact: Recorded[object], inquiry: Inquiry) -> Iterable[Decision]:
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


def _note_gaps(
    gaps: dict[tuple[str, str], GapFound], fact: Recorded[object], result: Mapping[str, Any]
) -> None:
    """Add the gaps that a verification lists, and close those that it does not list any more."""
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
        if known := gaps.get((phase, truth)):
            gaps[phase, truth] = attrs.evolve(known, closed_in="")
            continue
        why, finder = str(data.get("reason") or ""), str(data.get("found_by") or "")
        found = GapFound(truth=truth, reason=why, found_by=finder, found_in=fact.step, at=fact.at)
        gaps[phase, truth] = found
