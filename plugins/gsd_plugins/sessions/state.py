"""What a session's own process writes into its row: the run's id, and the question that it waits for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from gsd_core import Event, GsdError, UserError
from gsd_core.project import Project

from .changes import note_questions
from .registry import ACTIVE, Registry

_open: dict[str, None] = {}
"""The open questions of this process's run, oldest first."""


def record_event(session: str, event: Event) -> None:
    """Update *session* if this process is its command, and not a child that inherited the variable."""
    # While the registry cannot be used, the run is worth more than its row.
    with suppress(UserError), Registry() as registry:
        row = registry.get(session)
        # The runner stores the id of its child a moment after the child has begun.
        if os.getpid() != row.session.pid and os.getppid() != row.runner:
            return
        if event.name == "run.opened":
            # An earlier process may have asked; such a question is not asked again.
            _open.clear()
            with suppress(GsdError, OSError):
                _open.update((question, None) for question in unanswered(read_status(row.session.project)))
        else:
            note_questions(_open, event)
        with registry.transaction():
            row = registry.get(session)
            if row.session.state not in ACTIVE:
                return
            if event.name == "run.closed":
                registry.update(session, reason="" if event.data["exit"] == 0 else str(event.data["reason"]))
                return
            first = next(iter(_open), "")
            state = "waiting_checkpoint" if first else "running"
            registry.update(session, state=state, checkpoint=first, run=event.run)


def read_status(project: Path) -> dict[str, Any]:
    """Return the status of the run in *project*, as ``gsd status --json`` prints it."""

    with closing(Project(project)) as found:
        found.poll(backlog=0)
        return found.status()


def unanswered(status: Mapping[str, Any]) -> list[str]:
    """Return the ids of the open questions in *status* that nobody has answered, oldest first."""
    return [str(one["id"]) for one in status["questions"] if not one["answer_given"]]
