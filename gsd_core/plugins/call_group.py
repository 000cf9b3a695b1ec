"""The calls of one hook: they run concurrently, each in its own task and with its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

import attrs
import pluggy

from gsd_core.errors import PluginRefused, StepError

from .isolation import Call, Fault, PluginFailure, Reason, classify_exception, report_failure, traced
from .plugin_task import PluginTask, finish

R = TypeVar("R")
Arguments: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Any], str]
Report: TypeAlias = Callable[[PluginFailure], None]


@attrs.frozen(kw_only=True)
class Outcome(Generic[R]):
    """How one plugin's call of one hook ended.

    The call failed if *error* is set; *reason* says how. Otherwise *value* is what the plugin returned.
    That may be ``None``: the plugin declined, has no opinion, or found nothing.
    """

    plugin: str
    value: R | None = None
    error: Fault | None = None
    reason: Reason | Literal[""] = ""


@attrs.frozen
class CallGroup:
    """The calls of *hook*. On exit all have ended, and those that ignored their cancellation are reported.

    *deciding*: a ``StepError`` is the plugin's result, for the caller to raise, and is not reported; nor is
    what the machine refused.
    """

    hook: str
    grace: timedelta
    report: Report
    deciding: bool = False
    calls: list[PluginTask] = attrs.field(factory=list[PluginTask])

    def add(self, impl: pluggy.HookImpl, arguments: Arguments, check: Check) -> PluginTask:
        """Start *impl*; *check* returns what is wrong with its value, or an empty string."""
        call = Call(impl.plugin_name, self.hook)
        running = PluginTask.start(call, _run(call, impl, arguments, check), self.grace)
        self.calls.append(running)
        return running

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if not all(call.task.done() for call in self.calls):
            await finish(self._end())

    async def _end(self) -> None:
        ended = await asyncio.gather(*(call.end() for call in self.calls))
        for call, in_time in zip(self.calls, ended, strict=True):
            if not in_time:
                self._failed(call, call.call.error("ignores its cancellation"), "ignored cancellation")

    def stop(self) -> None:
        """Cancel the calls that are still running."""
        for call in self.calls:
            call.stop()

    async def first(self) -> Outcome[Any] | None:
        """Wait for the first call with a value; report the failures before it."""
        pending = {call.task for call in self.calls}
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [self.outcome(call) for call in self.calls if call.task in done]
            if winner := next((outcome for outcome in outcomes if outcome.value is not None), None):
                return winner
        return None

    async def all(self, limit: timedelta | None = None) -> None:
        """Wait for all calls, for *limit* at most; cancel those that take longer."""
        if self.calls:
            tasks = [call.task for call in self.calls]
            await asyncio.wait(tasks, timeout=limit.total_seconds() if limit else None)
        self.stop()

    def outcome(self, call: PluginTask) -> Outcome[Any]:
        """Return how *call* ended, and report its failure; raise an exception that came from the core.

        A call that was cancelled for taking too long has failed, even if it returned a value.
        """
        if call.stopped:
            return self._failed(call, call.call.error("ran out of time"), "timeout")
        if call.task.cancelled() and call.task.cancelling():
            return self._failed(call, call.call.error("cancelled itself"), "cancelled itself")
        outcome: Outcome[Any] = call.task.result()
        if outcome.error and outcome.reason:
            return self._failed(call, outcome.error, outcome.reason)
        return outcome

    def _failed(self, call: PluginTask, error: Fault, reason: Reason) -> Outcome[Any]:
        if not (self.deciding and isinstance(error, StepError | PluginRefused)):
            report_failure(self.report, call.call.plugin, self.hook, error, reason)
        return Outcome(plugin=call.call.plugin, error=error, reason=reason)


async def _run(call: Call, impl: pluggy.HookImpl, arguments: Arguments, check: Check) -> Outcome[Any]:
    """Call the plugin; return a value, an invalid value and an exception all as an outcome."""
    function: Any = impl.function
    with traced(call) as ended:
        try:
            value = await function(**declared_arguments(impl, arguments))
            problem = check(value)
        except BaseException as exc:
            error = classify_exception(exc, call)
            ended(error)
            return Outcome(plugin=call.plugin, error=error, reason="raised")
        ended(value)
    if problem:
        return Outcome(plugin=call.plugin, error=call.error(problem), reason="invalid")
    return Outcome(plugin=call.plugin, value=value)


def declared_arguments(impl: pluggy.HookImpl, arguments: Arguments) -> dict[str, Any]:
    """Return those of the arguments that *impl* declares."""
    return {name: arguments[name] for name in impl.argnames}
