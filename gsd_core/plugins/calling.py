"""Call plugins, in the mode that each hook declares.

========= ======================= ==============================================================
mode      implementation          what the core does
========= ======================= ==============================================================
collect   ``def`` → items         merge the items of all plugins
pick      ``async`` → value, None ask the plugins that the settings list until one does not decline
race      ``async`` → value, None ask all concurrently; the first acceptable answer wins
fan_out   ``async`` → value       call all concurrently, each within a limit; an outcome for each
wrap      ``async``, ``call_next`` middleware around a step
subscribe ``async`` (event)       a bounded queue and a task for each plugin
========= ======================= ==============================================================

pluggy finds implementations and checks the names of their arguments. It cannot await, so awaiting,
racing, isolating and timing out happen here; :mod:`gsd_core.plugins.isolation` lists the ways in which
a call can end.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

import attrs
import pluggy

from gsd_core.errors import ConfigError, PluginError, StepError
from gsd_core.hook_markers import Mode, mode_of
from gsd_core.model.step import StepRequest

from .call_group import Arguments, CallGroup, Check, Outcome, Report, declared_arguments
from .isolation import Call, Fault, call_blocking, in_core, report_failure
from .plugin_task import finish
from .subscriptions import Subscription, delivering
from .validation import validate_item, validate_result, validate_type

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=StepRequest)
E = TypeVar("E")
CollectSpec: TypeAlias = Callable[P, Iterable[R]]
AsyncSpec: TypeAlias = Callable[P, Awaitable[R]]
DecliningSpec: TypeAlias = Callable[P, Awaitable[R | None]]


@attrs.frozen(kw_only=True)
class Collected(Generic[R]):
    """Every plugin's items with the plugin's name; a plugin that failed has none."""

    items: tuple[tuple[str, R], ...]
    failures: tuple[Fault, ...]


@attrs.frozen(kw_only=True)
class Hooks:
    """The hooks, with the plugins of *manager*, ready to call.

    *grace* is how long a cancelled plugin may clean up before it is ended and reported.
    *report* is called once for every failure of a plugin and every refused answer.
    *strict*: a plugin that fails to contribute is a ``ConfigError``.
    """

    manager: pluggy.PluginManager
    grace: timedelta = timedelta(seconds=5)
    report: Report = lambda _: None  # it has been logged already
    strict: bool = False

    def plugins_of(self, spec: Callable[..., Any]) -> tuple[str, ...]:
        """Return the names of the plugins that implement *spec*, in the order of their calls."""
        return tuple(impl.plugin_name for impl in self._impls(spec))

    def collect(
        self, spec: CollectSpec[P, R], key: Callable[[R], str], /, *args: P.args, **kwargs: P.kwargs
    ) -> Collected[R]:
        """Merge what all plugins contribute; the same *key* twice is a ``ConfigError``."""
        _check_mode(spec, "collect")
        hook, arguments = spec.__name__, bind(spec, *args, **kwargs)

        def contributions(impl: pluggy.HookImpl, call: Call) -> list[tuple[str, R]]:
            """Return the items of one plugin with their keys, all of them or none."""
            function: Any = impl.function
            items = list(function(**declared_arguments(impl, arguments)) or ())
            for item in items:
                if problem := validate_item(spec, item):
                    raise call.error(problem)
            return [(key(item), item) for item in items]

        items: list[tuple[str, R]] = []
        failures: list[Fault] = []
        owners: dict[str, str] = {}
        for impl in self._impls(spec):
            plugin = impl.plugin_name
            call = Call(plugin, hook)
            try:
                keyed = call_blocking(call, partial(contributions, impl, call))
            except (StepError, PluginError) as exc:
                report_failure(self.report, plugin, hook, exc)
                failures.append(exc)
                continue
            for name, item in keyed:
                if name in owners:
                    both = f"{owners[name]!r} and {plugin!r}"
                    hint = f"block one of them: -p no:{plugin}"
                    raise ConfigError(f"{both} both contribute {name!r} to {hook}", hint=hint)
                owners[name] = plugin
                items.append((plugin, item))
        if self.strict and failures:
            raise ConfigError("; ".join(map(str, failures)), hint=failures[0].hint)
        return Collected(items=tuple(items), failures=tuple(failures))

    async def pick(
        self,
        spec: DecliningSpec[P, R],
        names: tuple[str, ...],
        result: type[R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Outcome[R] | None:
        """Ask the plugins *names*, in that order, until one does not decline; check its *result*."""
        _check_mode(spec, "pick")

        def check(value: Any) -> str:
            return "" if value is None else validate_type(result, value)

        with in_core():
            arguments = bind(spec, *args, **kwargs)
            installed = self.plugins_of(spec)
            for name in names:
                if name not in installed:
                    known = ", ".join(map(repr, sorted(installed))) or "none"
                    raise ConfigError(f"unknown plugin {name!r} for {spec.__name__}; installed: {known}")
            impls = self._impls(spec)
            for impl in [impl for name in names for impl in impls if impl.plugin_name == name]:
                outcome = await _call(self._group(spec, deciding=True), impl, arguments, check)
                if outcome.error:
                    raise outcome.error
                if outcome.value is not None:
                    return outcome
        return None

    async def race(
        self,
        spec: DecliningSpec[P, R],
        accept: Callable[[R], bool | str],
        won: Callable[[Outcome[R]], Awaitable[None]] | None = None,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Outcome[R] | None:
        """Ask all concurrently; the first answer for which *accept* returns ``True`` wins.

        Otherwise *accept* returns why the answer is refused.
        The losers are cancelled, then *won* is awaited, then the losers get their grace: so the answer is
        recorded before anything else can happen.
        """
        _check_mode(spec, "race")

        def check(value: Any) -> str:
            if value is None:
                return ""
            if problem := validate_result(spec, value):
                return problem
            verdict = accept(value)
            return "" if verdict is True else f"answer refused: {verdict or 'not acceptable'}"

        with in_core():
            async with self._start_all(spec, bind(spec, *args, **kwargs), check) as group:
                winner = await group.first()
                group.stop()
                if winner and won:
                    await won(winner)
        return winner

    async def fan_out(
        self, spec: AsyncSpec[P, R], limit: timedelta, /, *args: P.args, **kwargs: P.kwargs
    ) -> list[Outcome[R]]:
        """Call all concurrently, each within *limit*; no plugin affects another."""
        _check_mode(spec, "fan_out")
        return await self.try_out(spec, limit, *args, **kwargs)

    async def try_out(
        self, spec: AsyncSpec[P, R], limit: timedelta, /, *args: P.args, **kwargs: P.kwargs
    ) -> list[Outcome[R]]:
        """Call all concurrently, regardless of the hook's mode: to check plugins, not to run them."""
        with in_core():
            check = partial(validate_result, spec)
            async with self._start_all(spec, bind(spec, *args, **kwargs), check) as group:
                await group.all(limit)
            return [group.outcome(call) for call in group.calls]

    def wrap(
        self,
        spec: Callable[[A, Callable[[A], Awaitable[R]]], Awaitable[R]],
        core: Callable[[A], Awaitable[R]],
        result: type[R],
        changed: Callable[[R, str], object] = lambda _, __: None,
        /,
    ) -> Callable[[A], Awaitable[R]]:
        """Return *core* inside every plugin's wrapper, the first plugin outermost.

        *changed* gets each result that is not the last one of the wrapper's own call, with the wrapper's
        plugin; it may raise a ``PluginError``.
        """
        _check_mode(spec, "wrap")

        async def run(impl: pluggy.HookImpl, inner: Callable[[A], Awaitable[R]], request: A, /) -> R:
            call_next = NextCall(request, inner)

            def check(value: Any) -> str:
                # A result that came from the core has been checked already.
                if call_next.results and value is call_next.results[-1]:
                    return ""
                if not (problem := validate_type(result, value)):
                    changed(value, impl.plugin_name)
                return problem

            with in_core():
                async with self._group(spec, deciding=True) as group:
                    call = group.add(impl, bind(spec, request, call_next), check)
                    try:
                        await group.all()
                    finally:
                        group.stop()
                        await call_next.end()
                outcome = group.outcome(call)
                if outcome.error:
                    raise outcome.error
                return cast("R", outcome.value)

        for impl in reversed(self._impls(spec)):
            core = partial(run, impl, core)
        return core

    @asynccontextmanager
    async def subscribe(
        self, spec: Callable[[E], Awaitable[None]], size: int = 1000, /
    ) -> AsyncGenerator[Callable[[E], None], None]:
        """Yield a function that queues an event for every plugin, in order, and does not wait.

        A plugin that falls more than *size* events behind misses the oldest. On leaving, each has the
        grace to process what is left.
        """
        _check_mode(spec, "subscribe")

        async def deliver(impl: pluggy.HookImpl, event: Any) -> Fault | None:
            check = partial(validate_result, spec)
            outcome = await _call(self._group(spec), impl, bind(spec, event), check)
            return outcome.error

        subscriptions = [
            Subscription(impl.plugin_name, spec.__name__, size, partial(deliver, impl), self.report)
            for impl in self._impls(spec)
        ]

        def publish(event: E) -> None:
            for subscription in subscriptions:
                subscription.put(event)

        async with delivering(subscriptions, self.grace):
            yield publish

    def _impls(self, spec: Callable[..., Any]) -> Sequence[pluggy.HookImpl]:
        caller: pluggy.HookCaller = getattr(self.manager.hook, spec.__name__)
        # By name, so that the order does not depend on what was installed or loaded first.
        return sorted(caller.get_hookimpls(), key=lambda i: (i.trylast - i.tryfirst, i.plugin_name))

    def _group(self, spec: Callable[..., Any], *, deciding: bool = False) -> CallGroup:
        return CallGroup(spec.__name__, self.grace, self.report, deciding)

    def _start_all(self, spec: Callable[..., Any], arguments: Arguments, check: Check) -> CallGroup:
        group = self._group(spec)
        for impl in self._impls(spec):
            group.add(impl, arguments, check)
        return group


async def _call(group: CallGroup, impl: pluggy.HookImpl, arguments: Arguments, check: Check) -> Outcome[Any]:
    async with group:
        call = group.add(impl, arguments, check)
        await group.all()
    return group.outcome(call)


def bind(spec: Callable[..., Any], /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name; a wrong call is the core's own ``TypeError``, not a plugin's."""
    return inspect.signature(spec).bind(*args, **kwargs).arguments


def _check_mode(spec: Callable[..., Any], mode: Mode) -> None:
    declared = mode_of(spec)
    if declared != mode:
        raise TypeError(f"{spec.__name__} declares the mode {declared!r} and cannot be called by {mode!r}")


@attrs.frozen
class NextCall(Generic[A, R]):
    """Calls *inner* with the wrapper's request but the identity of *request*; keeps the results.

    The rest of the chain runs in a task of the core, so that no plugin can leave it running: once the wrapper
    has ended or was cancelled, its calls have ended too.
    """

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
