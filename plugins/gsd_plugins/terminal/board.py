"""What the live view shows, folded from events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from gsd_core import Event
from gsd_core.planning.model import PhaseView

PhaseState: TypeAlias = Literal["pending", "in_progress", "completed", "skipped"]
Data: TypeAlias = Mapping[str, Any]


@frozen(kw_only=True)
class PhaseLine:
    """One phase of the roadmap."""

    number: str
    name: str = ""
    state: PhaseState = "pending"


@frozen(kw_only=True)
class Board:
    """A run at a glance; *questions* are the open ones, their texts by id; *dollars* as far as known."""

    phases: Mapping[str, PhaseLine] = field(factory=dict[str, PhaseLine])
    step: str = ""
    since: datetime | None = None
    activity: str = ""
    dollars: Decimal | None = None
    tokens: int = 0
    calls: int = 0
    questions: Mapping[str, str] = field(factory=dict[str, str])


def after(board: Board, event: Event) -> Board:
    """Return *board* after *event*."""
    change = _CHANGES.get(event.name)
    return change(board, event) if change else board


def with_roadmap(board: Board, phases: Iterable[PhaseView]) -> Board:
    """Return *board* with the phases of the roadmap; what is known of them from events stays."""
    listed = {phase.number: _listed(board, phase) for phase in phases}
    return evolve(board, phases={**listed, **{n: p for n, p in board.phases.items() if n not in listed}})


def _listed(board: Board, phase: PhaseView) -> PhaseLine:
    state: PhaseState = "completed" if phase.ticked else "pending"
    known = board.phases.get(phase.number)
    return PhaseLine(number=phase.number, name=phase.name, state=known.state if known else state)


def _phase(state: PhaseState) -> Callable[[Board, Event], Board]:
    def change(board: Board, event: Event) -> Board:
        number = str(event.data["number"])
        known = board.phases.get(number, PhaseLine(number=number))
        line = evolve(known, name=str(event.data.get("name") or known.name), state=state)
        return evolve(board, phases={**board.phases, number: line})

    return change


def _step_started(board: Board, event: Event) -> Board:
    return evolve(board, step=event.step, since=event.at, activity="")


def _step_ended(board: Board, event: Event) -> Board:
    return evolve(board, step="", since=None, activity="") if event.step == board.step else board


def _activity(board: Board, event: Event) -> Board:
    said = " ".join(str(event.data.get(key) or "") for key in ("tool", "text")).strip()
    return evolve(board, activity=said or board.activity)


def _cost(board: Board, event: Event) -> Board:
    dollars = event.data.get("dollars")
    spent = board.dollars if dollars is None else (board.dollars or Decimal(0)) + Decimal(str(dollars))
    return evolve(
        board,
        dollars=spent,
        tokens=board.tokens + int(event.data.get("tokens") or 0),
        calls=board.calls + int(event.data.get("calls") or 0),
    )


def _asked(board: Board, event: Event) -> Board:
    questions: Iterable[Data] = event.data["inquiry"]["questions"]
    asked = {str(q["id"]): str(q.get("header") or q["text"]) for q in questions}
    return evolve(board, questions={**board.questions, **asked})


def _answered(board: Board, event: Event) -> Board:
    left = {key: text for key, text in board.questions.items() if key != event.data["question"]}
    return evolve(board, questions=left)


_CHANGES: dict[str, Callable[[Board, Event], Board]] = {
    "phase.started": _phase("in_progress"),
    "phase.completed": _phase("completed"),
    "phase.skipped": _phase("skipped"),
    "step.started": _step_started,
    "step.completed": _step_ended,
    "step.failed": _step_ended,
    "step.skipped": _step_ended,
    "agent.activity": _activity,
    "cost.changed": _cost,
    "question.asked": _asked,
    "question.answered": _answered,
}
