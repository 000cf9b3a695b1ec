"""Who may start: slots, the order of the queue, and sessions whose processes are gone.

There is no process that hands out slots. Each session has a runner from its first moment on, and the runner
of an idle session asks again and again whether it is its turn; the registry's write lock makes that a
decision of one at a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gsd_core import SessionState

from .registry import ACTIVE, Registry, Row

NO_RUNNER = timedelta(minutes=1)
"""How long a session may be without a runner: whoever started it may have been killed in between."""

LOST = "its process ended without a word: killed, or the machine was restarted"


def settle_lost(registry: Registry) -> list[str]:
    """Mark the sessions whose runner is gone as failed, and return their ids.

    A process of the session that survived its runner is left alone: it notices that its terminal is gone.
    """
    found: list[str] = []
    states: tuple[SessionState, ...] = ("idle", *ACTIVE)
    for row in registry.all(states):
        if not row.runner and datetime.now(UTC) - row.session.created < NO_RUNNER:
            continue  # it is being started
        if not row.runner_lives and not row.process_lives:
            registry.end(row.session.id, "failed", exit_code=None, reason=LOST)
            found.append(row.session.id)
    return found


def take_slot(registry: Registry, session: str, slots: int) -> str:
    """Give *session* a slot, and return an empty text; or return what it waits for.

    Older sessions come first, but one that waits for another session of its project does not hold up those
    of other projects.
    """
    with registry.transaction():
        settle_lost(registry)
        active = registry.all(ACTIVE)
        row = registry.get(session)
        ahead = [other for other in registry.all(["idle"]) if other.number < row.number]
        if why := _barrier(row, active, ahead):
            return why
        taken = {other.session.slot for other in active}
        free = [slot for slot in range(1, slots + 1) if slot not in taken]
        ready = [other for other in ahead if not _barrier(other, active, [])]
        if len(free) <= len(ready):
            return f"a slot: {len(active)} of {slots} are in use"
        registry.update(session, state="running", slot=free[0], reason="")
        return ""


def _barrier(row: Row, active: list[Row], ahead: list[Row]) -> str:
    """Return the session of the same project that *row* has to wait for; a project has one run at a time."""
    others = [other for other in (*active, *ahead) if other.session.project == row.session.project]
    return f"session {others[0].session.id} in the same project" if others else ""
