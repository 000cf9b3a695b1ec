"""The machine's state: what the journal's facts say, folded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from gsd_core.model.ids import StepId, StepKind
from gsd_core.model.question import Answer, Inquiry

StepStatus: TypeAlias = Literal["running", "parked", "waiting", "result", "completed", "failed", "skipped"]
RunOutcome: TypeAlias = Literal["done", "failed", "blocked", "stopped", "gaps", "budget"]
LOST_IN_A_ROW = 3
"""So many attempts lost, with nothing done between, and a human is asked."""


class Fact(Protocol):
    """A fact as the journal keeps it."""

    @property
    def seq(self) -> int: ...
    @property
    def run(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


@frozen(kw_only=True)
class PlanSnapshot:
    """A plan as it lies on disk; one that ROADMAP lists and that is missing is not *on_disk*."""

    id: str
    on_disk: bool = True
    summary: bool = False
    depends_on: tuple[str, ...] = ()
    wave: int = 1


@frozen(kw_only=True)
class PhaseSnapshot:
    """A phase as it lies on disk; *gaps* are the keys of those in its verdict."""

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


@frozen(kw_only=True)
class Snapshot:
    """What the disk says: the digest of ``.planning/`` that lies in ``project.observed``."""

    milestone: str = ""
    phases: tuple[PhaseSnapshot, ...] = ()

    def phase(self, number: str) -> PhaseSnapshot | None:
        """Return the phase with that number."""
        return next((phase for phase in self.phases if phase.number == number), None)


@frozen(kw_only=True)
class Options:
    """What the user asked of this process: *phases* in range (``None``: all), and what to leave out."""

    phases: tuple[str, ...] | None = None
    skip_verify: bool = False
    skip_discuss: bool = False
    gap_rounds: int = 3


@frozen(kw_only=True)
class Failure:
    """Why an attempt failed: the error's class, its text, the way out, and when to try again."""

    kind: str
    message: str
    hint: str = ""
    until: datetime | None = None


@frozen(kw_only=True)
class StepRecord:
    """What is known of one step.

    *epoch* is that of the process that owns the running attempt. *generation* counts the times
    that the step began afresh (after a failure, a skip, or because its work was undone): recorded
    agent calls of an earlier generation are not used again. *base* is where *generation* began (seq).
    *lost* counts lost attempts in a row. *gaps* are what a verify step found, *failed_detectors*
    why that is not all; *for_gaps*: a plan step that plans gaps.
    """

    id: StepId
    status: StepStatus
    attempt: int = 0
    epoch: int = 0
    generation: int = 0
    base: int = 0
    completed: int = 0
    lost: int = 0
    effect: str = "reenter"
    failure: Failure | None = None
    until: datetime | None = None
    result: int = 0
    gaps: tuple[str, ...] = ()
    failed_detectors: tuple[str, ...] = ()
    for_gaps: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    base_commit: str = ""
    dirty_before: tuple[str, ...] = ()


@frozen(kw_only=True)
class QuestionRecord:
    """An inquiry that was asked; *answers* by question id, as far as they are there."""

    inquiry: Inquiry
    key: str = ""
    at: datetime
    answers: Mapping[str, Answer] = field(factory=dict[str, Answer])
    withdrawn: bool = False

    @property
    def open(self) -> bool:
        """Something of it is still unanswered."""
        return not self.withdrawn and any(q.id not in self.answers for q in self.inquiry.questions)


@frozen(kw_only=True)
class Allowance:
    """What a human allowed a phase beyond the limits: so many gap rounds and verifications in all."""

    rounds: int = 0
    verifications: int = 0


@frozen(kw_only=True)
class State:
    """Everything that decides what is due. Maps are never changed in place.

    *inquiries* by the ids of their questions, joined. *grants*: what a human allowed beyond the limits.
    *verified*: for each phase the plans whose SUMMARY was there when it was verified last.
    """

    run: str = ""
    epoch: int = 0
    idea: str = ""
    idea_name: str = ""
    started_at: datetime | None = None
    opened_at: datetime | None = None
    last_at: datetime | None = None
    closed: RunOutcome | None = None
    exit: int = 0
    reason: str = ""
    options: Options = field(factory=Options)
    seen: Snapshot | None = None
    steps: Mapping[str, StepRecord] = field(factory=dict[str, StepRecord])
    inquiries: Mapping[str, QuestionRecord] = field(factory=dict[str, QuestionRecord])
    grants: Mapping[str, Allowance] = field(factory=dict[str, "Allowance"])
    verified: Mapping[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])
    skipped: tuple[str, ...] = ()
    aborted: str = ""
    stop_asked: bool = False
    seq: int = 0

    def of(self, kind: StepKind, phase: str) -> tuple[StepRecord, ...]:
        """Return the records of the steps of that kind in a phase, by round."""
        found = [r for r in self.steps.values() if r.id.kind == kind and r.id.phase == phase]
        return tuple(sorted(found, key=lambda record: (record.id.round, record.id.detail)))


def gap_rounds(state: State, phase: str) -> tuple[StepRecord, ...]:
    """Return the steps that planned gaps of a phase and are done."""
    return tuple(r for r in state.of("plan", phase) if r.for_gaps and r.completed)


def inquiry_key(inquiry: Inquiry) -> str:
    """Return what an inquiry is known by: the ids of its questions."""
    return " ".join(question.id for question in inquiry.questions)
