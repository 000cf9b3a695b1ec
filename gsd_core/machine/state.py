"""The machine's state: the values that the journal's facts are folded into."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import attrs

from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer, Inquiry, Question

StepStatus: TypeAlias = Literal["running", "parked", "waiting", "result", "completed", "failed", "skipped"]
RunOutcome: TypeAlias = Literal["done", "failed", "blocked", "stopped", "gaps", "budget"]

LOST_IN_A_ROW = 3
"""After this many lost attempts at a step, with no progress in between, a human is asked.

Otherwise a step that kills its process would be started, and paid for, again and again.
"""


@attrs.frozen(kw_only=True)
class PlanSnapshot:
    """A plan; one that only ROADMAP.md lists is not *on_disk*. *summary*: it is executed.

    One that is a *gap_closure* makes up for what is missing in others, so it does not wait for them.
    """

    id: str
    on_disk: bool = True
    summary: bool = False
    depends_on: tuple[str, ...] = ()
    wave: int = 1
    gap_closure: bool = False


@attrs.frozen(kw_only=True)
class DueStep:
    """A step of a plugin's *kind* that is due, according to its plugin; it comes *before* that kind."""

    kind: str
    before: str


@attrs.frozen(kw_only=True)
class PhaseSnapshot:
    """A phase in the planning files.

    *ticked* is its check mark in ROADMAP.md. *verdict* is the status in VERIFICATION.md, *gaps* the keys of
    the gaps in it; the verdict is *stale* if a summary was committed later. *due* are the steps of plugins.
    """

    number: str
    name: str = ""
    depends_on: tuple[str, ...] = ()
    ticked: bool = False
    context: bool = False
    research: bool = False
    plans: tuple[PlanSnapshot, ...] = ()
    verdict: str = ""
    stale: bool = False
    gaps: tuple[str, ...] = ()
    due: tuple[DueStep, ...] = ()


@attrs.frozen(kw_only=True)
class Snapshot:
    """What the planning files say, as far as it decides what is due; the data of ``project.observed``.

    *idle*: why there are no phases although there is a project; see ``Planning.idle``. *due* are the steps of
    plugins that belong to no phase.
    """

    milestone: str = ""
    phases: tuple[PhaseSnapshot, ...] = ()
    idle: str = ""
    due: tuple[DueStep, ...] = ()

    def phase(self, number: str) -> PhaseSnapshot | None:
        """Return the phase with that number."""
        return next((phase for phase in self.phases if phase.number == number), None)


@attrs.frozen(kw_only=True)
class Claims:
    """What the planning files said when the run was opened, and what it did not do itself.

    *ticked* are the phases with a check mark, *passed* those with a verdict that says so, *summaries* the
    plans with a summary. What appears later without the run is in none of them.
    """

    ticked: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Options:
    """The user's options for this process; *phases* are those in range, ``None`` means all.

    *skip_discuss*: nobody is asked about a phase's open decisions; the discuss step makes them.
    *only_asked*: the process does the steps that the user asked for, and none of the lifecycle.
    """

    phases: tuple[str, ...] | None = None
    skip_verify: bool = False
    skip_discuss: bool = False
    gap_rounds: int = 3
    only_asked: bool = False


@attrs.frozen(kw_only=True)
class Failure:
    """Why an attempt failed: the error's class, message and hint, when to try again, and the plugin."""

    kind: str
    message: str
    hint: str = ""
    until: datetime | None = None
    plugin: str = ""


@attrs.frozen(kw_only=True)
class StepRecord:
    """The state of one step.

    *epoch* is that of the process that runs the attempt. *generation* counts how often the step was started
    over (after a failure, or because its result was undone), and *base* is the seq where the current
    generation began: recorded agent calls from before it are not reused. *completed* counts
    completions, *lost* the attempts lost in a row. *result* is the seq of the recorded result. *until* is
    when a waiting step may continue, and *why* says what it waits for. *gaps* and *failed_detectors* are
    those that a verify step reported, *passed* whether it reported neither; *for_gaps* marks a plan step
    that plans gaps, *deferred* one whose plan goes on without a task. *base_commit* and *dirty_before* are
    HEAD and the uncommitted paths when the work began.
    """

    id: StepId
    status: StepStatus
    attempt: int = 0
    epoch: int = 0
    generation: int = 0
    base: int = 0
    completed: int = 0
    lost: int = 0
    failure: Failure | None = None
    until: datetime | None = None
    why: str = ""
    result: int = 0
    gaps: tuple[str, ...] = ()
    failed_detectors: tuple[str, ...] = ()
    passed: bool = False
    for_gaps: bool = False
    deferred: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    base_commit: str = ""
    dirty_before: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class QuestionRecord:
    """An inquiry that was asked, with the *answers* so far by question id; *key*: see ``questions.ask``."""

    inquiry: Inquiry
    key: str = ""
    at: datetime
    answers: Mapping[str, Answer] = attrs.field(factory=dict[str, Answer])
    withdrawn: bool = False

    @property
    def open(self) -> bool:
        """Whether at least one question has no answer yet."""
        return not self.withdrawn and any(q.id not in self.answers for q in self.inquiry.questions)


@attrs.frozen(kw_only=True)
class Allowance:
    """How many gap rounds and verifications a human has allowed for a phase in all, beyond the limits."""

    rounds: int = 0
    verifications: int = 0


@attrs.frozen(kw_only=True)
class Queued:
    """Since when a plan waits because the run may have no more agents, *why*, and what to do about it."""

    at: datetime
    why: str = ""
    hint: str = ""


@attrs.frozen(kw_only=True)
class Closing:
    """How a process left the run."""

    outcome: RunOutcome
    exit: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class State:
    """Everything that decides what is due; its mappings are never changed in place.

    *seen* is the last snapshot of the planning files, *steps* has the records by step id, *inquiries* those
    by :func:`inquiry_key`, *allowances* those by phase. *verified*: for each phase, the plans that
    had a SUMMARY when it was verified last. *claims*: ``None`` if the run was opened by a version that
    believed all files. *journal_lost*: the history has commits of a run whose journal is not here.
    *milestone* is the version of the next milestone, if the run was started for one.
    *plan_digests* has the SHA-256 of each PLAN that the run wrote, by path; *edited_plans* were changed by
    hand since. *notes* are those of a closed run. *skipped* are phases. *stop_asked* ends the run now,
    *pause_asked* after the step in progress. *aborted* is the step at which a
    human chose to abort. *asked* are steps that the user asked for and that are not done, with the user's
    words; *answered* are those done since the run was opened, *requested* those that this process was asked
    for. *queued* are the steps that wait because the run may have no more agents. *lifecycle* are the options
    of the last process that did more than such steps, ``None`` if none has, and *closed_before* is how the
    last of them before this one left the run. *asked_end* is how the last process ended that did only such
    steps, ``None`` if the lifecycle continued since. *seq* is the last fact that was folded.
    """

    run: str = ""
    epoch: int = 0
    idea: str = ""
    idea_name: str = ""
    started_at: datetime | None = None
    last_at: datetime | None = None
    closed: RunOutcome | None = None
    exit: int = 0
    reason: str = ""
    options: Options = attrs.field(factory=Options)
    seen: Snapshot | None = None
    steps: Mapping[str, StepRecord] = attrs.field(factory=dict[str, StepRecord])
    inquiries: Mapping[str, QuestionRecord] = attrs.field(factory=dict[str, QuestionRecord])
    allowances: Mapping[str, Allowance] = attrs.field(factory=dict[str, Allowance])
    verified: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    claims: Claims | None = None
    journal_lost: bool = False
    milestone: str = ""
    plan_digests: Mapping[str, str] = attrs.field(factory=dict[str, str])
    edited_plans: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    aborted: str = ""
    stop_asked: bool = False
    pause_asked: bool = False
    asked: Mapping[str, str] = attrs.field(factory=dict[str, str])
    answered: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()
    queued: Mapping[str, Queued] = attrs.field(factory=dict[str, Queued])
    lifecycle: Options | None = None
    closed_before: Closing | None = None
    asked_end: Closing | None = None
    seq: int = 0

    @property
    def unfinished(self) -> bool:
        """Whether the lifecycle was begun and is not done; steps that were asked for are no part of it."""
        if self.lifecycle is None:
            return False
        if self.closed is None and self.options.only_asked and self.closed_before:
            return self.closed_before.outcome != "done"
        return self.closed != "done"

    @property
    def phases(self) -> tuple[PhaseSnapshot, ...]:
        """The phases in the last snapshot; none if there is no snapshot yet."""
        return self.seen.phases if self.seen else ()

    def phase(self, number: str) -> PhaseSnapshot | None:
        """Return the phase with that number in the last snapshot."""
        return self.seen.phase(number) if self.seen else None

    def of(self, kind: str, phase: str) -> tuple[StepRecord, ...]:
        """Return the records of a phase's steps of one kind, by round."""
        found = [r for r in self.steps.values() if r.id.kind == kind and r.id.phase == phase]
        return tuple(sorted(found, key=lambda record: (record.id.round, record.id.detail)))


def gap_rounds(state: State, phase: str) -> tuple[StepRecord, ...]:
    """Return the completed steps that planned gaps of a phase."""
    return tuple(r for r in state.of("plan", phase) if r.for_gaps and r.completed)


def assumed_checks(state: State) -> tuple[tuple[str, Question], ...]:
    """Return the questions to look at something that a policy answered, each with the step that asked it."""
    records = [record for record in state.inquiries.values() if not record.withdrawn]
    answered = [(r, q) for r in records for q in r.inquiry.questions if q.inspection and q.id in r.answers]
    return tuple((r.inquiry.step, q) for r, q in answered if r.answers[q.id].is_assumption)


def inquiry_key(inquiry: Inquiry) -> str:
    """Return the key of an inquiry: the ids of its questions."""
    return " ".join(question.id for question in inquiry.questions)
