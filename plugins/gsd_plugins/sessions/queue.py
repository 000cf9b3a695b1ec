"""Who may start, with how many agents: slots, the order of the queue, sessions whose processes are gone.

There is no process that hands out slots. Each session has a runner from its first moment on, and the runner
of an idle session asks again and again whether it is its turn; the registry's write lock makes that a
decision of one at a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from gsd_core import boot_id

from .barriers import gate_of, phases_of, work_of
from .registry import ACTIVE, Registry, Row

NO_RUNNER = timedelta(minutes=1)
"""How long a session may be without a runner: whoever started it may have been killed in between."""

NEVER_STARTED = "whoever started it was killed before it had a process"


def settle_lost(registry: Registry) -> None:
    """Mark the sessions whose runner is gone as failed.

    A process of the session that survived its runner is left alone: it notices that its terminal is gone.
    """
    for row in registry.all(("idle", *ACTIVE)):
        if reason := _why_lost(row):
            with registry.transaction():
                # It may have ended properly, or got its runner, since it was read.
                if _why_lost(registry.get(row.session.id)):
                    registry.end(row.session.id, "failed", exit_code=None, reason=reason)


def _why_lost(row: Row) -> str:
    if row.session.has_ended:
        return ""
    if not row.runner:
        is_new = abs(datetime.now(UTC) - row.session.created) < NO_RUNNER
        return "" if is_new else NEVER_STARTED
    if row.runner_lives or row.process_lives or row.is_from_before_restart:
        return ""
    what = "its process was killed" if row.boot == boot_id() else "the machine was restarted"
    # How to continue a run depends on what has happened since; `gsd ps` says it.
    return what if row.session.started else f"{what}; start it again"


def gate(registry: Registry, row: Row, plan_ahead: int) -> str:
    """Return what *row* waits for besides its turn, and store it in the registry."""
    others = [
        other
        for other in registry.all(("idle", *ACTIVE))
        if other.session.project == row.session.project and other.number != row.number
    ]
    # Reading the planning files takes some milliseconds; few sessions need them.
    work = work_of(row.session.command)
    waits = work.executes or work.does == "verify"
    matters = work.does == "plan" or (waits and work.range and others)
    why = gate_of(row, others, phases_of(row.session.project), plan_ahead) if matters else ""
    if why != row.gate:
        registry.update(row.session.id, gate=why)
    return why


def take_slot(registry: Registry, session: str, slots: int) -> str:
    """Give *session* a slot, and return an empty text; or return what it waits for.

    Older sessions come first, but one that waits for another session of its project does not hold up those
    of other projects.
    """
    # Hundreds of sessions may ask; most of them are told no without the lock.
    if (used := registry.slots_in_use()) >= slots:
        return _all_used(used, slots)
    with registry.transaction():
        active = [row for row in registry.all(ACTIVE) if row.is_active]
        row = registry.get(session)
        ahead = [other for other in registry.all(["idle"]) if other.number < row.number and not other.gate]
        if why := _turn(row, active, ahead):
            return why
        taken = {other.session.slot for other in active}
        used = registry.slots_in_use()
        ready = [other for other in ahead if not _turn(other, active, [])]
        if used + len(ready) >= slots:
            return _all_used(used, slots) if used >= slots else f"session {ready[0].session.id} to start"
        slot = next(number for number in count(1) if number not in taken)
        registry.update(session, state="running", slot=slot, agents=1, asked="", reason="")
        return ""


def share_slots(registry: Registry, session: str, *, working: int, wanted: int, slots: int) -> int:
    """Return how many slots a running *session* has now, of those *wanted*; those it does not use are free.

    It keeps one for each of the *working* agents, at least one. A session in the queue that could start comes
    before a further slot; then the runs with the fewest, and of two with as many the one that waits longer.
    """
    settle_lost(registry)
    with registry.transaction():
        row, active = registry.get(session), [row for row in registry.all(ACTIVE) if row.is_active]
        others = [other for other in active if other.number != row.number]
        queued = [other for other in registry.all(["idle"]) if not other.gate and other.runner_lives]
        starting = {other.session.project for other in queued} - {other.session.project for other in active}
        free = slots - sum(max(1, other.session.agents) for other in others) - len(starting)
        waiting = [(other.session.agents, other.asked, other.number) for other in others if other.asked]
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        agents = max(1, working)
        asked = row.asked if row.asked and agents >= row.session.agents else now
        while agents < wanted and free - agents > sum(one < (agents, asked, row.number) for one in waiting):
            agents, asked = agents + 1, now
        reason = "waits for a slot for another plan" if agents < wanted else ""
        found = {"agents": agents, "asked": asked if agents < wanted else "", "reason": reason}
        # Each change wakes all who follow the registry.
        if found != {"agents": row.session.agents, "asked": row.asked, "reason": row.session.reason}:
            registry.update(session, **found)
        return agents


def _all_used(used: int, slots: int) -> str:
    return f"a slot: {used} of {slots} are in use"


def _turn(row: Row, active: list[Row], ahead: list[Row]) -> str:
    """Return the session of the same project that *row* has to wait for; a project has one run at a time."""
    others = [other for other in (*active, *ahead) if other.session.project == row.session.project]
    return f"session {others[0].session.id} in the same project" if others else ""
