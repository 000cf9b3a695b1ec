"""From an answer's class to its JSON schema, and from an agent's value to the class.

Both walk the same few types: text, whole numbers, choices (``Literal``), tuples, and attrs classes
of these. A field's ``metadata["key"]`` is its name in JSON, if that is not a name in Python.
What is not asked for is passed over: it harms nothing, and asking again costs money.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import attrs

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]


class Unreadable(ValueError):
    """A value that is not what was asked for; *complaints* say where and why, for the agent."""

    def __init__(self, complaints: tuple[str, ...]) -> None:
        super().__init__("; ".join(complaints))
        self.complaints = complaints


def schema_of(kind: type) -> Json:
    """Return the JSON schema of an answer's class; fields without a default are required."""
    fields = tuple(_fields(kind))
    return {
        "type": "object",
        "properties": {key: _schema(hint) for key, hint, _ in fields},
        "required": [key for key, _, field in fields if field.default is attrs.NOTHING],
        "additionalProperties": False,
    }


def _schema(hint: Any) -> Json:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if hint in (str, int):
        return {"type": "string" if hint is str else "integer"}
    return schema_of(hint)


def read(kind: type[T], value: object) -> T:
    """Return *value* as a *kind*; raise :class:`Unreadable` with every fault and its place."""
    if complaints := faults(kind, value):
        raise Unreadable(complaints)
    return cast("T", _made(kind, value))


def faults(kind: type, value: object) -> tuple[str, ...]:
    """Return what makes *value* unreadable as a *kind*; empty if nothing does."""
    return tuple(_faults(kind, value, ""))


def _faults(hint: Any, value: Any, at: str) -> Iterator[str]:
    if get_origin(hint) is tuple:
        yield from _list_faults(hint, value, at)
    elif get_origin(hint) is Literal:
        if value not in get_args(hint):
            yield f"{at}: expected one of {', '.join(get_args(hint))}, not {value!r:.80}"
    elif hint in (str, int):
        if type(value) is not hint:
            yield f"{at}: expected {'a text' if hint is str else 'a whole number'}, not {value!r:.80}"
    elif isinstance(value, Mapping):
        yield from _object_faults(hint, cast("Mapping[str, Any]", value), at)
    else:
        yield f"{at or 'the answer'}: expected an object, not {value!r:.80}"


def _list_faults(hint: Any, value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield f"{at}: expected a list, not {value!r:.80}"
        return
    for number, item in enumerate(cast("list[Any]", value)):
        yield from _faults(get_args(hint)[0], item, f"{at}[{number}]")


def _object_faults(kind: type, value: Mapping[str, Any], at: str) -> Iterator[str]:
    for key, hint, field in _fields(kind):
        place = f"{at}.{key}" if at else key
        if key in value:
            yield from _faults(hint, value[key], place)
        elif field.default is attrs.NOTHING:
            yield f"{place} is missing"


def _made(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(_made(get_args(hint)[0], item) for item in value)
    if isinstance(value, Mapping):
        held = cast("Mapping[str, Any]", value)
        return hint(**{f.name: _made(h, held[key]) for key, h, f in _fields(hint) if key in held})
    return value


def _fields(kind: type) -> Iterator[tuple[str, Any, attrs.Attribute[Any]]]:
    """Yield name in JSON, type and attribute of each field."""
    hints = get_type_hints(kind)
    for field in attrs.fields(cast("type[attrs.AttrsInstance]", kind)):
        yield field.metadata.get("key", field.name), hints[field.name], field
