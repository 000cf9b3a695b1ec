"""The clocks of one agent call: idle and hard; neither runs while a human is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta

from attrs import define, field

from gsd_core.errors import Transient


@define
class Clocks:
    """Two time-outs around an agent call; :meth:`paused` stops them, :meth:`beat` restarts the idle one."""

    idle: timedelta
    hard: timedelta
    who: str = "the agent"
    _idle: asyncio.Timeout | None = field(default=None, init=False)
    _hard: asyncio.Timeout | None = field(default=None, init=False)
    _pauses: int = field(default=0, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Raise ``Transient`` when one of the clocks runs out."""
        try:
            async with asyncio.timeout(self.hard.total_seconds()) as self._hard:
                async with asyncio.timeout(self.idle.total_seconds()) as self._idle:
                    yield
        except TimeoutError as exc:
            if self._idle and self._idle.expired():
                raise Transient(f"{self.who} gave no sign of life for {self.idle}") from exc
            if self._hard and self._hard.expired():
                raise Transient(f"{self.who} took longer than {self.hard}") from exc
            raise

    def beat(self) -> None:
        """The agent is alive."""
        if self._idle and not self._pauses:
            _set(self._idle, _now() + self.idle.total_seconds())

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop both clocks; what was left of the hard one is left afterwards."""
        left = (self._hard.when() or _now()) - _now() if self._hard and not self._pauses else 0.0
        self._pauses += 1
        _set(self._idle, None)
        _set(self._hard, None)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                _set(self._hard, _now() + left)
                self.beat()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _set(timeout: asyncio.Timeout | None, when: float | None) -> None:
    """Reschedule a time-out that is still running: one that is over cannot be."""
    if timeout and not timeout.expired():
        with suppress(RuntimeError):
            timeout.reschedule(when)
