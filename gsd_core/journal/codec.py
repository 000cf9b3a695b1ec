"""Values to JSON data and back, for every word of :mod:`gsd_core`.

Times are aware ISO 8601 text, durations are seconds, dollars are text, paths are POSIX text.
A member of a union of our own classes carries its class's name as ``type``.
Keys that a newer version added are passed over; anything else that does not fit is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gsd_core.errors import JournalError
from gsd_core.model.agent import Permission
from gsd_core.model.step import Outcome
from gsd_core.planning.changes import Change

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

UNIONS: tuple[Any, ...] = (Outcome, Change, Permission)
TAG = "type"


def unstructure(value: Any, kind: Any = None) -> Any:
    """Return *value* as JSON data; *kind* is its declared type if that is a union or a collection of one."""
    return _converter().unstructure(value, unstructure_as=kind)


@overload
def structure(data: Any, kind: type[T]) -> T: ...
@overload
def structure(data: Any, kind: object) -> Any: ...
def structure(data: Any, kind: Any) -> Any:
    """Return JSON *data* as a value of *kind*; raise ``JournalError`` naming every path that does not fit."""
    from cattrs import BaseValidationError, transform_error  # slow to import

    try:
        return _converter().structure(data, kind)
    except BaseValidationError as error:
        problems = "; ".join(transform_error(error))
    except (ValueError, TypeError, KeyError) as error:
        problems = f"{type(error).__name__}: {error}"
    name = getattr(kind, "__name__", str(kind))
    raise JournalError(f"not a {name}: {problems}", hint="it was written by another version, or damaged")


@cache
def _converter() -> Converter:
    from cattrs import Converter  # slow to import
    from cattrs.strategies import configure_tagged_union

    converter = Converter(unstruct_collection_overrides={tuple: list})
    for kind, down, up in _LEAVES:
        converter.register_unstructure_hook(kind, down)
        converter.register_structure_hook(kind, up)
    for kind in (str, int, bool, float):
        converter.register_structure_hook(kind, _as_it_is)
    for union in UNIONS:
        configure_tagged_union(union, converter, tag_name=TAG)
    return converter


def _as_it_is(data: Any, kind: type) -> Any:
    """Return *data* if it is a *kind* already: ``"1"`` is no number and 1 is no text."""
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(data, allowed) or (isinstance(data, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {data!r:.80}")
    return kind(data)


def _read_time(data: Any, _: object) -> datetime:
    time = datetime.fromisoformat(_as_it_is(data, str))
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone: {data!r}")
    return time


def _write_time(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone: {time}")
    return time.isoformat()


def _read_decimal(data: Any, _: object) -> Decimal:
    try:
        return Decimal(_as_it_is(data, str))
    except InvalidOperation:
        raise ValueError(f"not a number: {data!r:.80}") from None


def _read_path(data: Any, _: object) -> Path:
    return Path(_as_it_is(data, str))


def _read_duration(data: Any, _: object) -> timedelta:
    return timedelta(seconds=_as_it_is(data, float))


_LEAVES: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]], ...] = (
    (Path, Path.as_posix, _read_path),
    (datetime, _write_time, _read_time),
    (timedelta, timedelta.total_seconds, _read_duration),
    (Decimal, str, _read_decimal),
)
