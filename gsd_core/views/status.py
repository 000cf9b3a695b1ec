"""The state of a run as ``gsd status`` and ``gsd questions`` show it, and as JSON.

A pure function of the journal's facts: the machine's state says what is due, the history what was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.journal.lock import Owner
from gsd_core.machine.claims import claims_at_opening
from gsd_core.machine.due import Wait, due
from gsd_core.machine.history import FailingService, History, limits_of
from gsd_core.machine.obsolete import why_obsolete
from gsd_core.machine.state import (
    Closing,
    QuestionRecord,
    RunOutcome,
    Snapshot,
    State,
    StepRecord,
    assumed_checks,
)
from gsd_core.model.question import Asked, Option, Question, answer_command
from gsd_core.model.usage import Usage
from gsd_core.planning.survey import Measure
from gsd_core.serializer import FLAG, NUMBER, SCHEMA_VERSION, TEXT, TIME, Serializer, arr, null, obj

from .phases import PLAN_COUNTS, PhaseRow, measure_of_snapshot, phase_rows

RunStatus: TypeAlias = Literal["none", "running", "interrupted"] | RunOutcome

RESUME = "gsd resume"
NO_ANSWERS: Mapping[str, str] = {}


@attrs.frozen(kw_only=True)
class Status:
    """A run at a glance.

    *run_status* is that of the lifecycle; it is ``none`` if only single steps were asked for so far, the last
    of which ended as *single* says. *active* are the steps that have begun and not ended, *current* the
    furthest of them; those that wait for an answer are ``parked``. *interrupted*: the process that worked on
    them is gone. *measure* is how far the milestone is; if none is in progress, *idle* says why. *waits_for*
    is what has to happen next; empty if nothing. *sandbox* is the one that the last process used; if empty,
    *unconfined* says why. *assumed* are the checks that a person had to do and a policy answered, each with
    its step. *not_notified* are the services that the last notification to them did not reach.
    *pending_answers* are the answers that no run has taken yet, in words, by question. *branch* is the one
    that the last process worked on. *budget* is what the run may cost in dollars, if a flag said so.
    """

    run: str = ""
    run_status: RunStatus = "none"
    idea: str = ""
    agent: str = ""
    sandbox: str = ""
    unconfined: str = ""
    branch: str = ""
    exit: int | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    started_at: datetime | None = None
    last_at: datetime | None = None
    holder: Owner | None = None
    single: Closing | None = None
    measure: Measure = attrs.field(factory=Measure)
    idle: str = ""
    phases: tuple[PhaseRow, ...] = ()
    current: StepRecord | None = None
    active: tuple[StepRecord, ...] = ()
    interrupted: bool = False
    questions: tuple[Asked, ...] = ()
    pending_answers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    usage: Usage = attrs.field(factory=Usage)
    calls: int = 0
    budget: Decimal | None = None
    waits_for: str = ""
    assumed: tuple[tuple[str, Question], ...] = ()
    not_notified: tuple[FailingService, ...] = ()


def status_of(
    state: State,
    history: History,
    holder: Owner | None,
    pending_answers: Mapping[str, str] = NO_ANSWERS,
    *,
    snapshot: Snapshot | None = None,
    measure: Measure | None = None,
) -> Status:
    """Return the status of the run in *state*; *holder* is the process that has the project's lock.

    *snapshot* and *measure* are those of the files as they are now; by default what the run saw last counts.
    """
    if snapshot:
        # A process that works has its own view of what it may believe; the next one would look again.
        works = holder is not None and state.closed is None
        claims = state.claims if works else claims_at_opening(state, snapshot, interrupted=False)
        state = attrs.evolve(state, seen=snapshot, claims=claims)
    seen = state.seen or Snapshot()
    about_phases: dict[str, Any] = {
        "holder": holder,
        "phases": phase_rows(state),
        "measure": measure or measure_of_snapshot(seen),
        "idle": seen.idle,
    }
    if not state.run:
        return Status(**about_phases)
    run_status: RunStatus = state.closed or ("running" if holder else "interrupted")
    if state.closed and state.lifecycle is None:
        run_status = "none"
    questions = open_questions(state)
    unanswered = [asked for asked in questions if asked.question.id not in pending_answers]
    return Status(
        run=state.run,
        run_status=run_status,
        idea=state.idea_name,
        agent=", ".join(history.agents),
        sandbox=history.sandbox,
        unconfined=history.unconfined,
        branch=history.chosen or history.branch or "",
        exit=None if state.closed is None or run_status == "none" else state.exit,
        reason=state.reason,
        notes=state.notes,
        started_at=state.started_at,
        last_at=state.last_at,
        single=state.asked_end,
        **about_phases,
        current=current_step(state),
        active=active_steps(state),
        interrupted=holder is None,
        questions=questions,
        pending_answers=pending_answers,
        usage=sum(history.running.values(), history.usage),
        calls=history.calls + len(history.running),
        budget=limits_of(history).get("--max-budget-usd"),
        waits_for=_waits_for(state, run_status, unanswered),
        assumed=assumed_checks(state),
        not_notified=tuple(history.failing.values()),
    )


def step_status(record: StepRecord, *, interrupted: bool) -> str:
    """Return the status of a step; if its process is gone (*interrupted*), none is ``running``."""
    return "interrupted" if interrupted and record.status == "running" else record.status


def current_step(state: State) -> StepRecord | None:
    """Return the step in progress; of several the one that is furthest from waiting."""
    return max(active_steps(state), key=lambda record: _PROGRESS[record.status], default=None)


def active_steps(state: State, *, interrupted: bool = False) -> tuple[StepRecord, ...]:
    """Return the steps that have begun and not ended, in the order in which they began.

    One that waits for an answer is ``parked``, even while its agent is kept for a quick one; not if the
    process is gone (*interrupted*).
    """
    asked = () if interrupted else {one.step for one in open_questions(state)}
    return tuple(
        attrs.evolve(record, status="parked") if record.status == "running" and step in asked else record
        for step, record in state.steps.items()
        if record.status in _PROGRESS and not why_obsolete(state, step)
    )


_PROGRESS = {"waiting": 0, "parked": 1, "result": 2, "running": 3}
"""How far a step is from waiting, for those that have begun and not ended."""


def open_questions(state: State) -> tuple[Asked, ...]:
    """Return the questions without an answer, oldest first; without those that need none any more."""
    return tuple(
        Asked(
            question=question,
            kind=record.inquiry.kind,
            step=record.inquiry.step,
            reason=record.inquiry.reason,
            at=record.at,
            occasion=record.key,
        )
        for record in state.inquiries.values()
        if record.open and not why_obsolete(state, record.inquiry.step)
        for question in record.inquiry.questions
        if question.id not in record.answers
    )


def find_question(state: State, question_id: str) -> tuple[QuestionRecord, Question] | None:
    """Return a question, answered or not, with the record of its inquiry."""
    for record in reversed(list(state.inquiries.values())):
        for question in record.inquiry.questions:
            if question.id == question_id:
                return record, question
    return None


def _waits_for(state: State, run_status: RunStatus, unanswered: Sequence[Asked]) -> str:
    working = [str(one.id) for one in active_steps(state) if one.status in ("running", "result")]
    if unanswered:
        more = f" (and {len(unanswered) - 1} more)" if len(unanswered) > 1 else ""
        answer = f"an answer to {unanswered[0].question.id}{more}"
        return ", ".join([answer, *(working if run_status == "running" else ())])
    if run_status in ("done", "none"):
        return ""
    if run_status != "running":
        return RESUME
    timers = [work.until for work in due(state) if isinstance(work, Wait)]
    step = current_step(state)
    if timers and (step is None or step.status == "waiting"):
        return min(timers).isoformat(timespec="seconds")
    return ", ".join(working) or (str(step.id) if step else "")


def status_json(status: Status, gsd: str = "gsd") -> dict[str, Any]:
    """Return *status* as JSON data; *gsd* is how to call gsd for the project."""
    steps = [step_json(one, interrupted=status.interrupted) for one in status.active]
    current = step_json(status.current, interrupted=status.interrupted) if status.current else None
    questions = [question_json(asked, status.pending_answers, gsd) for asked in status.questions]
    data = STATUS.dump(status, current_step=current, steps_in_progress=steps, questions=questions)
    return {"schema_version": SCHEMA_VERSION, **data}


def time_json(time: datetime | None) -> str | None:
    """Return a time as JSON data."""
    return time.isoformat() if time else None


def question_json(
    asked: Asked, pending_answers: Mapping[str, str] = NO_ANSWERS, gsd: str = "gsd"
) -> dict[str, Any]:
    """Return an open question as JSON data, with the command that answers it.

    ``answer_given``: it is in *pending_answers*, so the next run takes the answer, which is ``answer``. *gsd*
    is how to call gsd for the project, such as ``gsd -C DIR``.
    """
    question = asked.question
    return QUESTION.dump(
        asked,
        options=[{"number": number, **OPTION.dump(one)} for number, one in enumerate(question.options, 1)],
        answer_given=question.id in pending_answers,
        answer=pending_answers.get(question.id),
        answer_with=answer_command(question, gsd),
    )


def step_json(record: StepRecord, *, interrupted: bool) -> dict[str, Any]:
    """Return a step that has begun as JSON data; *interrupted*: no process works on it."""
    return STEP.dump(record, status=step_status(record, interrupted=interrupted))


COUNTS = obj(total=NUMBER, done=NUMBER)
OPTION = Serializer(Option, "label description recommended")
QUESTION = Serializer(
    Asked,
    "id=question.id kind step header=question.header text=question.text reason options "
    "multiple=question.multiple free_text=question.free_text human_only=question.human_only "
    "inspection=question.inspection asked_at=at answer_given answer answer_with",
    kind=TEXT,
    options=arr(obj(number=NUMBER, **OPTION.schema["properties"])),
    answer_given=FLAG,
    answer=null(TEXT),
    answer_with=TEXT,
)
STEP = Serializer(
    StepRecord,
    "id kind=id.kind phase=id.phase? status attempt started_at until",
    id=(TEXT, lambda record: str(record.id)),
    kind=TEXT,
    status=TEXT,
)
PHASE_ROW = Serializer(
    PhaseRow,
    "number name status steps plans gap_rounds in_range=wanted started_at completed_at",
    plans=(COUNTS, lambda row: {"total": row.plans, "done": row.plans_done}),
)
SPENT = Serializer(Status, "dollars=usage.dollars tokens=usage.tokens calls basis=usage.basis", basis=TEXT)
CONFINED = Serializer(Status, "name=sandbox? why=unconfined")
STATUS = Serializer(
    Status,
    "run? status=run_status idea? agent? sandbox branch? exit reason notes started_at last_at waits_for? "
    "owner=holder progress=measure.percent percent=measure.percent plans=measure phases_total=measure.phases "
    "phases_complete=measure.complete idle? single_steps=single current_step steps_in_progress phases "
    "assumed not_notified questions cost budget",
    sandbox=(CONFINED.schema, CONFINED.dump),
    owner=Serializer(Owner, "pid host since"),
    plans=PLAN_COUNTS,
    single_steps=Serializer(Closing, "outcome exit reason"),
    current_step=null(STEP.schema),
    steps_in_progress=arr(STEP.schema),
    phases=PHASE_ROW,
    assumed=(
        obj(count=NUMBER, checks=arr(obj(id=TEXT, step=TEXT, text=TEXT))),
        lambda status: {
            "count": len(status.assumed),
            "checks": [{"id": one.id, "step": step, "text": one.text} for step, one in status.assumed],
        },
    ),
    not_notified=Serializer(FailingService, "service reason since count", since=null(TIME)),
    questions=arr(QUESTION.schema),
    cost=(SPENT.schema, SPENT.dump),
)
