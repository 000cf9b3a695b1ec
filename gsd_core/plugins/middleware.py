"""One plugin's layer around a step.

The rest of the chain runs in a task of the core's, so that no plugin can lose it: when the
layer ends, or is cancelled, what it called has ended too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar

import attrs
import pluggy

from gsd_core.model.step import StepRequest

from .call_group import CallGroup, Given
from .isolation import in_core

A = TypeVar("A", bound=StepRequest)
R = TypeVar("R")


def wrap_call(
    heat: Callable[[], CallGroup],
    impl: pluggy.HookImpl,
    inner: Callable[[A], Awaitable[R]],
    other_than_result: Callable[..., str],
    bind: Callable[..., Given],
) -> Callable[[A], Awaitable[R]]:
    """Return *inner* inside the layer of *impl*."""

    async def run(request: A, /) -> R:
        rest = NextCall(request, inner)
        with in_core():
            value: R = await _settled(heat(), impl, bind(request, rest), rest, other_than_result)
            return value

    return run


async def _settled(
    heat: CallGroup,
    impl: pluggy.HookImpl,
    given: Given,
    rest: NextCall[Any, Any],
    other_than_result: Callable[..., str],
) -> Any:
    async with heat:
        task = heat.add(impl, given, lambda value: other_than_result(*rest.came_out, value))
        try:
            await heat.all()
        finally:
            heat.stop()
            await rest.end()
    outcome = heat.outcome(task)
    if outcome.error:
        raise outcome.error
    return outcome.value


@attrs.frozen
class NextCall(Generic[A, R]):
    """The ``call_next`` of one layer; keeps the request's identity and what came out."""

    request: A
    inner: Callable[[A], Awaitable[R]]
    came_out: list[R] = attrs.field(factory=list[Any])
    running: set[asyncio.Task[R]] = attrs.field(factory=set[asyncio.Task[Any]])

    async def __call__(self, request: A, /) -> R:
        same = self._same(request)
        with in_core():
            task = asyncio.create_task(_awaited(partial(self.inner, same)), name="core")
            self.running.add(task)
            task.add_done_callback(_look_at)
            value = await task
        self.came_out.append(value)
        return value

    async def end(self) -> None:
        """Cancel what still runs, unless that is under way, and wait for it."""
        running = {task for task in self.running if not task.done()}
        for task in running:
            if not task.cancelling():
                task.cancel()
        if running:
            await asyncio.wait(running)

    def _same(self, request: A) -> A:
        if not isinstance(request, type(self.request)):
            raise TypeError(f"call_next wants a {type(self.request).__name__}, not {request!r}")
        mine = self.request
        return attrs.evolve(request, id=mine.id, run=mine.run, kind=mine.kind, project=mine.project)


async def _awaited(call: Callable[[], Awaitable[R]]) -> R:
    return await call()


def _look_at(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, for a plugin need not."""
    if not task.cancelled():
        task.exception()
