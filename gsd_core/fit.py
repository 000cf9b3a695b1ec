"""Whether a plugin fits the hooks: pluggy checks the names of arguments only."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any

import pluggy

from . import hookspecs

HOOKS: tuple[str, ...] = tuple(sorted(name for name in vars(hookspecs) if name.startswith("gsd_")))


def unfit(manager: pluggy.PluginManager, plugin: object) -> str:
    """Say what is wrong with the registered *plugin*; empty if nothing is."""
    problems = [*_unmarked(plugin), *_wrong_implementations(manager, plugin)]
    if problems:
        return problems[0]
    if not hooks_of(manager, plugin):
        return "implements no hook; mark functions with @implements(…) of gsd_core"
    return ""


def hooks_of(manager: pluggy.PluginManager, plugin: object) -> tuple[str, ...]:
    """Return the names of the hooks that the registered *plugin* implements."""
    return tuple(sorted(caller.name for caller in manager.get_hookcallers(plugin) or ()))


def nearest(name: str, known: tuple[str, ...]) -> str:
    """Return a question after the most similar of *known*, to end a message with."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def _wrong_implementations(manager: pluggy.PluginManager, plugin: object) -> Iterator[str]:
    name = manager.get_name(plugin)
    for caller in manager.get_hookcallers(plugin) or ():
        for impl in caller.get_hookimpls():
            if impl.plugin_name == name and (problem := _wrong(caller, impl)):
                yield problem


def _wrong(caller: pluggy.HookCaller, impl: pluggy.HookImpl) -> str:
    if impl.wrapper or impl.hookwrapper:
        return f"{caller.name}: pluggy's wrappers are not used here; for steps there is gsd_wrap_step"
    if caller.spec is None:
        return "" if impl.optionalhook else f"there is no hook {caller.name!r}{nearest(caller.name, HOOKS)}"
    wanted = inspect.iscoroutinefunction(caller.spec.function)
    if inspect.iscoroutinefunction(impl.function) != wanted or inspect.isasyncgenfunction(impl.function):
        return f"{caller.name} has to be declared with {'async def' if wanted else 'def'!r}"
    return ""


def _unmarked(plugin: object) -> Iterator[str]:
    """Name functions that look like hooks and that pluggy does not see."""
    for name, value in inspect.getmembers_static(plugin):
        if name.startswith("gsd_") and inspect.isfunction(value) and not _is_known(value):
            hint = "" if name in HOOKS else f"there is no hook {name!r}{nearest(name, HOOKS)}"
            yield hint or f"{name} is not marked; put @implements({name}) above it"


def _is_known(function: Any) -> bool:
    """A spec that was imported, or a marked implementation."""
    return hasattr(function, f"{hookspecs.PROJECT}_impl") or hasattr(function, f"{hookspecs.PROJECT}_spec")
