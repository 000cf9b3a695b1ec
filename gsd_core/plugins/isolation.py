"""The boundary between the core and its plugins.

A call of a plugin ends with a value, with the plugin's ``StepError``, or with a ``PluginError`` that
names the plugin. Two kinds of exceptions pass the boundary unchanged: those that the core raised while the
plugin was calling it, and the core's own cancellation.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias
from weakref import WeakSet

import attrs

from gsd_core.errors import PluginError, PluginRefused, StepError, plugin_refusal

log = logging.getLogger(__name__)
trace = logging.getLogger("gsd_core.plugins.trace")
"""Gets a record for each call of a hook, for ``--trace-hooks``; nothing is done if nobody listens."""

Fault: TypeAlias = StepError | PluginError
Reason: TypeAlias = Literal["raised", "invalid", "timeout", "cancelled itself", "ignored cancellation"]

_MAX_DESCRIPTION, _MAX_TRACED = 1000, 100_000  # characters


@attrs.frozen(kw_only=True)
class PluginFailure:
    """A plugin's failure in a hook, as the fact ``plugin.failed`` records it.

    *error* is a message for people. *reason* is for code, and empty if the failure is not that of one call.
    """

    plugin: str
    hook: str
    error: str
    reason: Reason | Literal[""] = ""


@attrs.define(eq=False)
class Call:
    """One plugin's call of one hook, while it lasts.

    *depth* counts how often the plugin has called back into the core, *returned_at* is the monotonic
    time at which the core last returned to it, *raised_by_core* has the exceptions that
    the core raised in those callbacks. *tasks* are those that the plugin's code runs in.
    """

    plugin: str
    hook: str
    depth: int = 0
    returned_at: float = 0.0
    raised_by_core: list[BaseException] = attrs.field(factory=list[BaseException])
    tasks: WeakSet[asyncio.Task[Any]] = attrs.field(factory=WeakSet[asyncio.Task[Any]])

    @property
    def name(self) -> str:
        """``plugin:hook``, the name of the call's task."""
        return f"{self.plugin}:{self.hook}"

    def error(self, problem: str) -> PluginError:
        """Return the error of this call, with *problem* as its cause."""
        return PluginError(self.plugin, self.hook, problem)

    def is_from_core(self, exc: BaseException) -> bool:
        """Return whether the core raised *exc* while the plugin was calling it."""
        return any(exc is raised for raised in self.raised_by_core)


current_call: ContextVar[Call | None] = ContextVar("gsd_plugin_call", default=None)
"""The call that this context belongs to; ``None`` in the core's own code."""


@contextmanager
def in_core() -> Generator[None, None, None]:
    """Mark a callback into the core, during which the plugin that made it is not to blame.

    The grace period of a cancelled plugin is suspended, and exceptions pass the boundary unchanged.
    Hosts enter this in each of their methods; outside of plugins it does nothing.
    """
    call = current_call.get()
    if call is None:
        yield
        return
    token = current_call.set(None)
    call.depth += 1
    try:
        yield
    except BaseException as exc:
        call.raised_by_core.append(exc)
        raise
    finally:
        call.depth -= 1
        call.returned_at = time.monotonic()
        current_call.reset(token)


@contextmanager
def traced(call: Call) -> Generator[Callable[[object], None], None, None]:
    """Trace *call*, and how long it took; the function that is yielded gets its result."""
    results: list[object] = []
    began = time.perf_counter()
    try:
        yield results.append
    finally:
        if trace.isEnabledFor(logging.DEBUG):
            # Without a result, the core has cancelled it. It is redacted before it is cut to a line.
            result = describe(results[0], _MAX_TRACED) if results else "cancelled"
            trace.debug("%s %s %.3f s: %s", call.hook, call.plugin, time.perf_counter() - began, result)


def classify_exception(exc: BaseException, call: Call) -> Fault:
    """Return the fault for *exc*, with the plugin's name; re-raise an exception that is not the plugin's.

    A group with exactly one ``StepError``, ``PluginError`` or error of the core counts as that one:
    so a plugin may use a ``TaskGroup`` without hiding that error from its caller.
    """
    task = _current_task()
    if (isinstance(exc, asyncio.CancelledError) and task and task.cancelling()) or may_be_ctrl_c(exc):
        raise exc
    known = [leaf for leaf in _leaves(exc) if isinstance(leaf, Fault) or call.is_from_core(leaf)]
    leaves = list(_leaves(exc))
    if len(leaves) == 1 and not call.is_from_core(leaves[0]) and (trouble := plugin_refusal(leaves[0])):
        refused = PluginRefused(call.plugin, call.hook, str(trouble), trouble.hint)
        refused.__cause__ = leaves[0]
        return refused
    if len(known) != 1:
        error = call.error(describe(exc))
        error.__cause__ = exc
        return error
    [leaf] = known
    if call.is_from_core(leaf) or not isinstance(leaf, Fault):
        raise leaf
    leaf.plugin = leaf.plugin or call.plugin
    return leaf


def _current_task() -> asyncio.Task[Any] | None:
    with suppress(RuntimeError):  # no event loop
        return asyncio.current_task()
    return None


def may_be_ctrl_c(exc: BaseException) -> bool:
    """Return whether *exc* may be the user's Ctrl-C, and not an error of the code that raised it.

    Python raises ``KeyboardInterrupt`` wherever the main thread happens to be, but only while its own
    SIGINT handler is installed. ``asyncio.run`` and a run's signal handling install theirs, which
    cancel; so while they are active, a ``KeyboardInterrupt`` is the plugin's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    is_pythons = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(exc, KeyboardInterrupt) and is_main and is_pythons


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if not isinstance(exc, BaseExceptionGroup):
        yield exc
        return
    for inner in exc.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a group of anything
        yield from _leaves(inner)  # pyright: ignore[reportUnknownArgumentType]


def describe(value: object, limit: int = _MAX_DESCRIPTION) -> str:
    """Return ``repr(value)``, cut to *limit*; the name of the class if ``repr`` raises."""
    try:
        return repr(value)[:limit]
    except Exception:
        return type(value).__name__


def report_failure(
    report: Callable[[PluginFailure], None], plugin: str, hook: str, error: Fault, reason: Reason = "raised"
) -> None:
    """Log and report a failure once, even if it passes the boundaries of several plugins."""
    if error.__dict__.get("reported"):
        return
    error.__dict__["reported"] = True
    log.warning("%s: %s", plugin, error, exc_info=error.__cause__)
    text = error.cause_text if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    report(PluginFailure(plugin=plugin, hook=hook, error=text, reason=reason))


_blocking: dict[int, str] = {}  # thread → the ``plugin:hook`` that it runs as a plain function


def blocking_call(thread: int) -> str:
    """Return the ``plugin:hook`` that *thread* runs as a plain function; empty if none."""
    return _blocking.get(thread, "")


def call_blocking(call: Call, function: Callable[[], Any]) -> Any:
    """Call *function*, a hook that is a plain ``def``; raise a :data:`Fault` if it fails."""
    thread = threading.get_ident()
    outer = blocking_call(thread)
    _blocking[thread] = call.name
    try:
        with traced(call) as ended:
            try:
                with _without_current_task():
                    value = function()
            except BaseException as exc:
                fault = classify_exception(exc, call)
                ended(fault)
            else:
                ended(value)
                return value
    finally:
        _blocking[thread] = outer
    raise fault


@contextmanager
def _without_current_task() -> Generator[None, None, None]:
    """Hide the current task from a plain function, which could cancel it otherwise.

    The task is that of the run. Before Python 3.13 a cancellation that was requested cannot be taken
    back (``Task.uncancel`` only counts), and a function that is called directly cannot get its own
    task. So this needs two of asyncio's functions for task implementers, which are documented in
    "Extending asyncio" in spite of their underscores.
    """
    task = _current_task()
    if task is None:
        yield
        return
    leave, enter = (getattr(asyncio.tasks, name) for name in ("_leave_task", "_enter_task"))
    leave(task.get_loop(), task)
    try:
        yield
    finally:
        enter(task.get_loop(), task)
