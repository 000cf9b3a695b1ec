"""Run a plugin's code in its own task, which the core can always end.

Nothing that the plugin does to its task affects the core's, and the task ends even if the plugin ignores
its cancellation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from typing import Any, TypeVar

import attrs

from .isolation import Call, current_call, describe, may_be_ctrl_c

R = TypeVar("R")

_END_LIMIT = 1.0  # seconds for a task to notice that its coroutine was closed; normally a few loop turns


class PluginCoroutine(Coroutine[Any, Any, Any]):
    """Wraps a plugin's coroutine for its task, to do what asyncio's public API cannot.

    ``SystemExit`` and ``KeyboardInterrupt`` in a task end the whole event loop: here they become a
    ``PluginError``. A coroutine may ignore every cancellation, and ``asyncio.run`` would wait for it
    forever: once *closed* is set, the next cancellation closes the coroutine instead of reaching it.

    This is not a coroutine function around the plugin's coroutine, because one that is cancelled before
    it starts would leave the inner one "never awaited".
    """

    def __init__(self, coro: Coroutine[Any, Any, Any], call: Call) -> None:
        self._coro, self._call, self.closed = coro, call, False

    def send(self, value: Any, /) -> Any:
        return self._step(self._coro.send, value)

    def throw(self, *exc: Any) -> Any:
        return self._step(self._coro.throw, *exc)

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        """Look like the coroutine itself: anyio asks for its state."""
        return getattr(self._coro, name)

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        if self.closed:
            with suppress(BaseException):  # the plugin may raise anything instead of ending
                self._coro.close()
            raise asyncio.CancelledError
        try:
            return step(*args)
        except (SystemExit, KeyboardInterrupt) as exc:
            if self._call.is_from_core(exc) or may_be_ctrl_c(exc):
                raise
            raise self._call.error(describe(exc)) from exc


@attrs.define(eq=False)
class PluginTask:
    """The task of *call*; *grace* is how long it may clean up once it is cancelled."""

    call: Call
    task: asyncio.Task[Any]
    grace: timedelta
    _stopped_at: float | None = None

    @classmethod
    def start(cls, call: Call, coro: Coroutine[Any, Any, Any], grace: timedelta) -> PluginTask:
        """Run *coro* in a task named after *call*, whose context belongs to *call*."""
        loop = asyncio.get_running_loop()
        if loop.get_task_factory() is None:
            loop.set_task_factory(_make_task)
        context = copy_context()
        context.run(current_call.set, call)
        task = loop.create_task(PluginCoroutine(coro, call), name=call.name, context=context)
        call.tasks.add(task)
        # Retrieved, so that asyncio does not log an exception that nobody has asked for.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return cls(call, task, grace)

    @property
    def stopped(self) -> bool:
        """Whether the core cancelled the task before it was done."""
        return self._stopped_at is not None

    def stop(self) -> None:
        """Cancel the task, once, if it is still running."""
        if not self.stopped and self.task.cancel():
            self._stopped_at = time.monotonic()

    async def end(self) -> bool:
        """Stop the task and wait for it; return whether it ended within its grace.

        If not, it is closed. A cancellation of the caller is raised after that.
        """
        self.stop()
        return self.task.done() or await finish(self._end())

    async def _end(self) -> bool:
        grace = self.grace.total_seconds()
        while not self.task.done():
            left = max(self._stopped_at or 0, self.call.returned_at) + grace - time.monotonic()
            # A plugin that waits for the core is not late: its grace starts again when that returns.
            if left <= 0 and not self.call.depth:
                await close_tasks(*self.call.tasks)
                return False
            await asyncio.wait({self.task}, timeout=max(grace if self.call.depth else left, 0.01))
        return True


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """Create a task; one that a plugin's code starts belongs to the plugin's call."""
    call = current_call.get()
    if call is None or isinstance(coro, PluginCoroutine) or not asyncio.iscoroutine(coro):
        return asyncio.Task(coro, loop=loop, **options)
    task = asyncio.Task(PluginCoroutine(coro, call), loop=loop, **options)
    call.tasks.add(task)
    return task


async def close_tasks(*tasks: asyncio.Task[Any]) -> None:
    """End tasks that ignore their cancellation, by closing their coroutines.

    The tasks of one call are closed together: one may be waiting for another.
    """
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        coro: Any = task.get_coro()
        if isinstance(coro, PluginCoroutine):
            coro.closed = True
        task.cancel()
    if pending:
        await asyncio.wait(pending, timeout=_END_LIMIT)


async def end_tasks(grace: timedelta) -> tuple[str, ...]:
    """Cancel every other task of this loop; close those that outlive *grace*, and return their names.

    Await it last, so that ``asyncio.run`` does not wait for a plugin's task when it ends.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    late = (await asyncio.wait(tasks, timeout=grace.total_seconds()))[1] if tasks else ()
    names = tuple(sorted(task.get_name() for task in late))
    await close_tasks(*late)
    return names


async def finish(work: Awaitable[R]) -> R:
    """Await *work* to its end; raise a cancellation that arrives before then only afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        # Retrieved, so that asyncio does not log it.
        _ = task.cancelled() or task.exception()
        raise cancelled
    return task.result()
