"""What a session's own process writes into its row: the run's id, and the question that it waits for."""

from __future__ import annotations

import os
from contextlib import suppress

from gsd_core import Event, GsdError, UserError
from gsd_core.project import Project

from .registry import ACTIVE, Registry, Row

_open: dict[str, None] = {}
"""The open questions of this process's run, oldest first."""


def record_event(session: str, event: Event) -> None:
    """Update *session* if this process is its command, and not a child that inherited the variable."""
    # While the registry cannot be used, the run is worth more than its row.
    with suppress(UserError), Registry() as registry:
        row = registry.get(session)
        if not _is_own(row):
            return
        _note(event, row)
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


def _is_own(row: Row) -> bool:
    # The runner stores the id of its child a moment after the child has begun.
    return os.getpid() == row.session.pid or os.getppid() == row.runner


def _note(event: Event, row: Row) -> None:
    match event.name:
        case "run.opened":
            # An earlier process may have asked; such a question is not asked again.
            _open.clear()
            _open.update((question, None) for question in _still_open(row))
        case "question.asked":
            _open.update((str(one["id"]), None) for one in event.data["inquiry"]["questions"])
        case "question.answered":
            _open.pop(str(event.data["question"]), None)
        case "question.withdrawn":
            for question in event.data["questions"]:
                _open.pop(str(question), None)
        case _:
            pass


def _still_open(row: Row) -> list[str]:
    project = Project(row.session.project)
    try:
        project.poll(backlog=0)
        return [str(one["id"]) for one in project.status()["questions"] if not one["answer_given"]]
    except (GsdError, OSError):
        return []
    finally:
        project.close()
