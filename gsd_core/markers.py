"""Mark a function as a hook's specification, or as an implementation of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import pluggy

PROJECT = "gsd"

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Mark(Protocol[P, R]):
    """Accepts a function, or a method, with the spec's exact signature."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[S, P], R], /) -> Callable[Concatenate[S, P], R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Mark *function*."""


def implements(spec: Callable[P, R], *, tryfirst: bool = False, trylast: bool = False) -> Mark[P, R]:
    """Mark a function or method as implementing *spec*; a type checker checks that it does."""
    name: str = getattr(spec, "__name__")  # noqa: B009 - a ParamSpec callable has no __name__ for the type checkers

    def mark(function: Any, /) -> Any:
        return hookimpl(function, specname=name, tryfirst=tryfirst, trylast=trylast)

    return mark
