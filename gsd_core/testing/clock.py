"""A clock that a test moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import attrs

_START = datetime(2030, 1, 1, tzinfo=UTC)


@attrs.define(eq=False)
class FakeClock:
    """Time passes by :meth:`advance`, and at once while someone sleeps.

    Give ``clock.now``, ``clock.monotonic`` and ``clock.sleep`` where the real ones are parameters.
    *slept* are the seconds of each sleep, in their order.
    """

    start: datetime = _START
    passed: timedelta = timedelta()
    slept: list[float] = attrs.field(init=False, factory=list[float])

    def now(self) -> datetime:
        """Return the time of day, aware UTC."""
        return self.start + self.passed

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.passed.total_seconds()

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.passed += by

    async def sleep(self, seconds: float) -> None:
        """Let *seconds* pass, and let others run once."""
        self.slept.append(seconds)
        self.advance(timedelta(seconds=seconds))
        await asyncio.sleep(0)
