"""The ``call_next`` of a step wrapper.

The rest of the chain runs in a task of the core, so that no plugin can leave it running: once the wrapper
has ended or was cancelled, its calls have ended too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import attrs

from gsd_core.model.step import StepRequest

from .isolation import in_core
from .plugin_task import finish

A = TypeVar("A", bound=StepRequest)
R = TypeVar("R")


@attrs.frozen
class NextCall(Generic[A, R]):
    """Calls *inner* with the wrapper's request but the identity of *request*; keeps the results."""

    request: A
    inner: Callable[[A], Awaitable[R]]
    results: list[R] = attrs.field(factory=list[Any])
    _tasks: list[asyncio.Task[R]] = attrs.field(factory=list[Any])

    async def __call__(self, request: A, /) -> R:
        mine = self.request
        if not isinstance(request, type(mine)):
            raise TypeError(f"call_next expects a {type(mine).__name__}, got {request!r}")
        request = attrs.evolve(request, id=mine.id, run=mine.run, kind=mine.kind, project=mine.project)

        async def call() -> R:
            return await self.inner(request)

        with in_core():
            task = asyncio.create_task(call(), name="core")
            self._tasks.append(task)
            value = await task
        self.results.append(value)
        return value

    async def end(self) -> None:
        """Cancel the calls that are still running, unless they are being cancelled, and wait for them."""
        for task in self._tasks:
            if not task.done() and not task.cancelling():
                task.cancel()
        if self._tasks:
            # Each exception is retrieved here, because the plugin may have dropped the call.
            await finish(asyncio.gather(*self._tasks, return_exceptions=True))
