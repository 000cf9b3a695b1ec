"""What a session's own process writes into its row: the run's id, and the question that it waits for."""

from __future__ import annotations

import os

from gsd_core import Event

from .registry import ACTIVE, Registry

_open: dict[str, None] = {}
"""The open questions of this process's run, oldest first."""


def record_event(session: str, event: Event) -> None:
    """Update *session* if this process is its command, and not a child that inherited the variable."""
    match event.name:
        case "question.asked":
            _open.update((str(one["id"]), None) for one in event.data["inquiry"]["questions"])
        case "question.answered":
            _open.pop(str(event.data["question"]), None)
        case "question.withdrawn":
            for question in event.data["questions"]:
                _open.pop(str(question), None)
        case _:
            pass
    with Registry() as registry:
        row = registry.get(session)
        if event.name == "run.closed":
            if row.session.pid == os.getpid():
                registry.update(session, reason="" if event.data["exit"] == 0 else str(event.data["reason"]))
            return
        if row.session.pid != os.getpid() or row.session.state not in ACTIVE:
            return
        first = next(iter(_open), "")
        state = "waiting_checkpoint" if first else "running"
        registry.update(session, state=state, checkpoint=first, run=event.run)
