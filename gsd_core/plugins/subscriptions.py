"""Telling plugins events: a bounded queue and a pump for each, so that a slow one slows nobody."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import attrs

from .call_group import Report
from .isolation import Fault, PluginFailure

log = logging.getLogger(__name__)

_IN_A_ROW, _IN_ALL = 3, 10  # failures


@attrs.define(eq=False)
class Subscription:
    """One plugin's queue, and the task that empties it.

    After three failures in a row, or ten in all, it is told nothing any more: a report of a
    failure is an event too, and would come back for ever.
    """

    plugin: str
    hook: str
    size: int
    tell: Callable[[Any], Awaitable[Fault | None]]
    report: Report
    queue: deque[Any] = attrs.field(factory=deque[Any])
    news: asyncio.Event = attrs.field(factory=asyncio.Event)
    closed: bool = False
    dropped: int = 0
    in_a_row: int = 0
    in_all: int = 0

    def put(self, event: Any) -> None:
        """Queue *event*; drop the oldest if there are too many."""
        if self.closed:
            return
        if len(self.queue) >= self.size:
            self.queue.popleft()
            self.dropped += 1
            if self.dropped == 1:
                self._say(f"is slow: more than {self.size} events behind, it misses the oldest")
        self.queue.append(event)
        self.news.set()

    def close(self) -> None:
        """Take no more events; the pump ends when the queue is empty."""
        self.closed = True
        self.news.set()

    async def run(self) -> None:
        """Tell one event after the other."""
        while self.queue or not self.closed:
            if self.queue:
                self._count(await self.tell(self.queue.popleft()))
                continue
            self.news.clear()
            await self.news.wait()

    def _count(self, error: Fault | None) -> None:
        self.in_a_row = self.in_a_row + 1 if error else 0
        self.in_all += 1 if error else 0
        if error and (self.in_a_row == _IN_A_ROW or self.in_all == _IN_ALL):
            self.close()
            self.queue.clear()
            self._say(f"failed {self.in_all} times and is told no more events")

    def _say(self, problem: str) -> None:
        log.warning("plugin %r %s (%s)", self.plugin, problem, self.hook)
        self.report(PluginFailure(plugin=self.plugin, hook=self.hook, error=problem))


@asynccontextmanager
async def drained(pumps: Sequence[Subscription], grace: timedelta) -> AsyncGenerator[None, None]:
    """Run *pumps*; on leaving, let each take in what is left, for *grace* at most."""
    tasks = [asyncio.create_task(pump.run(), name=f"pump of {pump.plugin}") for pump in pumps]
    try:
        yield
    finally:
        await _finish(pumps, tasks, grace)


async def _finish(
    pumps: Sequence[Subscription], tasks: Sequence[asyncio.Task[None]], grace: timedelta
) -> None:
    for pump in pumps:
        pump.close()
    try:
        await _ended(tasks, grace.total_seconds())
    finally:
        for task in tasks:
            task.cancel()
        await _ended(tasks)


async def _ended(tasks: Sequence[asyncio.Task[None]], seconds: float | None = None) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
