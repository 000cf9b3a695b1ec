"""Check that a plugin matches the hooks, and that its results match their hook.

pluggy checks only the names of a plugin's arguments. Each ``validate_*`` function returns what
is wrong, or an empty string.
"""

from __future__ import annotations

import difflib
import inspect
import json
import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pluggy

from gsd_core import hookspecs
from gsd_core.codec import structure, unstructure
from gsd_core.hook_markers import stability_of

from .isolation import describe

MAX_STORED = 8 << 20
"""How many bytes a value of a plugin may have as JSON, so that the fact with it is below ``MAX_FACT``."""

HOOKS: tuple[str, ...] = tuple(sorted(name for name in vars(hookspecs) if name.startswith("gsd_")))

SETTINGS_OF_HOOKS = {
    "gsd_run_agent": "agent",
    "gsd_execute_step": "execute",
    "gsd_workspace": "workspace",
    "gsd_sandbox": "sandboxes",
    "gsd_session_host": "session_host",
    "gsd_dispatch": "dispatch",
}
"""The setting of the section ``run`` that lists which plugins are asked, by hook."""


def validate_plugin(manager: pluggy.PluginManager, plugin: object) -> str:
    """Say what is wrong with the registered *plugin*."""
    for problem in (*_unmarked_functions(plugin), *_wrong_implementations(manager, plugin)):
        return problem
    if not hooks_of(manager, plugin):
        return "implements no hook; mark functions with @implements(…) of gsd_core"
    return ""


def hooks_of(manager: pluggy.PluginManager, plugin: object) -> tuple[str, ...]:
    """Return the names of the hooks that the registered *plugin* implements."""
    return tuple(sorted(caller.name for caller in manager.get_hookcallers(plugin) or ()))


def deprecations(hooks: Sequence[str]) -> tuple[str, ...]:
    """Say which of these hooks are deprecated, and what to use instead."""
    specs = {name: stability_of(getattr(hookspecs, name)) for name in hooks if hasattr(hookspecs, name)}
    old = {name: found.instead for name, found in specs.items() if found.level == "deprecated"}
    return tuple(f"the hook {name} is deprecated: {instead}" for name, instead in old.items())


def nearest(name: str, known: tuple[str, ...]) -> str:
    """Return ``; did you mean …?`` with the most similar of *known*, to end a message with."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def _unmarked_functions(plugin: object) -> Iterator[str]:
    """Describe functions that look like hooks, but that pluggy does not see."""
    for name, value in inspect.getmembers_static(plugin):
        if not name.startswith("gsd_") or not inspect.isfunction(value):
            continue
        # An imported spec, or a marked implementation.
        if any(hasattr(value, f"{hookspecs.PROJECT}_{kind}") for kind in ("spec", "impl")):
            continue
        if name in HOOKS:
            yield f"{name} is not marked; put @implements({name}) above it"
        else:
            yield f"there is no hook {name!r}{nearest(name, HOOKS)}"


def _wrong_implementations(manager: pluggy.PluginManager, plugin: object) -> Iterator[str]:
    name = manager.get_name(plugin)
    for caller in manager.get_hookcallers(plugin) or ():
        for impl in caller.get_hookimpls():
            if impl.plugin_name != name:
                continue
            if impl.wrapper or impl.hookwrapper:
                # pluggy would run a wrapper around all plugins at once, and outside of the isolation.
                yield f"{caller.name}: pluggy's wrappers are not supported; to wrap steps, use gsd_wrap_step"
            elif caller.spec is None:
                if not impl.optionalhook:
                    yield f"there is no hook {caller.name!r}{nearest(caller.name, HOOKS)}"
            else:
                is_async = inspect.iscoroutinefunction(caller.spec.function)
                same = inspect.iscoroutinefunction(impl.function) == is_async
                if not same or inspect.isasyncgenfunction(impl.function):
                    yield f"{caller.name} must be declared with {'async def' if is_async else 'def'!r}"


def validate_result(spec: Callable[..., Any], value: object) -> str:
    """Say what is wrong with *value* as the result of *spec*."""
    hint = return_type(spec)
    # What a hook without a result returns is ignored.
    if hint is types.NoneType or fits(value, hint):
        return ""
    return f"returned {_describe(value)}, not {_annotation_of(spec)}"


def validate_type(kind: type[Any], value: object) -> str:
    """Say that *value* is not a *kind*."""
    return "" if isinstance(value, kind) else f"returned {type(value).__name__}, not {kind.__name__}"


def validate_item(spec: Callable[..., Any], item: object) -> str:
    """Say what is wrong with *item* as one of those that *spec* collects."""
    arguments: tuple[Any, ...] = get_args(return_type(spec)) or (Any,)
    return "" if fits(item, arguments[0]) else f"contributed {_describe(item)} to {_annotation_of(spec)}"


def validate_storable(value: Any, kind: type[Any]) -> str:
    """Say why *value*, a *kind*, cannot be stored in the journal and read back; every field is checked.

    A value of more than ``MAX_STORED`` cannot either.
    """
    try:
        text = json.dumps(unstructure(value, kind))
        structure(json.loads(text), kind)
    except Exception as exc:  # a plugin may have put anything into a field
        return f"returned a {kind.__name__} that cannot be stored: {describe(exc)}"
    if len(text) > MAX_STORED:
        sizes = f"{len(text) / 1e6:.1f} MB instead of at most {MAX_STORED / 1e6:.1f} MB"
        return f"returned a {kind.__name__} that is too large to be stored: {sizes}"
    return ""


def fits(value: object, hint: Any) -> bool:
    """Return whether *value*, and the items of a collection, match a type annotation."""
    if hint is Any or hint is None:
        return True
    if hint in (int, float) and isinstance(value, int):
        return not isinstance(value, bool)
    origin: Any = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (tuple, list, set, frozenset):
        items: Any = value
        kinds = get_args(hint)
        if origin is tuple and kinds[-1:] != (...,):
            return isinstance(value, tuple) and len(items) == len(kinds) and all(map(fits, items, kinds))
        return isinstance(value, origin) and all(fits(item, kinds[0]) for item in items)
    if origin in (Union, types.UnionType):
        return any(fits(value, arm) for arm in get_args(hint))
    if origin is None:
        return not isinstance(hint, type) or isinstance(value, hint)
    if origin is Sequence:
        return _is_sequence(value) and all(fits(item, get_args(hint)[0]) for item in _items(value))
    return isinstance(value, origin)


@cache
def return_type(spec: Callable[..., Any]) -> Any:
    """Return the annotation of what *spec* returns; ``Any`` if it names something that is not imported.

    ``click`` is imported for type checking only, to keep the start fast.
    """
    try:
        return get_type_hints(spec).get("return", Any)
    except NameError:
        return Any


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _items(value: Any) -> Sequence[object]:
    return cast("Sequence[object]", value)


def _describe(value: object) -> str:
    kind = type(value).__name__
    if _is_sequence(value):
        return f"{kind} of {', '.join(sorted({type(item).__name__ for item in _items(value)})) or 'nothing'}"
    return kind


def _annotation_of(spec: Callable[..., Any]) -> str:
    return str(spec.__annotations__.get("return", "Any"))
