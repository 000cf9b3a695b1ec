"""Whether a plugin fits the hooks: pluggy checks the names of arguments only.

Whether what a plugin returned is what its hook's annotation promises.

Whether what a plugin returned can be kept: every field, down to the last, is what its type says.
"""

from __future__ import annotations

import difflib
import inspect
import json
import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import pluggy

from gsd_core import hookspecs
from gsd_core.journal.codec import structure, unstructure

from .isolation import describe_exception

HOOKS: tuple[str, ...] = tuple(sorted(name for name in vars(hookspecs) if name.startswith("gsd_")))


def validate_plugin(manager: pluggy.PluginManager, plugin: object) -> str:
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


def validate_result(spec: Callable[..., Any], value: object) -> str:
    """Say what is wrong with *value* as the result of *spec*; empty if nothing is.

    What a hook that returns nothing returns is nobody's business.
    """
    hint = promised(spec)
    if hint is types.NoneType or fits(value, hint):
        return ""
    return f"returned {_describe(value)}, not {_written(spec)}"


def validate_item(spec: Callable[..., Any], item: object) -> str:
    """Say what is wrong with *item* as one of those that *spec* collects; empty if nothing is."""
    arguments: tuple[Any, ...] = get_args(promised(spec)) or (Any,)
    if fits(item, arguments[0]):
        return ""
    return f"contributed {_describe(item)} to {_written(spec)}"


def fits(value: object, hint: Any) -> bool:
    """Compare *value*, and the items of a sequence, with a type annotation."""
    if hint is Any:
        return True
    origin: Any = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, arm) for arm in get_args(hint))
    if origin is None:
        return not isinstance(hint, type) or isinstance(value, hint)
    if origin is Sequence:
        return _is_row(value) and all(fits(item, get_args(hint)[0]) for item in _items(value))
    return isinstance(value, origin)


@cache
def promised(spec: Callable[..., Any]) -> Any:
    """Return the annotation of what *spec* returns; ``Any`` if it names what is not imported."""
    try:
        return get_type_hints(spec).get("return", Any)
    except NameError:
        return Any


def _is_row(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _items(row: Any) -> Sequence[object]:
    return cast("Sequence[object]", row)


def _describe(value: object) -> str:
    kind = type(value).__name__
    if _is_row(value):
        return f"{kind} of {', '.join(sorted({type(item).__name__ for item in _items(value)})) or 'nothing'}"
    return kind


def _written(spec: Callable[..., Any]) -> str:
    return str(spec.__annotations__.get("return", "Any"))


def validate_storable(value: Any, kind: type[Any]) -> str:
    """Say why *value* is no good *kind*; empty if it is one, and comes back from the journal as it went."""
    try:
        structure(json.loads(json.dumps(unstructure(value, kind))), kind)
    except Exception as exc:  # whatever a plugin may have put into a field
        return f"returned a {kind.__name__} that cannot be kept: {describe_exception(exc)}"
    return ""
