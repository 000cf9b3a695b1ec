"""Plugins' calls as tasks: each one's end is awaited, bounded and named.

A call runs in a task of its own, named ``plugin:hook``: what it does to its task is no
business of ours, and ours is no business of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Generic, Self, TypeAlias, TypeVar

import attrs
import pluggy

from gsd_core.errors import PluginError, StepError

from .isolation import Call, Fault, PluginFailure, classify_exception, enter_call, guard_tasks

log = logging.getLogger(__name__)

R = TypeVar("R")
Run: TypeAlias = asyncio.Task[Any]
Given: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Any], str]
Report: TypeAlias = Callable[[PluginFailure], None]

_alive: set[Run] = set()  # asyncio itself keeps weak references only


@attrs.frozen(kw_only=True)
class Outcome(Generic[R]):
    """What one plugin made of one hook call; a success if ``error`` is ``None``."""

    plugin: str
    value: R | None = None
    error: Fault | None = None


@attrs.frozen
class CallGroup:
    """The tasks of one hook call; on leaving, each is done, or was named and abandoned.

    *deciding*: a ``StepError`` is what the plugin has to say, for the caller to raise, and no failure.
    """

    hook: str
    grace: timedelta
    report: Report
    deciding: bool = False
    calls: dict[Run, Call] = attrs.field(factory=dict[Run, Call])
    stopped: dict[Run, float] = attrs.field(factory=dict[Run, float])  # since when

    def add(self, impl: pluggy.HookImpl, given: Given, check: Check) -> Run:
        """Start *impl*; *check* says what is wrong with its value, or nothing."""
        call = Call(impl.plugin_name, self.hook)
        context = copy_context()
        context.run(enter_call, call)
        run = _run(call, impl, given, check)
        loop = asyncio.get_running_loop()
        guard_tasks(loop)
        task = loop.create_task(run, name=call.name, context=context)
        self.calls[task] = call
        _alive.add(task)
        task.add_done_callback(_bury)
        return task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for what was stopped; who cancels us meanwhile waits too, for the grace bounds it."""
        self.stop()
        cancelled: asyncio.CancelledError | None = None
        waiting: set[Run] = {task for task in self.stopped if not task.done()}
        while waiting:
            try:
                await asyncio.wait(waiting, timeout=min(self._patience(task) for task in waiting))
            except asyncio.CancelledError as exc:
                cancelled = exc
            late = {task for task in waiting if not task.done() and self._patience(task) <= 0}
            for task in late:
                self._give_up(task)
            waiting = {task for task in waiting - late if not task.done()}
        if cancelled is not None:
            raise cancelled

    def stop(self) -> None:
        """Cancel, once, whatever still runs."""
        now = time.monotonic()
        for task in self.calls:
            if task not in self.stopped and task.cancel():
                self.stopped[task] = now

    async def first(self) -> Outcome[Any] | None:
        """Wait for the first call with a value; the failures before it are reported."""
        pending = set(self.calls)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [self.outcome(task) for task in self.calls if task in done]
            if winner := next((found for found in outcomes if found.value is not None), None):
                return winner
        return None

    async def all(self, limit: timedelta | None = None) -> None:
        """Wait for all calls, at most for *limit*; stop those that run longer."""
        if self.calls:
            await asyncio.wait(self.calls, timeout=limit.total_seconds() if limit else None)
        self.stop()

    def outcome(self, task: Run) -> Outcome[Any]:
        """Tell what became of *task*, and report its failure; raise what the core had raised in it.

        One that we stopped is an error, whatever it returned.
        """
        if task in self.stopped:
            return self._failed(task, self._error(task, "ran out of time"))
        if task.cancelled() and task.cancelling():
            return self._failed(task, self._error(task, "cancelled itself"))
        outcome: Outcome[Any] = task.result()
        return self._failed(task, outcome.error) if outcome.error else outcome

    def _error(self, task: Run, why: str) -> PluginError:
        return PluginError(self.calls[task].plugin, self.hook, why)

    def _failed(self, task: Run, error: Fault) -> Outcome[Any]:
        plugin = self.calls[task].plugin
        if not (self.deciding and isinstance(error, StepError)):
            report_failure(self.report, plugin, self.hook, error)
        return Outcome(plugin=plugin, error=error)

    def _patience(self, task: Run) -> float:
        """Seconds that *task* may still take to end; a plugin that waits for the core is not late."""
        call, grace = self.calls[task], self.grace.total_seconds()
        if call.depth:
            return max(grace, 0.01)
        return max(self.stopped[task], call.left) + grace - time.monotonic()

    def _give_up(self, task: Run) -> None:
        self._failed(task, self._error(task, "ignores its cancellation"))
        abandon_task(task)


async def _run(call: Call, impl: pluggy.HookImpl, given: Given, check: Check) -> Outcome[Any]:
    """Turn whatever the plugin does, nonsense included, into an outcome."""
    function: Any = impl.function
    try:
        value = await function(**declared_arguments(impl, given))
        problem = check(value)
    except BaseException as exc:
        return Outcome(plugin=call.plugin, error=classify_exception(exc, call))
    if problem:
        return Outcome(plugin=call.plugin, error=PluginError(call.plugin, call.hook, problem))
    return Outcome(plugin=call.plugin, value=value)


def declared_arguments(impl: pluggy.HookImpl, given: Given) -> dict[str, Any]:
    """Return those of the arguments that *impl* declares."""
    return {name: given[name] for name in impl.argnames}


def report_failure(report: Report, plugin: str, hook: str, error: Fault) -> None:
    """Log and report a failure, once: what passes several borders failed at the first of them."""
    if error.__dict__.get("reported"):
        return
    error.__dict__["reported"] = True
    log.warning("%s: %s", plugin, error, exc_info=error.__cause__)
    report(PluginFailure(plugin=plugin, hook=hook, error=_said(error)))


def _said(error: Fault) -> str:
    return error.cause_text if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"


def abandon_task(task: Run) -> None:
    """Take *task* off the list that the end of the loop waits for; it may go on until then."""
    _alive.add(task)  # for good: a pending task that is collected complains
    setattr(task, "_log_destroy_pending", False)  # noqa: B010 - for the type checkers
    # Documented for task types of one's own ("Extending asyncio"), underscore or not.
    getattr(asyncio.tasks, "_unregister_task")(task)  # noqa: B009 - for the type checkers


async def end_tasks(grace: timedelta) -> tuple[str, ...]:
    """Cancel every other task of this loop; name and abandon those that outlive *grace*.

    To be awaited last, so that the end of ``asyncio.run`` waits for nobody.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    late = (await asyncio.wait(tasks, timeout=grace.total_seconds()))[1] if tasks else set[Run]()
    for task in late:
        abandon_task(task)
    return tuple(sorted(task.get_name() for task in late))


def _bury(task: Run) -> None:
    """Forget *task*; its exception was looked at, or nobody waits for it any more."""
    _alive.discard(task)
    if not task.cancelled():
        task.exception()
