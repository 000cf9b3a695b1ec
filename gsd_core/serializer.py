"""Values as JSON: one list of fields says what is written, and gives the JSON Schema (draft 2020-12) of it.

Objects may get new fields, so a schema allows fields that it does not name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import attrs

Schema: TypeAlias = dict[str, Any]
Given: TypeAlias = "Serializer | tuple[Schema, Callable[[Any], Any]] | Schema"

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
TEXTS: Schema = {"type": "array", "items": TEXT}
SCHEMA_VERSION = 1
"""Of what commands print as JSON; it grows when a field is removed or changes its meaning."""
LEAVES: Mapping[object, Schema] = {
    str: TEXT,
    int: NUMBER,
    bool: FLAG,
    datetime: TIME,
    timedelta: {"type": "number"},
    Any: ANY,
}
_FIELD = re.compile(r"(\w+)(?:=([\w.]+))?(\??)")


class Serializer:
    """The JSON of values of the class *kind*.

    *fields* are its attributes, separated by spaces, in the order of the JSON. ``name?`` becomes null if it
    is empty, and ``key=path.to.attribute`` has another key. *given* says by key what is special: the
    serializer of the value or of its items; a schema, and the function that returns the data for a value of
    *kind*; or only a schema, if the type of the attribute says too much, or :meth:`dump` is given the data.
    """

    def __init__(self, kind: type, fields: str, /, **given: Given) -> None:
        matches = [_FIELD.fullmatch(field) for field in fields.split()]
        self._kind, self._given = kind, given
        self._fields = [(m[1], m[2] or m[1], bool(m[3])) for m in matches if m]

    def dump(self, value: Any, /, **more: Any) -> dict[str, Any]:
        """Return *value* as JSON data, with the data of *more* in the places of its keys."""
        data: dict[str, Any] = {}
        for key, path, is_optional in self._fields:
            given = self._given.get(key)
            if key in more:
                data[key] = more[key]
            elif isinstance(given, tuple):
                data[key] = given[1](value)
            else:
                plain = _plain(attrgetter(path)(value), given if isinstance(given, Serializer) else None)
                data[key] = (plain or None) if is_optional else plain
        return data

    @property
    def schema(self) -> Schema:
        """The schema of what :meth:`dump` returns."""
        properties: dict[str, Schema] = {}
        for key, path, is_optional in self._fields:
            match self._given.get(key):
                case (dict() as schema, _) | (dict() as schema):
                    found: Schema = schema
                case inner:
                    kind: Any = self._kind
                    for name in path.split("."):
                        kind = next((part for part in get_args(kind) if attrs.has(part)), kind)
                        owner = getattr(kind, name, None)
                        getter = getattr(owner, "fget", None) or getattr(owner, "func", None)
                        kind = get_type_hints(getter)["return"] if getter else get_type_hints(kind)[name]
                    found = schema_of(kind, inner if isinstance(inner, Serializer) else None)
            properties[key] = null(found) if is_optional else found
        return obj(**properties)


def _plain(value: Any, serializer: Serializer | None) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        items = cast("dict[Any, Any]", value)
        return {str(key): _plain(each, serializer) for key, each in items.items()}
    if isinstance(value, tuple | list):
        return [_plain(each, serializer) for each in cast("list[Any]", value)]
    if serializer:
        return serializer.dump(value)
    kind = cast("type[attrs.AttrsInstance]", type(value))
    if attrs.has(kind):
        return {field.name: _plain(getattr(value, field.name), None) for field in attrs.fields(kind)}
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def schema_of(kind: Any, serializer: Serializer | None = None) -> Schema:
    """Return the schema of a type; of an attrs class, what *serializer* writes, or else all fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return values(kind)
    if origin in (Union, UnionType):
        inner = [part for part in arguments if part is not type(None)]
        if len(inner) == len(arguments):
            return values(*inner)
        return null(schema_of(inner[0], serializer))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return table(schema_of(arguments[1], serializer))
    if origin is not None:
        return arr(schema_of(arguments[0], serializer))
    if serializer:
        return serializer.schema
    if attrs.has(kind):
        hints = get_type_hints(kind)
        return obj(**{field.name: schema_of(hints[field.name]) for field in attrs.fields(kind)})
    # Amounts of dollars, paths and ids are texts.
    return LEAVES.get(kind, TEXT)


def values(*kinds: Any) -> Schema:
    """Return the schema of a string with one of the values of these ``Literal`` types."""
    found: list[str] = []
    for kind in kinds:
        for value in get_args(kind):
            found += get_args(value) if get_origin(value) is Literal else [value]
    return {"enum": sorted(set(found))}


def obj(**fields: Schema) -> Schema:
    """Return the schema of an object in which all *fields* are required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def arr(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def table(of: Schema) -> Schema:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": of}


def null(schema: Schema) -> Schema:
    """Return *schema*, or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
