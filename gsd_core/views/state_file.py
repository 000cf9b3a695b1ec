"""``autopilot-state.json``: the run for tools that watch a file; a projection, never read back."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from gsd_core.ids import StepId
from gsd_core.machine.state import State, StepRecord

from .history import ErrorSeen, History, phase_of
from .phases import PhaseRow, percent, phase_rows
from .status import SCHEMA_VERSION, current_step, moment, open_questions, phase_json, question_json

FileStatus: TypeAlias = Literal["idle", "running", "waiting_for_human", "error", "complete"]
ERRORS = 50
MESSAGE = 500


def state_file(state: State, history: History) -> dict[str, Any]:
    """Return the file's content; its shape is documented in the reference of files."""
    rows = phase_rows(state)
    current = current_step(state)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": state.run or None,
        "status": file_status(state),
        "current_phase": _current_phase(rows, current),
        "current_step": str(current.id) if current else None,
        "progress": percent(rows),
        "phases": [{**phase_json(row), "commits": list(history.commits.get(row.number, ()))} for row in rows],
        "pending_questions": [question_json(asked) for asked in open_questions(state)],
        "error_history": [_error(error) for error in history.errors[-ERRORS:]],
        "started_at": moment(state.started_at),
        "last_updated_at": moment(_last(state)),
    }


def file_status(state: State) -> FileStatus:
    """Return the run's state in one of the file's five words."""
    if state.closed == "done":
        return "complete"
    if state.run and open_questions(state):
        return "waiting_for_human"
    if state.closed in ("failed", "blocked", "gaps", "budget"):
        return "error"
    return "running" if state.run and state.closed is None else "idle"


def _current_phase(rows: tuple[PhaseRow, ...], current: StepRecord | None) -> str | None:
    if current and current.id.phase:
        return current.id.phase
    begun = [row.number for row in rows if row.status == "in_progress"]
    return begun[0] if begun else None


def _error(error: ErrorSeen) -> dict[str, Any]:
    return {
        "at": moment(error.at),
        "phase": phase_of(error.step) or None,
        "step": _kind(error.step),
        "kind": error.failure.kind,
        "message": error.failure.message[:MESSAGE],
        "hint": error.failure.hint,
    }


def _kind(step: str) -> str | None:
    try:
        return StepId.parse(step).kind
    except ValueError:
        return None


def _last(state: State) -> datetime | None:
    return state.last_at or state.started_at
