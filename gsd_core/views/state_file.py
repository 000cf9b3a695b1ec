"""``autopilot-state.json``: the run for tools that watch a file; a projection, never read back.

What a run leaves in ``.planning/autopilot/`` for tools that watch files; never read back.

``autopilot-state.json`` says where the run stands, ``log/PHASE-STEP.jsonl`` what each step did.
The folder ignores itself in git.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import define, field

from gsd_core.journal.codec import structure
from gsd_core.journal.schema import ACTIVITY, Record
from gsd_core.machine.state import State, StepRecord
from gsd_core.model.ids import StepId

from .log import log_line
from .phases import PhaseRow, percent, phase_rows
from .status import (
    SCHEMA_VERSION,
    ErrorSeen,
    History,
    current_step,
    moment,
    open_questions,
    phase_json,
    phase_of,
    question_json,
    tell,
)

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


FOLDER = Path(".planning") / "autopilot"
_ERRORS = frozenset({"attempt.failed", "step.failed", "plugin.failed"})

log = logging.getLogger(__name__)


@define
class Projection:
    """Called with each fact and activity of a run; *history* is what came before this process.

    A folder that cannot be written is said once: a run does not depend on it.
    """

    root: Path
    history: History = field(factory=History)
    _broken: bool = field(default=False, init=False)

    def __call__(self, state: State, record: Record) -> None:
        """Take in a record."""
        if self._broken:
            return
        try:
            self._take(state, record)
        except OSError as error:
            self._broken = True
            log.warning("cannot write %s: %s", self.root / FOLDER, error)

    def _take(self, state: State, record: Record) -> None:
        folder = self.root / FOLDER
        if record.step:
            _append(_made(folder / "log") / f"{_name(record.step)}.jsonl", _line(record))
        if record.kind in ACTIVITY:
            return
        self.history = History() if record.kind == "run.started" else self.history
        self.history = tell(self.history, [record], structure)
        _replace(_made(folder) / "autopilot-state.json", state_file(state, self.history))


def _made(folder: Path) -> Path:
    if not folder.exists():
        folder.mkdir(parents=True)
        top = folder if folder.name == FOLDER.name else folder.parent
        (top / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


def _name(step: str) -> str:
    """Return a log's name: ``2.1-execute-02.1-03``."""
    return step.replace("/", "-")


def _line(record: Record) -> dict[str, Any]:
    step = StepId.parse(record.step)
    return {
        "timestamp": record.at.isoformat(),
        "level": "error" if record.kind in _ERRORS else "debug" if record.kind in ACTIVITY else "info",
        "component": "agent" if record.kind.startswith("agent.") else "core",
        "message": log_line(record),
        "phase": step.phase or None,
        "step": step.kind,
        "meta": {"seq": record.seq, "kind": record.kind, "attempt": record.attempt or None},
    }


def _append(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=True) + "\n")


def _replace(path: Path, content: Mapping[str, Any]) -> None:
    """Write a whole file, so that a reader sees the old one or the new one."""
    new = path.with_suffix(".tmp")
    new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    new.replace(path)
