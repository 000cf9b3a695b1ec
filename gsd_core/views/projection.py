"""What a run leaves in ``.planning/autopilot/`` for tools that watch files; never read back.

``autopilot-state.json`` says where the run stands, ``log/PHASE-STEP.jsonl`` what each step did.
The folder ignores itself in git.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from gsd_core.ids import StepId
from gsd_core.journal.codec import structure
from gsd_core.journal.record import ACTIVITY, Record
from gsd_core.machine.state import State

from .history import History, tell
from .log import log_line
from .state_file import state_file

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
