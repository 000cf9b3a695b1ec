"""Plugins' contexts: each lives in a task of its own, so that none hangs, exits or breaks the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from datetime import timedelta
from typing import Any

from attrs import define, field

from gsd_core.errors import PluginError

from .call_group import abandon_task
from .isolation import Call, Fault, classify_exception, enter_call, guard_tasks


@define(eq=False, kw_only=True)
class PluginContext:
    """The context that *plugin* gave for *hook*; *grace* is what it gets to clean up once it is cancelled."""

    plugin: str
    hook: str
    context: AbstractAsyncContextManager[Any]
    grace: timedelta
    _entered: asyncio.Future[Any] = field(init=False)
    _leave: asyncio.Future[BaseException | None] = field(init=False)
    _task: asyncio.Task[Fault | None] = field(init=False)

    async def come(self, limit: timedelta) -> Any:
        """Return what the context gives; raise the plugin's fault if it gives nothing within *limit*."""
        loop = asyncio.get_running_loop()
        self._entered, self._leave = loop.create_future(), loop.create_future()
        self._task = self._start(loop)
        waiting: set[asyncio.Future[Any]] = {self._task, self._entered}
        try:
            await asyncio.wait(waiting, timeout=limit.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._end()
            raise
        if self._entered.done():
            return self._entered.result()
        raise await self._end(f"did not begin within {limit}") or self._error("gave nothing")

    async def go(self, error: BaseException | None, limit: timedelta) -> Fault | None:
        """Leave the context, because of *error* if there is one; return what the plugin did wrong."""
        if not self._leave.done():
            self._leave.set_result(error)
        try:
            await asyncio.wait({self._task}, timeout=limit.total_seconds())
        finally:
            fault = await self._end(f"did not end within {limit}")
        return fault

    def _start(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[Fault | None]:
        call = Call(self.plugin, self.hook)
        context = copy_context()
        context.run(enter_call, call)
        guard_tasks(loop)
        return loop.create_task(self._live(call), name=f"{call.name} context", context=context)

    async def _live(self, call: Call) -> Fault | None:
        error: BaseException | None = None
        try:
            async with self.context as value:
                if not self._entered.done():
                    self._entered.set_result(value)
                error = await self._leave
                if error is not None:
                    raise error
        except BaseException as exc:
            return None if exc is error else classify_exception(exc, call)
        return None

    async def _end(self, why: str = "was interrupted") -> Fault | None:
        """Have the task end, for the grace at most; return its fault, or *why* we had to end it."""
        if self._task.done():
            return self._error("cancelled itself") if self._task.cancelled() else self._task.result()
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=self.grace.total_seconds())
        if not self._task.done():
            abandon_task(self._task)
        return self._error(why)

    def _error(self, why: str) -> PluginError:
        return PluginError(self.plugin, self.hook, why)


@asynccontextmanager
async def entered(guest: PluginContext, limit: timedelta) -> AsyncGenerator[Any]:
    """Enter and leave a plugin's context, each within *limit*; raise the plugin's fault."""
    value = await guest.come(limit)
    try:
        yield value
    except BaseException as exc:
        await guest.go(exc, limit)
        raise
    if fault := await guest.go(None, limit):
        raise fault
