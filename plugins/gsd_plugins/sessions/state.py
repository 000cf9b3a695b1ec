"""What a session's own process writes into its row: the run's id, and the question that it waits for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from gsd_core import Cap, Event, GsdError, Spend, UserError
from gsd_core.project import Project

from .changes import note_questions
from .queue import share_slots
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
                reason = "" if event.data["exit"] == 0 else str(event.data["reason"])
                registry.update(session, reason=reason, asked="")
                return
            first = next(iter(_open), "")
            state = "waiting_checkpoint" if first else "running"
            registry.update(session, state=state, checkpoint=first, run=event.run)


def _is_own(row: Row) -> bool:
    """Whether this process is the session's command."""
    # The runner stores the id of its child a moment after the child has begun.
    return os.getpid() == row.session.pid or os.getppid() == row.runner


def cap_agents(session: str, spend: Spend, slots: int) -> Cap | None:
    """Return how many plans *session* may execute side by side, if this process is its command."""
    waits = "a slot of the sessions on this machine"
    try:
        with Registry() as registry:
            if not _is_own(registry.get(session)):
                return None
            about = {"working": spend.working, "wanted": spend.wanted}
            agents = share_slots(registry, session, **about, slots=slots)
    except UserError as error:
        # Others cannot know what this run has; one agent it always may have.
        return Cap(agents=spend.working, reason=f"{waits}: {error}", hint=error.hint)
    return Cap(
        agents=agents,
        reason=f"{waits} ({slots} in all, one for each agent)",
        hint="it starts when one is free; gsd ps shows who has them, gsd stop SESSION ends one; "
        f"for more: gsd settings set --user sessions.slots {slots + 1}, gsd pause, gsd resume --bg",
    )


def read_status(project: Path) -> dict[str, Any]:
    """Return the status of the run in *project*, as ``gsd status --json`` prints it."""

    with closing(Project(project)) as found:
        found.poll(backlog=0)
        return found.status()


def unanswered(status: Mapping[str, Any]) -> list[str]:
    """Return the ids of the open questions in *status* that nobody has answered, oldest first."""
    return [str(one["id"]) for one in status["questions"] if not one["answer_given"]]
