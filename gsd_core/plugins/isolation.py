"""The border between the core and its plugins.

What leaves a plugin's call is a value, a ``StepError`` as the plugin raised it, or a
``PluginError`` with the plugin's name. What the core itself raised while a plugin had called it
passes untouched, and so do our own cancellation and Ctrl-C.

Keep ``SystemExit`` in a task that a plugin started from ending the loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import attrs

from gsd_core.errors import PluginError, StepError

Fault: TypeAlias = StepError | PluginError

_LONGEST = 1000  # characters of a foreign exception's text


@attrs.frozen(kw_only=True)
class PluginFailure:
    """A plugin failed in a hook: what the journal keeps of it (``plugin.failed``)."""

    plugin: str
    hook: str
    error: str


@attrs.define(eq=False)
class Call:
    """One plugin's call of one hook, while it lasts.

    *depth* counts how often the plugin has called back into the core, *left* is the monotonic time
    when the core last gave the word back, *came_out* is what the core raised meanwhile.
    """

    plugin: str
    hook: str
    depth: int = 0
    left: float = 0.0
    came_out: list[BaseException] = attrs.field(factory=list[BaseException])

    @property
    def name(self) -> str:
        """``plugin:hook``, the name of the call's task."""
        return f"{self.plugin}:{self.hook}"


_inside: ContextVar[Call | None] = ContextVar("gsd_plugin_call", default=None)
_blocking: dict[int, str] = {}  # by thread: a hook that is a plain def is running, and whose


def enter_call(call: Call) -> None:
    """Let this context belong to *call*."""
    _inside.set(call)


def current_call() -> Call | None:
    """Return the plugin's call that this context belongs to; none while the core is at work."""
    return _inside.get()


@contextmanager
def in_core() -> Generator[None, None, None]:
    """Mark a callback into the core: the plugin that called it is not to blame meanwhile.

    The grace of a cancelled plugin does not run, and what is raised passes the border untouched.
    Hosts enter it in each of their methods; outside of plugins it does nothing.
    """
    call = _inside.get()
    if call is None:
        yield
        return
    token = _inside.set(None)
    call.depth += 1
    try:
        yield
    except BaseException as exc:
        call.came_out.append(exc)
        raise
    finally:
        call.depth -= 1
        call.left = time.monotonic()
        _inside.reset(token)


def classify_exception(exc: BaseException, call: Call) -> Fault:
    """Return the fault that *exc* is, with the plugin's name; raise it if it is not the plugin's.

    A group that holds exactly one fault, or one error of the core, is that one.
    """
    if isinstance(exc, KeyboardInterrupt | GeneratorExit) or _is_our_cancellation(exc):
        raise exc
    telling = [leaf for leaf in _leaves(exc) if isinstance(leaf, Fault) or _is_known(leaf, call)]
    if len(telling) != 1:
        error = PluginError(call.plugin, call.hook, describe_exception(exc))
        error.__cause__ = exc
        return error
    if _is_known(telling[0], call) or not isinstance(telling[0], Fault):
        raise telling[0]
    telling[0].plugin = telling[0].plugin or call.plugin
    return telling[0]


def _is_known(exc: BaseException, call: Call) -> bool:
    return any(exc is known for known in call.came_out)


def _is_our_cancellation(exc: BaseException) -> bool:
    return isinstance(exc, asyncio.CancelledError) and _cancelling()


def _cancelling() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if not isinstance(exc, BaseExceptionGroup):
        yield exc
        return
    for inner in exc.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a group of anything
        yield from _leaves(inner)  # pyright: ignore[reportUnknownArgumentType]


def describe_exception(exc: BaseException) -> str:
    """Return ``repr(exc)``, clipped; a ``repr`` that raises is the class's name."""
    try:
        return repr(exc)[:_LONGEST]
    except Exception:
        return type(exc).__name__


def call_blocking(call: Call, function: Callable[[], Any]) -> Any:
    """Call *function*, a hook that is a plain ``def``; raise a :data:`Fault` if it fails.

    It sees no current task, so that it cannot cancel the one that called it.
    """
    thread = threading.get_ident()
    outer = _blocking.get(thread, "")
    _blocking[thread] = call.name
    try:
        with _no_current_task():
            return _judged(call, function)
    finally:
        _blocking[thread] = outer


def _judged(call: Call, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except BaseException as exc:
        error = classify_exception(exc, call)
    raise error


def blocking_call(thread: int) -> str:
    """Return the ``plugin:hook`` that runs as a plain function in *thread*, or an empty text."""
    return _blocking.get(thread, "")


@contextmanager
def _no_current_task() -> Generator[None, None, None]:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        yield
        return
    if (task := asyncio.current_task()) is None:
        yield
        return
    # Documented for event loops and task types ("Extending asyncio"), underscores or not.
    leave, come_back = (getattr(asyncio.tasks, name) for name in ("_leave_task", "_enter_task"))
    leave(loop, task)
    try:
        yield
    finally:
        come_back(loop, task)


def guard_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Let *loop* watch the tasks that plugins start, unless it has a task factory already."""
    if loop.get_task_factory() is None:
        loop.set_task_factory(_make_task)


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    call = current_call()
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
            raise PluginError(self._call.plugin, self._call.hook, describe_exception(exc)) from exc
