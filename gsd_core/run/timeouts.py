"""The clocks of one agent call: idle and hard; neither runs while a human is asked.

Patience with plugins that decide: how long one may neither return nor call the core.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any

from attrs import define, field

from gsd_core.errors import PluginError, Transient
from gsd_core.plugins.calling import Hooks


@define
class AgentTimeouts:
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


@define(eq=False)
class InactivityTimeout:
    """Ends a call of *hook* after *limit* in which its plugins did nothing that the core knows of."""

    hooks: Hooks
    hook: Callable[..., Any]
    limit: timedelta
    _culprit: str = field(default="", init=False)
    _pauses: int = field(default=0, init=False)
    _timeout: asyncio.Timeout | None = field(default=None, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Raise ``PluginError`` with the plugin's name when the patience is at its end."""
        try:
            async with asyncio.timeout(None) as self._timeout:
                self._start()
                yield
        except TimeoutError as exc:
            if not self._culprit:
                raise
            raise PluginError(self._culprit, self.hook.__name__, f"did nothing for {self.limit}") from exc
        finally:
            self._stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Wait for the core: no plugin is to blame meanwhile."""
        self._pauses += 1
        self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and self._timeout is not None:
                self._start()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._stop()
        self._timer = loop.call_later(self.limit.total_seconds(), self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        assert self._timeout is not None, "the timer runs inside only"
        self._culprit = under_way(self.hooks, self.hook)
        self._timeout.reschedule(asyncio.get_running_loop().time())


def under_way(hooks: Hooks, hook: Callable[..., Any]) -> str:
    """Return the plugin whose call of *hook* is under way, the innermost of several."""
    plugins = hooks.plugins_of(hook)
    names = {task.get_name() for task in asyncio.all_tasks()}
    found = [plugin for plugin in plugins if f"{plugin}:{hook.__name__}" in names]
    return found[-1] if found else ", ".join(plugins)
