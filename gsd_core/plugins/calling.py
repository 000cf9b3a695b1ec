"""What plugins contribute through hooks that are plain functions.

Call pluggy's hooks from asyncio, by their spec function.

========= ======================= ==============================================================
collect   ``def`` → items         merge what all contribute
pick      ``async`` → value, None ask the plugins that the settings list until one does not decline
race      ``async`` → value, None ask all at once, the first acceptable answer wins
fan_out   ``async`` → value       all at once, each within a limit, an outcome for each
wrap      ``async``, ``call_next`` an onion around a step
subscribe ``async`` (event)       a bounded queue and a pump for each plugin
========= ======================= ==============================================================

pluggy finds implementations and checks their arguments. It cannot await, so awaiting, racing,
isolating and timing out happen here; what may leave a plugin is said in :mod:`gsd_core.plugins.isolation`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import attrs
import pluggy

from gsd_core.errors import ConfigError, PluginError, StepError
from gsd_core.model.step import StepRequest

from .call_group import CallGroup, Check, Given, Outcome, Report, declared_arguments, report_failure
from .isolation import Call, Fault, PluginFailure, call_blocking, in_core
from .middleware import wrap_call
from .subscriptions import Subscription, drained
from .validation import validate_item, validate_result

R = TypeVar("R")


@attrs.frozen(kw_only=True)
class Collected(Generic[R]):
    """Every plugin's items with the plugin's name; a plugin that failed has none."""

    items: tuple[tuple[str, R], ...]
    failures: tuple[Fault, ...]


def gather(
    spec: Callable[..., Any],
    impls: Sequence[pluggy.HookImpl],
    given: Given,
    name: Callable[[Any], str],
    report: Report,
) -> Collected[Any]:
    """Merge what *impls* contribute; the same *name* twice is a ``ConfigError``."""
    offers = [_offer(spec, impl, given, name, report) for impl in impls]
    _refuse_twins(spec.__name__, ((o.plugin, key) for o in offers for key, _ in o.value or ()))
    return Collected(
        items=tuple((o.plugin, item) for o in offers for _, item in o.value or ()),
        failures=tuple(offer.error for offer in offers if offer.error),
    )


def _offer(
    spec: Callable[..., Any],
    impl: pluggy.HookImpl,
    given: Given,
    name: Callable[[Any], str],
    report: Report,
) -> Outcome[list[tuple[str, Any]]]:
    """Pair what one plugin contributes with its names, all of it or nothing."""
    call = Call(impl.plugin_name, spec.__name__)
    try:
        items = call_blocking(call, lambda: _named_items(spec, impl, given, name, call))
    except (StepError, PluginError) as exc:
        report_failure(report, call.plugin, call.hook, exc)
        return Outcome(plugin=call.plugin, error=exc)
    return Outcome(plugin=call.plugin, value=items)


def _named_items(
    spec: Callable[..., Any], impl: pluggy.HookImpl, given: Given, name: Callable[[Any], str], call: Call
) -> list[tuple[str, Any]]:
    function: Any = impl.function
    items = list(function(**declared_arguments(impl, given)) or ())
    for item in items:
        if problem := validate_item(spec, item):
            raise PluginError(call.plugin, call.hook, problem)
    return [(name(item), item) for item in items]


def _refuse_twins(hook: str, names: Iterable[tuple[str, str]]) -> None:
    """Check that no two of the pairs of plugin and name share the name."""
    owners: dict[str, str] = {}
    for plugin, name in names:
        if name in owners:
            both = f"{owners[name]!r} and {plugin!r}"
            hint = f"block one of them: -p no:{plugin}"
            raise ConfigError(f"{both} both contribute {name!r} to {hook}", hint=hint)
        owners[name] = plugin


P = ParamSpec("P")
A = TypeVar("A", bound=StepRequest)
E = TypeVar("E")
Offers: TypeAlias = Callable[P, Iterable[R]]
Runs: TypeAlias = Callable[P, Awaitable[R]]
Asks: TypeAlias = Callable[P, Awaitable[R | None]]


def _nobody(failure: PluginFailure) -> None:
    """Report to nobody; the log has it."""


@attrs.frozen(kw_only=True)
class Hooks:
    """The ways to call.

    *grace* is how long a cancelled plugin may clean up; then it is named and left behind.
    *report* is called once for every failure of a plugin and every refused answer.
    *strict*: a plugin that fails to contribute is a ``ConfigError``.
    """

    manager: pluggy.PluginManager
    grace: timedelta = timedelta(seconds=5)
    report: Report = _nobody
    strict: bool = False

    def plugins_of(self, spec: Callable[..., Any]) -> tuple[str, ...]:
        """Return the names of the plugins that implement *spec*, in the order of their calls."""
        return tuple(impl.plugin_name for impl in self._impls(spec))

    def collect(
        self, spec: Offers[P, R], name: Callable[[R], str], /, *args: P.args, **kwargs: P.kwargs
    ) -> Collected[R]:
        """Merge what all contribute; the same *name* twice is a ``ConfigError``."""
        given = bind(spec, *args, **kwargs)
        found = gather(spec, self._impls(spec), given, name, self.report)
        if self.strict and found.failures:
            raise ConfigError("; ".join(map(str, found.failures)), hint=found.failures[0].hint)
        return found

    async def pick(
        self, spec: Asks[P, R], names: tuple[str, ...], result: type[R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[R] | None:
        """Ask the plugins *names*, in that order, until one does not decline; check its *result*."""
        with in_core():
            given, check = bind(spec, *args, **kwargs), partial(_other_than, result, None)
            for impl in _listed(_name(spec), self._impls(spec), names):
                outcome = await self._ask(spec, impl, given, check, deciding=True)
                if outcome.error:
                    raise outcome.error
                if outcome.value is not None:
                    return outcome
        return None

    async def race(
        self,
        spec: Asks[P, R],
        accept: Callable[[R], bool | str],
        won: Callable[[Outcome[R]], Awaitable[None]] | None = None,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Outcome[R] | None:
        """Ask all at once; the first answer for which *accept* returns ``True`` wins.

        Anything else that *accept* returns is why the answer is refused.
        The losers are cancelled, then *won* is awaited, then the losers get their grace.
        """
        with in_core():
            given, check = bind(spec, *args, **kwargs), partial(_refused, spec, accept)
            async with self._start(spec, given, check) as heat:
                winner = await heat.first()
                heat.stop()
                if winner and won:
                    await won(winner)
        return winner

    async def fan_out(
        self, spec: Runs[P, R], limit: timedelta, /, *args: P.args, **kwargs: P.kwargs
    ) -> list[Outcome[R]]:
        """Run all at once, each within *limit*; none can spoil or delay another."""
        with in_core():
            given, check = bind(spec, *args, **kwargs), partial(validate_result, spec)
            async with self._start(spec, given, check) as heat:
                await heat.all(limit)
            return [heat.outcome(task) for task in heat.calls]

    def wrap(
        self,
        spec: Callable[[A, Callable[[A], Awaitable[R]]], Awaitable[R]],
        core: Callable[[A], Awaitable[R]],
        result: type[R],
        /,
    ) -> Callable[[A], Awaitable[R]]:
        """Return *core* inside every plugin's layer, the first layer outermost."""
        for impl in reversed(self._impls(spec)):
            core = wrap_call(
                partial(self._heat, spec, deciding=True),
                impl,
                core,
                partial(_other_than, result),
                partial(bind, spec),
            )
        return core

    @asynccontextmanager
    async def subscribe(
        self, spec: Callable[[E], Awaitable[None]], size: int = 1000, /
    ) -> AsyncGenerator[Callable[[E], None], None]:
        """Give a function that tells every plugin an event, at once and in order.

        A plugin that falls more than *size* events behind misses the oldest. On leaving, each
        has the grace to take in what is left.
        """
        pumps = [
            Subscription(impl.plugin_name, _name(spec), size, self._teller(spec, impl), self.report)
            for impl in self._impls(spec)
        ]

        def tell_all(event: E) -> None:
            for pump in pumps:
                pump.put(event)

        async with drained(pumps, self.grace):
            yield tell_all

    def _teller(
        self, spec: Callable[..., Any], impl: pluggy.HookImpl
    ) -> Callable[[Any], Awaitable[Fault | None]]:
        async def tell_one(event: Any) -> Fault | None:
            outcome = await self._ask(spec, impl, bind(spec, event), partial(validate_result, spec))
            return outcome.error

        return tell_one

    def _impls(self, spec: Callable[..., Any]) -> Sequence[pluggy.HookImpl]:
        caller: pluggy.HookCaller = getattr(self.manager.hook, _name(spec))
        return sorted(caller.get_hookimpls(), key=_rank)

    def _heat(self, spec: Callable[..., Any], *, deciding: bool = False) -> CallGroup:
        return CallGroup(_name(spec), self.grace, self.report, deciding)

    def _start(self, spec: Callable[..., Any], given: Given, check: Check) -> CallGroup:
        heat = self._heat(spec)
        for impl in self._impls(spec):
            heat.add(impl, given, check)
        return heat

    async def _ask(
        self,
        spec: Callable[..., Any],
        impl: pluggy.HookImpl,
        given: Given,
        check: Check,
        *,
        deciding: bool = False,
    ) -> Outcome[Any]:
        async with self._heat(spec, deciding=deciding) as heat:
            task = heat.add(impl, given, check)
            await heat.all()
        return heat.outcome(task)


def bind(spec: Callable[..., Any], /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Name the arguments; a wrong call is the core's own ``TypeError``, no plugin's."""
    return inspect.signature(spec).bind(*args, **kwargs).arguments


def _name(spec: Callable[..., Any]) -> str:
    return spec.__name__


def _rank(impl: pluggy.HookImpl) -> tuple[int, str]:
    return (-1 if impl.tryfirst else 1 if impl.trylast else 0), impl.plugin_name


def _listed(hook: str, impls: Sequence[pluggy.HookImpl], names: Collection[str]) -> list[pluggy.HookImpl]:
    """Return the implementations of the plugins *names*, in that order."""
    installed = {impl.plugin_name for impl in impls}
    for name in names:
        if name not in installed:
            known = ", ".join(map(repr, sorted(installed))) or "none"
            raise ConfigError(f"unknown plugin {name!r} for {hook}; installed: {known}")
    return [impl for name in names for impl in impls if impl.plugin_name == name]


def _other_than(result: type[Any], *values: Any) -> str:
    """Say that the last of *values* is no *result*, nor any of the others; empty if it is one."""
    *others, value = values
    if isinstance(value, result) or any(value is other for other in others):
        return ""
    return f"returned {type(value).__name__}, not {result.__name__}"


def _refused(spec: Callable[..., Any], accept: Callable[[Any], bool | str], value: Any) -> str:
    if value is None:
        return ""
    if problem := validate_result(spec, value):
        return problem
    verdict = accept(value)
    return "" if verdict is True else f"answer refused: {verdict or 'not acceptable'}"
