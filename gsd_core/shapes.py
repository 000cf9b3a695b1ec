"""Whether what a plugin returned is what its hook's annotation promises."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints


def misfit(spec: Callable[..., Any], value: object) -> str:
    """Say what is wrong with *value* as the result of *spec*; empty if nothing is.

    What a hook that returns nothing returns is nobody's business.
    """
    hint = promised(spec)
    if hint is types.NoneType or fits(value, hint):
        return ""
    return f"returned {_describe(value)}, not {_written(spec)}"


def misfit_item(spec: Callable[..., Any], item: object) -> str:
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
