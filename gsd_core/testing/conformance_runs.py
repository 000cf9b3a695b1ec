"""How the conformance kit runs a plugin: to its end, twice at once, and cancelled."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from typing import Any

import attrs

from gsd_core.plugins.call_group import Outcome, end_tasks
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure

from .manager import make_hooks

GRACE = timedelta(seconds=5)
PROMPTLY = timedelta(seconds=1)
LIMIT = timedelta(seconds=10)
_CANCEL_AFTER = (0, 1, 3, 10)  # turns of the loop


def holds(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with *message* unless *condition* holds."""
    if not condition:
        raise AssertionError(message)


def check_call(plugin: object, spec: Callable[..., Any], *args: object, limit: timedelta = LIMIT) -> Any:
    """Run the plugin alone, twice at once and cancelled; return its value."""
    hooks = _hooks(plugin, spec)
    value = _run(_alone(hooks, spec, limit, *args))
    _run(_twice(plugin, spec, limit, *args))
    for turns in _CANCEL_AFTER:
        _run(_cancelled(hooks, spec, turns, *args))
    return value


def check_declines(plugin: object, spec: Callable[..., Any], *args: object) -> None:
    """Check that the plugin declines within a second."""
    value = _run(_alone(_hooks(plugin, spec), spec, PROMPTLY, *args))
    holds(value is None, f"{spec.__name__} had to decline by None, and returned {value!r}")


def contributed(plugin: object, spec: Callable[..., Any], *args: object) -> Any:
    """Return what the plugin contributes; twice, it must be as many."""
    hooks = _hooks(plugin, spec)
    number = itertools.count()
    first, again = (hooks.collect(spec, lambda _: str(next(number)), *args) for _ in range(2))
    for failure in (*first.failures, *again.failures):
        raise AssertionError(str(failure)) from failure
    holds(len(first.items) == len(again.items), f"{spec.__name__} contributes something else the second time")
    return tuple(item for _, item in first.items)


def check_contexts(
    contexts: Iterable[AbstractAsyncContextManager[object]],
    during: Callable[[Sequence[object]], None] = lambda _: None,
) -> Sequence[object]:
    """Enter and leave *contexts*, each within the grace; return what they gave."""
    given: Sequence[object] = _run(_entered(contexts, during))
    return given


@attrs.frozen(kw_only=True)
class Trying:
    """One hook of a plugin, to be called in every way; *limit* is the hook's own.

    For tools that judge a plugin step by step; tests use the functions of ``conformance``.
    """

    plugin: object
    spec: Callable[..., Any]
    limit: timedelta = LIMIT

    def timed(self, *args: object) -> tuple[Outcome[Any], float, float]:
        """Call it once; return the outcome, its seconds, and those of the loop's longest standstill."""
        timed: tuple[Outcome[Any], float, float] = _run(self._timed(args))
        return timed

    def twice(self, *args: object) -> None:
        """Call it twice at once; raise ``AssertionError`` if that fails or leaves a task."""
        _run(_twice(self.plugin, self.spec, self.limit, *args))

    def cancelled(self, *args: object) -> None:
        """Cancel it at several points; raise ``AssertionError`` if it does not stop or leaves a task."""
        for turns in _CANCEL_AFTER:
            _run(_cancelled(_hooks(self.plugin, self.spec), self.spec, turns, *args))

    async def _timed(self, args: tuple[object, ...]) -> tuple[Outcome[Any], float, float]:
        hooks, clock = _hooks(self.plugin, self.spec), asyncio.get_running_loop().time
        beats = [clock()]
        beating = asyncio.create_task(_beat(beats, clock))
        try:
            [outcome] = await hooks.fan_out(self.spec, self.limit, *args)
        finally:
            beating.cancel()
            await asyncio.wait([beating])
        beats.append(clock())
        return outcome, beats[-1] - beats[0], max(b - a for a, b in itertools.pairwise(beats))


async def _beat(beats: list[float], clock: Callable[[], float]) -> None:
    while True:
        await asyncio.sleep(0.01)
        beats.append(clock())


def _hooks(plugin: object, spec: Callable[..., Any]) -> Hooks:
    hooks = attrs.evolve(make_hooks(tried=plugin), grace=GRACE)
    holds("tried" in hooks.plugins_of(spec), f"the plugin does not implement {spec.__name__}")
    return hooks


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(_leaving_no_task(main))


async def _leaving_no_task(main: Coroutine[Any, Any, Any]) -> Any:
    try:
        value = await main
        left = sorted(t.get_name() for t in asyncio.all_tasks() - {asyncio.current_task()})
        holds(not left, f"left tasks behind: {', '.join(left)}")
        return value
    finally:
        await end_tasks(PROMPTLY)


async def _alone(hooks: Hooks, spec: Callable[..., Any], limit: timedelta, *args: object) -> Any:
    [outcome] = await hooks.fan_out(spec, limit, *args)
    return _value(outcome)


async def _twice(plugin: object, spec: Callable[..., Any], limit: timedelta, *args: object) -> None:
    runs = [_hooks(plugin, spec).fan_out(spec, limit, *args) for _ in range(2)]
    for [outcome] in await asyncio.gather(*runs):
        _value(outcome)


async def _cancelled(hooks: Hooks, spec: Callable[..., Any], turns: int, *args: object) -> None:
    heard: list[PluginFailure] = []
    listening = attrs.evolve(hooks, report=heard.append)
    task = asyncio.create_task(listening.fan_out(spec, timedelta(hours=1), *args))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    stuck = any("ignores its cancellation" in failure.error for failure in heard)
    holds(not stuck, f"{spec.__name__} did not stop within {GRACE} when cancelled")


async def _entered(
    contexts: Iterable[AbstractAsyncContextManager[object]], during: Callable[[Sequence[object]], None]
) -> Sequence[object]:
    async with asyncio.timeout(2 * GRACE.total_seconds()), AsyncExitStack() as stack:
        given = [await stack.enter_async_context(context) for context in contexts]
        during(given)
    return given


def _value(outcome: Outcome[Any]) -> Any:
    if outcome.error:
        raise AssertionError(str(outcome.error)) from outcome.error
    return outcome.value
