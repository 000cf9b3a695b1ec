"""Keep ``SystemExit`` in a task that a plugin started from ending the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from .border import Call, inside, text_of
from .errors import PluginError


def guard(loop: asyncio.AbstractEventLoop) -> None:
    """Let *loop* watch the tasks that plugins start, unless it has a task factory already."""
    if loop.get_task_factory() is None:
        loop.set_task_factory(_make_task)


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    call = inside()
    if call is not None and asyncio.iscoroutine(coro):
        coro = _Guarded(coro, call)
    return asyncio.Task(coro, loop=loop, **options)


class _Guarded(Coroutine[Any, Any, Any]):
    """A plugin's coroutine; asyncio would let its ``SystemExit`` out of the loop.

    No coroutine around it: one that is cancelled before it starts never awaits what it holds.
    """

    def __init__(self, coro: Coroutine[Any, Any, Any], call: Call) -> None:
        self._coro, self._call = coro, call

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
        try:
            return step(*args)
        except SystemExit as exc:
            raise PluginError(self._call.plugin, self._call.hook, text_of(exc)) from exc
