"""Deliver events to plugins: each has a bounded queue and a task, so that a slow one delays no other."""

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
from .plugin_task import finish

log = logging.getLogger(__name__)

_MAX_FAILURES_IN_A_ROW, _MAX_FAILURES = 3, 10


@attrs.define(eq=False)
class Subscription:
    """One plugin's queue of at most *size* events, which :meth:`run` delivers one after the other.

    A plugin that fails too often is unsubscribed: the report of a failure is an event as well, and
    would come back to it forever.
    """

    plugin: str
    hook: str
    size: int
    deliver: Callable[[Any], Awaitable[Fault | None]]
    report: Report
    queue: deque[Any] = attrs.field(factory=deque[Any])
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)
    closed: bool = False
    dropped: int = 0
    failures: int = 0
    failures_in_a_row: int = 0

    def put(self, event: Any) -> None:
        """Queue *event*; drop the oldest one if the queue is full."""
        if self.closed:
            return
        if len(self.queue) >= self.size:
            self.queue.popleft()
            self.dropped += 1
            if self.dropped == 1:
                self._report(f"is slow: more than {self.size} events behind, it misses the oldest")
        self.queue.append(event)
        self.changed.set()

    def close(self) -> None:
        """Take no more events; :meth:`run` returns once the queue is empty."""
        self.closed = True
        self.changed.set()

    async def run(self) -> None:
        """Deliver events until the subscription is closed."""
        while self.queue or not self.closed:
            if not self.queue:
                self.changed.clear()
                await self.changed.wait()
                continue
            if await self.deliver(self.queue.popleft()) is None:
                self.failures_in_a_row = 0
                continue
            self.failures += 1
            self.failures_in_a_row += 1
            if self.failures_in_a_row == _MAX_FAILURES_IN_A_ROW or self.failures == _MAX_FAILURES:
                self.close()
                self.queue.clear()
                self._report(f"failed {self.failures} times and receives no more events")

    def _report(self, problem: str) -> None:
        log.warning("plugin %r %s (%s)", self.plugin, problem, self.hook)
        self.report(PluginFailure(plugin=self.plugin, hook=self.hook, error=problem))


@asynccontextmanager
async def delivering(subscriptions: Sequence[Subscription], grace: timedelta) -> AsyncGenerator[None, None]:
    """Run *subscriptions*; on leaving, let each deliver what is left, for *grace* at most."""
    tasks = [asyncio.create_task(sub.run(), name=f"events for {sub.plugin}") for sub in subscriptions]
    try:
        yield
    finally:
        for sub in subscriptions:
            sub.close()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=grace.total_seconds())
        finally:
            for task in tasks:
                task.cancel()
            await finish(asyncio.gather(*tasks, return_exceptions=True))
