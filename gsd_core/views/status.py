"""What the facts tell beside the machine's state: commits, errors, money, and who worked.

Where a run stands: what ``gsd status`` and ``gsd questions`` show, and their JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from gsd_core.machine.due import Wait, due
from gsd_core.machine.state import Fact, Failure, QuestionRecord, RunOutcome, State, StepRecord
from gsd_core.model.ids import StepId
from gsd_core.model.question import Asked, Question
from gsd_core.model.usage import Usage

from .phases import PhaseRow, percent, phase_rows

Structure: TypeAlias = Callable[[Any, type[Any]], Any]


@frozen(kw_only=True)
class ErrorSeen:
    """An attempt or a step that failed, and why."""

    at: datetime
    step: str
    failure: Failure


@frozen(kw_only=True)
class History:
    """What was done so far; *commits* by phase, those without a phase under ``""``, oldest first.

    *typed* are the settings of the command line that the run goes on with, by section.
    """

    run: str = ""
    agents: tuple[str, ...] = ()
    version: str = ""
    pid: int = 0
    typed: Mapping[str, Mapping[str, Any]] = field(factory=dict[str, Mapping[str, Any]])
    usage: Usage = field(factory=Usage)
    calls: int = 0
    commits: Mapping[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])
    errors: tuple[ErrorSeen, ...] = ()


def tell(history: History, facts: Iterable[Fact], structure: Structure) -> History:
    """Return *history* after *facts*; those of another run than the first one's are passed over."""
    for fact in facts:
        handler = _HANDLERS.get(fact.kind)
        if handler and (not history.run or fact.run == history.run):
            history = evolve(handler(history, fact, structure), run=fact.run)
    return history


def phase_of(step: str) -> str:
    """Return the phase that a step's id names; empty if it names none or is none."""
    try:
        return StepId.parse(step).phase
    except ValueError:
        return ""


def _opened(history: History, fact: Fact, _: Structure) -> History:
    said = fact.data
    return evolve(
        history,
        pid=said.get("pid") or 0,
        version=said.get("version") or "",
        agents=tuple(said.get("agent") or ()),
        typed=said.get("typed") or history.typed,
    )


def _agent_closed(history: History, fact: Fact, structure: Structure) -> History:
    used = fact.data.get("usage")
    usage = history.usage + structure(used, Usage) if used else history.usage
    return evolve(history, usage=usage, calls=history.calls + 1)


def _committed(history: History, fact: Fact, _: Structure) -> History:
    commit = fact.data.get("commit") or ""
    phase = phase_of(fact.step)
    known = history.commits.get(phase, ())
    if not commit or commit in known:
        return history
    return evolve(history, commits={**history.commits, phase: (*known, commit)})


def _failed(history: History, fact: Fact, structure: Structure) -> History:
    error = ErrorSeen(at=fact.at, step=fact.step, failure=structure(fact.data["error"], Failure))
    return evolve(history, errors=(*history.errors, error))


_HANDLERS: dict[str, Callable[[History, Fact, Structure], History]] = {
    "run.opened": _opened,
    "agent.closed": _agent_closed,
    "task.committed": _committed,
    "step.completed": _committed,
    "attempt.failed": _failed,
    "step.failed": _failed,
}

SCHEMA_VERSION = 1
Standing: TypeAlias = Literal["none", "running", "interrupted"] | RunOutcome


@frozen(kw_only=True)
class Holder:
    """The process that runs on the project now."""

    pid: int
    host: str
    since: str = ""


@frozen(kw_only=True)
class Status:
    """A run at a glance.

    *waits_for* says in words what has to happen next, empty if nothing has to. *given* are the
    questions whose answers lie in the inbox: no run has taken them yet.
    """

    run: str = ""
    standing: Standing = "none"
    idea: str = ""
    agent: str = ""
    exit: int | None = None
    reason: str = ""
    started_at: datetime | None = None
    last_at: datetime | None = None
    holder: Holder | None = None
    phases: tuple[PhaseRow, ...] = ()
    current: StepRecord | None = None
    questions: tuple[Asked, ...] = ()
    given: frozenset[str] = frozenset()
    usage: Usage = field(factory=Usage)
    calls: int = 0
    waits_for: str = ""


def status_of(
    state: State, history: History, holder: Holder | None, given: frozenset[str] = frozenset()
) -> Status:
    """Return where the run of *state* stands; *holder* is the process that has the project's lock."""
    if not state.run:
        return Status(holder=holder)
    standing = state.closed or ("running" if holder else "interrupted")
    questions = open_questions(state)
    return Status(
        run=state.run,
        standing=standing,
        idea=state.idea_name,
        agent=", ".join(history.agents),
        exit=None if state.closed is None else state.exit,
        reason=state.reason,
        started_at=state.started_at,
        last_at=state.last_at,
        holder=holder,
        phases=phase_rows(state),
        current=current_step(state),
        questions=questions,
        given=given,
        usage=history.usage,
        calls=history.calls,
        waits_for=_waits_for(state, standing, [q for q in questions if q.question.id not in given]),
    )


def current_step(state: State) -> StepRecord | None:
    """Return the step that is being worked on; of several the one that began last."""
    busy = [r for r in state.steps.values() if r.status in ("running", "parked", "waiting", "result")]
    order = {"waiting": 0, "parked": 1, "result": 2, "running": 3}
    return max(busy, key=lambda record: order[record.status], default=None)


def open_questions(state: State) -> tuple[Asked, ...]:
    """Return the questions without an answer, in the order in which they were asked."""
    asked = [a for record in state.inquiries.values() if record.open for a in _asked(record)]
    return tuple(asked)


def find_question(state: State, question: str) -> tuple[QuestionRecord, Question] | None:
    """Return the question with that id, answered or not, with the record of its inquiry."""
    for record in reversed(list(state.inquiries.values())):
        for candidate in record.inquiry.questions:
            if candidate.id == question:
                return record, candidate
    return None


def answer_command(question: Question) -> str:
    """Return the command line that answers *question*, with a place for the words."""
    return f"gsd answer {question.id} {'CHOICE' if question.options else 'TEXT'}"


def _asked(record: QuestionRecord) -> Iterator[Asked]:
    for question in record.inquiry.questions:
        if question.id not in record.answers:
            yield Asked(
                question=question,
                kind=record.inquiry.kind,
                step=record.inquiry.step,
                reason=record.inquiry.reason,
                at=record.at,
                occasion=record.key,
            )


def _waits_for(state: State, standing: Standing, questions: Sequence[Asked]) -> str:
    if standing != "done" and (ids := [asked.question.id for asked in questions]):
        more = f" (and {len(ids) - 1} more)" if len(ids) > 1 else ""
        return f"an answer to {ids[0]}{more}"
    if standing == "interrupted":
        return "gsd resume"
    if standing != "running":
        return "" if standing == "done" else "gsd resume"
    timers = [work.until for work in due(state) if isinstance(work, Wait)]
    step = current_step(state)
    if timers and (step is None or step.status == "waiting"):
        return f"{min(timers).isoformat(timespec='seconds')}"
    return str(step.id) if step else ""


def status_json(status: Status) -> dict[str, Any]:
    """Return *status* as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": status.run or None,
        "status": status.standing,
        "idea": status.idea or None,
        "agent": status.agent or None,
        "exit": status.exit,
        "reason": status.reason,
        "started_at": moment(status.started_at),
        "last_at": moment(status.last_at),
        "waits_for": status.waits_for or None,
        "owner": _holder_json(status.holder),
        "progress": percent(status.phases),
        "current_step": _step_json(status.current),
        "phases": [phase_json(row) for row in status.phases],
        "questions": [question_json(asked, status.given) for asked in status.questions],
        "cost": cost_json(status.usage, status.calls),
    }


def moment(time: datetime | None) -> str | None:
    """Return a time as JSON data."""
    return time.isoformat() if time else None


def phase_json(row: PhaseRow) -> dict[str, Any]:
    """Return a phase as JSON data."""
    return {
        "number": row.number,
        "name": row.name,
        "status": row.status,
        "steps": dict(row.steps),
        "plans": {"total": row.plans, "done": row.plans_done},
        "gap_rounds": row.gap_rounds,
        "in_range": row.wanted,
        "started_at": moment(row.started_at),
        "completed_at": moment(row.completed_at),
    }


def question_json(asked: Asked, given: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return an open question as JSON data, with the command that answers it.

    *answer_given*: its answer is among *given*, and waits for a run to take it.
    """
    question = asked.question
    return {
        "id": question.id,
        "kind": asked.kind,
        "step": asked.step,
        "header": question.header,
        "text": question.text,
        "reason": asked.reason,
        "options": [
            {"number": number, "label": o.label, "description": o.description, "recommended": o.recommended}
            for number, o in enumerate(question.options, 1)
        ],
        "multiple": question.multiple,
        "free_text": question.free_text,
        "human_only": question.human_only,
        "asked_at": moment(asked.at),
        "answer_given": question.id in given,
        "answer_with": answer_command(question),
    }


def cost_json(usage: Usage, calls: int) -> Mapping[str, Any]:
    """Return what was used as JSON data; *dollars* is text, or null if nobody knows."""
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    dollars = None if usage.dollars is None else str(usage.dollars)
    return {"dollars": dollars, "tokens": tokens, "calls": calls, "basis": usage.basis}


def _holder_json(holder: Holder | None) -> dict[str, Any] | None:
    if holder is None:
        return None
    return {"pid": holder.pid, "host": holder.host, "since": holder.since}


def _step_json(record: StepRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "id": str(record.id),
        "kind": record.id.kind,
        "phase": record.id.phase or None,
        "status": record.status,
        "attempt": record.attempt,
        "started_at": moment(record.started_at),
        "until": moment(record.until),
    }
