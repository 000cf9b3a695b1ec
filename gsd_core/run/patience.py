"""Patience with plugins that decide: how long one may neither return nor call the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

from attrs import define, field

from gsd_core.errors import PluginError
from gsd_core.hooks import Hooks


@define(eq=False)
class Patience:
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
