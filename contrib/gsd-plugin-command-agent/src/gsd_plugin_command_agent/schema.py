"""Whether a value fits a JSON schema, for the words of it that tasks use.

https://json-schema.org/understanding-json-schema/reference: type, enum, const, properties, required,
additionalProperties, items, minItems, anyOf. Other words are passed over: the step judges the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def faults(value: Any, schema: Mapping[str, Any], where: str = "the value") -> tuple[str, ...]:
    """Say what is wrong with *value*, each fault with its place; nothing if it fits."""
    return tuple(_faults(value, schema, where))


def _faults(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if "anyOf" in schema:
        if all(faults(value, option, where) for option in schema["anyOf"]):
            yield f"{where}: fits none of the alternatives"
        return
    wanted: Any = schema.get("type")
    names = cast("Sequence[str]", [wanted] if isinstance(wanted, str) else wanted or [])
    if names and not any(_is(value, name) for name in names):
        yield f"{where}: {' or '.join(names)} is expected, not {type(value).__name__}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: one of {', '.join(map(repr, schema['enum']))} is expected"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {schema['const']!r} is expected"
    if isinstance(value, dict):
        yield from _in_object(cast("dict[str, Any]", value), schema, where)
    if isinstance(value, list):
        yield from _in_list(cast("Sequence[Any]", value), schema, where)


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, (object,)))


def _in_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}: {name!r} is missing"
    for name, inner in value.items():
        if name in properties:
            yield from _faults(inner, properties[name], f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{where}: {name!r} is not asked for"


def _in_list(value: Sequence[Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{where}: at least {schema['minItems']} are expected"
    for number, inner in enumerate(value):
        yield from _faults(inner, schema.get("items", {}), f"{where}[{number}]")
