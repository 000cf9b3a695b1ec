"""Tell watchers and people; a run never waits for them but for a moment at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from datetime import timedelta

from attrs import define, field

from gsd_core.event import Event
from gsd_core.hookspecs import gsd_notify, gsd_on_event
from gsd_core.journal.record import Record
from gsd_core.machine.state import State
from gsd_core.notice import Notice

from .session import Run
from .tell import events_of, notice_of

LIMIT = timedelta(seconds=10)
STOPPING = timedelta(seconds=3)
"""How long notices may still take where a human has stopped the run and waits for its end."""


@define
class Outlet:
    """Takes facts in, gives events to subscribers and notices to notifiers."""

    run: Run
    tell: Callable[[Event], None]
    sending: set[asyncio.Task[None]] = field(factory=set[asyncio.Task[None]])

    def fact(self, state: State, fact: Record) -> None:
        """Take in a fact."""
        for event in events_of(state, fact):
            self.tell(event)
            notice = notice_of(event, self.run.root.name)
            if notice is not None:
                self.send(notice)

    def send(self, notice: Notice) -> None:
        """Send a notice in the background."""
        task = asyncio.get_running_loop().create_task(self._send(notice), name="gsd:notify")
        self.sending.add(task)
        task.add_done_callback(self.sending.discard)

    async def _send(self, notice: Notice) -> None:
        outcomes = await self.run.hooks.fan_out(gsd_notify, LIMIT, notice)
        failed = [outcome.plugin for outcome in outcomes if outcome.error]
        ok = [outcome.plugin for outcome in outcomes if not outcome.error]
        if ok or failed:
            data = {"key": notice.key, "ok": ok, "failed": failed}
            self.run.record("notice.sent", data, step=notice.step)


@asynccontextmanager
async def outlet(run: Run) -> AsyncGenerator[Outlet]:
    """Connect a run to its watchers; on leaving, wait a bounded time for what is under way."""
    async with run.hooks.subscribe(gsd_on_event) as tell:
        out = Outlet(run, tell)
        run.listeners.append(out.fact)
        try:
            yield out
        finally:
            await _ended(out.sending, STOPPING if run.state.closed == "stopped" else LIMIT)
            run.listeners.remove(out.fact)


async def _ended(sending: Collection[asyncio.Task[None]], limit: timedelta) -> None:
    """Wait for the notices that are under way; a channel that outlasts the limit is named and left."""
    if sending:
        _, late = await asyncio.wait(sending, timeout=limit.total_seconds())
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
