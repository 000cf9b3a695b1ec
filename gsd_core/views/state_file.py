"""The files in ``.planning/autopilot/`` for tools that watch a run. gsd never reads them back.

``autopilot-state.json`` has the state of the run, ``log/PHASE-STEP.jsonl`` the records of each step. The
folder has a ``.gitignore`` for itself.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.files import append_below, make_folder, write_below
from gsd_core.journal.schema import ACTIVITY
from gsd_core.machine.facts import Record
from gsd_core.machine.history import FailureRecord, History, fold_history, phase_of
from gsd_core.machine.state import State
from gsd_core.model.ids import StepId
from gsd_core.sanitize import safe_data
from gsd_core.serializer import SCHEMA_VERSION

from .phases import measure_of_snapshot, phase_rows
from .status import PHASE_ROW, current_step, open_questions, question_json, time_json
from .story import Entry, Narrator

FileStatus: TypeAlias = Literal["idle", "running", "waiting_for_human", "error", "complete"]

FOLDER = Path(".planning") / "autopilot"
MAX_LOG_BYTES = 8 * 2**20
"""The size at which a step's log stops getting activity; facts are always added."""
MAX_ERRORS = 50
MAX_MESSAGE = 500
ERROR_KINDS = frozenset({"attempt.failed", "step.failed", "plugin.failed"})

log = logging.getLogger(__name__)


@attrs.define
class StateFileWriter:
    """Called with each fact and activity of a run; *history* is what the run did before this process."""

    root: Path
    history: History = attrs.field(factory=History)
    _failed: bool = attrs.field(default=False, init=False)
    _narrator: Narrator = attrs.field(factory=Narrator, init=False)

    def __call__(self, state: State, record: Record) -> None:
        """Add *record* to the log of its step, and write the state file if the state changed."""
        if self._failed:
            return
        try:
            self._write(state, record)
        except OSError as error:
            # A run does not depend on these files, so one warning is enough.
            self._failed = True
            log.warning("cannot write %s: %s", self.root / FOLDER, error)

    def _write(self, state: State, record: Record) -> None:
        if make_folder(self.root, FOLDER):
            write_below(self.root, f"{FOLDER}/.gitignore", b"*\n")
        told = self._narrator.entry(record)
        if record.step:
            path = f"{FOLDER}/log/{record.step.replace('/', '-')}.jsonl"
            with append_below(self.root, path) as file:
                if record.kind not in ACTIVITY or os.fstat(file).st_size < MAX_LOG_BYTES:
                    entry = json.dumps(safe_data(_log_entry(record, told)), ensure_ascii=True)
                    os.write(file, f"{entry}\n".encode())
        if record.kind in ACTIVITY:
            return
        history = History() if record.kind == "run.started" else self.history
        self.history = fold_history(history, [record])
        # Only its owner may read it: it quotes prompts and answers.
        text = json.dumps(safe_data(state_file(state, self.history)), indent=2) + "\n"
        write_below(self.root, f"{FOLDER}/autopilot-state.json", text.encode(), mode=0o600, durable=False)


def _log_entry(record: Record, told: Entry | None) -> Mapping[str, Any]:
    step = StepId.parse(record.step)
    return {
        "timestamp": record.at.isoformat(),
        "level": "error" if record.kind in ERROR_KINDS else "debug" if record.kind in ACTIVITY else "info",
        "component": "agent" if record.kind.startswith("agent.") else "core",
        "message": told.text if told else record.kind,
        "phase": step.phase or None,
        "step": step.kind,
        "meta": {"seq": record.seq, "kind": record.kind, "attempt": record.attempt or None},
    }


def state_file(state: State, history: History) -> dict[str, Any]:
    """Return the content of ``autopilot-state.json``."""
    rows = phase_rows(state)
    current = current_step(state)
    in_progress = next((row.number for row in rows if row.status == "in_progress"), None)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": state.run or None,
        "status": file_status(state),
        "current_phase": current.id.phase if current and current.id.phase else in_progress,
        "current_step": str(current.id) if current else None,
        "progress": measure_of_snapshot(state.seen).percent,
        "phases": [
            {**PHASE_ROW.dump(row), "commits": list(history.commits.get(row.number, ()))} for row in rows
        ],
        "pending_questions": [question_json(asked) for asked in open_questions(state)],
        "error_history": [_error_json(error) for error in history.errors[-MAX_ERRORS:]],
        "started_at": time_json(state.started_at),
        "last_updated_at": time_json(state.last_at or state.started_at),
    }


def file_status(state: State) -> FileStatus:
    """Return the run's status as one of the file's five values."""
    if state.closed == "done":
        return "complete"
    if state.run and open_questions(state):
        return "waiting_for_human"
    if state.closed in ("failed", "blocked", "gaps", "budget"):
        return "error"
    return "running" if state.run and state.closed is None else "idle"


def _error_json(error: FailureRecord) -> dict[str, Any]:
    kind: str | None = None
    with suppress(ValueError):
        kind = StepId.parse(error.step).kind
    return {
        "at": time_json(error.at),
        "phase": phase_of(error.step) or None,
        "step": kind,
        "kind": error.failure.kind,
        "message": error.failure.message[:MAX_MESSAGE],
        "hint": error.failure.hint,
    }
