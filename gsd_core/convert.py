"""Make a setting's value of what a file, a variable or a flag says."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def structure_setting(value: Any, kind: Any) -> Any:
    """Return *value* as *kind* (a field's type); raise ``ValueError`` saying what was expected."""
    origin = get_origin(kind)
    if origin is Literal:
        return _one_of(value, get_args(kind))
    if origin is tuple:
        return tuple(structure_setting(part, get_args(kind)[0]) for part in _parts(value))
    if origin in (Union, types.UnionType):
        inner = [k for k in get_args(kind) if k is not type(None)]
        return None if value is None or value == "" else structure_setting(value, inner[0])
    return _scalar(value, kind)


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, not {value!r}")
    return cast("Sequence[Any]", value)


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise ValueError(f"expected one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def _scalar(value: Any, kind: Any) -> Any:
    if kind is bool:
        return _boolean(value)
    if kind is timedelta:
        return _duration(value)
    if kind is Decimal:
        return _decimal(value)
    if kind is str:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ValueError(f"expected a text, not {value!r}")
        return str(value)
    if kind is int:
        if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
            raise ValueError(f"expected a whole number, not {value!r}")
        return int(value)
    if kind is float:
        return float(value)
    return Path(value) if kind is Path else value


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"expected true or false, not {value!r}")


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
    if not match:
        raise ValueError(f"expected seconds or a time like '10m', not {value!r}")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2] or "s"])


def _decimal(value: Any) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"expected a number, not {value!r}") from None
    if not number.is_finite() or number < 0:
        raise ValueError(f"expected an amount, not {value!r}")
    return number
