"""Settings as plugins see them: classes with defaults, bound to a run.

Two runs may share a process, so there is no module-level state: the values are found through
a context variable that the run sets before it calls any plugin.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import attrs

T = TypeVar("T")

_bound: ContextVar[Mapping[type, object] | None] = ContextVar("gsd_settings", default=None)


def setting(default: Any, *, flag: str = "", help: str = "") -> Any:  # noqa: A002 - click's own word
    """Declare a field of a settings class: its *default*, and its *flag* on ``gsd run``, if any.

    *default* may be a callable, called for each instance. A flag's values are those of the
    field's type; a tuple's flag may be repeated.
    """
    metadata = {"flag": flag, "help": help}
    if callable(default):
        return attrs.field(factory=default, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


def settings_of(kind: type[T]) -> T:
    """Return the run's values of the settings class *kind*; its defaults outside any run."""
    values = _bound.get() or {}
    return cast("T", values[kind]) if kind in values else kind()


@contextmanager
def bind_settings(values: Mapping[type, object]) -> Generator[None]:
    """Let :func:`settings_of` find *values*, by their class, in this context and its tasks."""
    token = _bound.set(values)
    try:
        yield
    finally:
        _bound.reset(token)
