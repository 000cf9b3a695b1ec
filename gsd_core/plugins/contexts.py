"""Plugins' context managers (lifespans, workspaces): each runs in its own task.

So none of them can hang, exit or cancel the run, and each is entered and exited in the same task, as
anyio's cancel scopes require.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import attrs

from .isolation import Call, Fault, classify_exception
from .plugin_task import PluginTask


@attrs.define(eq=False, kw_only=True)
class PluginContext:
    """The context manager that *plugin* returned from *hook*; *grace*: see :class:`PluginTask`."""

    plugin: str
    hook: str
    context: AbstractAsyncContextManager[Any]
    grace: timedelta
    _entered: asyncio.Future[Any] = attrs.field(init=False)
    _exiting: asyncio.Future[BaseException | None] = attrs.field(init=False)
    _running: PluginTask = attrs.field(init=False)

    async def enter(self, limit: timedelta) -> Any:
        """Return what the context yields; raise the plugin's fault if that takes longer than *limit*."""
        loop = asyncio.get_running_loop()
        self._entered, self._exiting = loop.create_future(), loop.create_future()
        call = Call(self.plugin, self.hook)
        self._running = PluginTask.start(call, self._hold(call), self.grace)
        # Not the name of a hook's call: this task continues while the hook is called again.
        self._running.task.set_name(f"{call.name} context")
        waiting: set[asyncio.Future[Any]] = {self._running.task, self._entered}
        try:
            await asyncio.wait(waiting, timeout=limit.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._running.end()
            raise
        if self._entered.done():
            return self._entered.result()
        raise await self._end(f"did not start within {limit}") or call.error("yielded nothing")

    async def exit(self, error: BaseException | None, limit: timedelta) -> Fault | None:
        """Exit the context, with *error* if given; return the plugin's fault, if any."""
        if not self._exiting.done():
            self._exiting.set_result(error)
        try:
            await asyncio.wait({self._running.task}, timeout=limit.total_seconds())
        finally:
            fault = await self._end(f"did not exit within {limit}")
        return fault

    async def _hold(self, call: Call) -> Fault | None:
        error: BaseException | None = None
        try:
            async with self.context as value:
                if not self._entered.done():
                    self._entered.set_result(value)
                error = await self._exiting
                if error is not None:
                    raise error
        except BaseException as exc:
            return None if exc is error else classify_exception(exc, call)
        return None

    async def _end(self, why: str) -> Fault | None:
        """Return the fault of the ended task; end it because of *why* if it is still running."""
        task, call = self._running.task, self._running.call
        if not task.done():
            await self._running.end()
            return call.error(why)
        if task.cancelled():
            return call.error("cancelled itself")
        fault: Fault | None = task.result()
        return fault


@asynccontextmanager
async def entered(context: PluginContext, limit: timedelta) -> AsyncGenerator[Any]:
    """Enter and exit a plugin's context, each within *limit*; raise the plugin's fault."""
    value = await context.enter(limit)
    try:
        yield value
    except BaseException as exc:
        await context.exit(exc, limit)
        raise
    if fault := await context.exit(None, limit):
        raise fault
