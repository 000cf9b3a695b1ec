"""What plugins contribute through hooks that are plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import attrs
import pluggy

from .border import Call, Fault, call_blocking
from .calls import Given, Outcome, Report, tell, wanted
from .errors import ConfigError, PluginError, StepError
from .shapes import misfit_item

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
        tell(report, call.plugin, call.hook, exc)
        return Outcome(plugin=call.plugin, error=exc)
    return Outcome(plugin=call.plugin, value=items)


def _named_items(
    spec: Callable[..., Any], impl: pluggy.HookImpl, given: Given, name: Callable[[Any], str], call: Call
) -> list[tuple[str, Any]]:
    function: Any = impl.function
    items = list(function(**wanted(impl, given)) or ())
    for item in items:
        if problem := misfit_item(spec, item):
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
