"""Conversion of values to JSON data and back, for every public class of :mod:`gsd_core`.

Times are aware ISO 8601 text, durations are seconds, amounts of dollars and paths (POSIX) are text.
A member of a union of public classes has the name of its class in the key ``type``. A ``_`` at the end of a
field's name is not part of the key. A field with ``omit`` in its metadata has no key while it is ``None``.
Keys that a newer version may have added are ignored; any other mismatch is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import attrs

from gsd_core.errors import JournalError
from gsd_core.model.agent import Permission
from gsd_core.model.step import Outcome
from gsd_core.planning.changes import Change

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

UNREADABLE = "another version wrote it, or it is damaged"
"""The hint of an error about data that does not fit its class."""

UNIONS: tuple[Any, ...] = (Outcome, Change, Permission)
TAG = "type"


def unstructure(value: Any, kind: Any = None, *, brief: bool = False) -> Any:
    """Return *value* as JSON data; *kind* is its declared type, needed for unions and collections of them.

    If it is *brief*, fields that have their default are left out.
    """
    return _converter(brief=brief).unstructure(value, unstructure_as=kind)


@overload
def structure(data: Any, kind: type[T]) -> T: ...
@overload
def structure(data: Any, kind: object) -> Any: ...
def structure(data: Any, kind: Any) -> Any:
    """Return JSON *data* as a value of *kind*; raise ``JournalError`` with the path of each mismatch."""
    from cattrs import BaseValidationError, transform_error  # slow to import

    try:
        return _converter(brief=False).structure(data, kind)
    except BaseValidationError as error:
        problems = "; ".join(transform_error(error))
    except (ValueError, TypeError, KeyError) as error:
        problems = f"{type(error).__name__}: {error}"
    name = getattr(kind, "__name__", str(kind))
    raise JournalError(f"not a {name}: {problems}", hint=UNREADABLE)


@cache
def _converter(*, brief: bool) -> Converter:
    from cattrs import Converter, override  # slow to import
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
    from cattrs.strategies import configure_tagged_union

    def is_special(kind: Any) -> bool:
        names = attrs.fields(kind) if attrs.has(kind) else ()
        return any(each.metadata or each.name.endswith("_") for each in names)

    def overrides(kind: Any) -> dict[str, Any]:
        return {
            each.name: override(
                rename=each.name.removesuffix("_"), omit_if_default=brief or each.metadata.get("omit", False)
            )
            for each in attrs.fields(kind)
        }

    def writer(kind: type[Any]) -> Any:
        return make_dict_unstructure_fn(kind, converter, **overrides(kind))

    def reader(kind: type[Any]) -> Any:
        return make_dict_structure_fn(kind, converter, **overrides(kind))

    converter = Converter(unstruct_collection_overrides={tuple: list}, omit_if_default=brief)
    for kind, down, up in _LEAVES:
        converter.register_unstructure_hook(kind, down)
        converter.register_structure_hook(kind, up)
    # cattrs would convert, for example "1" to 1, and so hide a mismatch.
    for kind in (str, int, bool, float):
        converter.register_structure_hook(kind, _unconverted)
    converter.register_unstructure_hook_func(lambda kind: kind == frozenset[str], sorted)
    converter.register_unstructure_hook_factory(is_special, writer)
    converter.register_structure_hook_factory(is_special, reader)
    for union in UNIONS:
        configure_tagged_union(union, converter, tag_name=TAG)
    return converter


def _unconverted(data: Any, kind: type) -> Any:
    """Return *data* if it is a *kind* already; an ``int`` is also a ``float``, a ``bool`` is neither."""
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(data, allowed) or (isinstance(data, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {data!r:.80}")
    return kind(data)


def _read_time(data: Any, _: object) -> datetime:
    time = datetime.fromisoformat(_unconverted(data, str))
    if time.tzinfo is None:
        raise ValueError(f"a time without a time zone: {data!r}")
    return time


def _write_time(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError(f"a time without a time zone: {time}")
    return time.isoformat()


def _read_decimal(data: Any, _: object) -> Decimal:
    try:
        return Decimal(_unconverted(data, str))
    except InvalidOperation:
        raise ValueError(f"not a number: {data!r:.80}") from None


_LEAVES: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]], ...] = (
    (Path, Path.as_posix, lambda data, _: Path(_unconverted(data, str))),
    (datetime, _write_time, _read_time),
    (timedelta, timedelta.total_seconds, lambda data, _: timedelta(seconds=_unconverted(data, float))),
    (Decimal, str, _read_decimal),
)
