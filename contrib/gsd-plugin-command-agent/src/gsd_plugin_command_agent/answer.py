"""From what the command wrote to what it means: a message, calls, a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from attrs import frozen

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.S)
_NOTHING = object()


class Unreadable(ValueError):
    """An answer that cannot be used, and why: for the command to mend."""


@frozen(kw_only=True)
class Call:
    """A function that the command wants called."""

    function: str
    arguments: Mapping[str, Any]


def message_of(output: str, key: str) -> str:
    """Return the message in a command's JSON output; *key* is the dotted way to it, empty the whole."""
    try:
        found: Any = json.loads(output)
    except ValueError as error:
        raise Unreadable(f"standard output is not one JSON document: {error}") from error
    for name in filter(None, key.split(".")):
        if not isinstance(found, dict) or name not in found:
            raise Unreadable(f"the output has no field {key!r}")
        found = cast("dict[str, Any]", found)[name]
    return found if isinstance(found, str) else json.dumps(found)


def json_in(message: str) -> Any:
    """Return the last JSON document in *message*, fenced or bare."""
    for text in (message.strip(), *reversed(_FENCED.findall(message))):
        if (found := _loaded(text)) is not _NOTHING:
            return found
    found = list(_documents(message))
    if not found:
        raise Unreadable("there is no JSON document in it")
    return found[-1]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _documents(message: str) -> Iterator[Any]:
    """Yield the JSON objects and lists that begin a line of *message*, from the first to the last."""
    decoder, end = json.JSONDecoder(), 0
    for start in re.finditer(r"^[ \t]*[{\[]", message, re.M):
        if start.end() <= end:
            continue
        try:
            found, end = decoder.raw_decode(message, start.end() - 1)
        except (ValueError, RecursionError):
            continue
        yield found


def calls_in(document: Any) -> tuple[Call, ...] | None:
    """Return the calls that *document* asks for; ``None`` if it is no document of calls."""
    if not isinstance(document, dict) or set(cast("dict[str, Any]", document)) != {"calls"}:
        return None
    listed: Any = cast("dict[str, Any]", document)["calls"]
    if not isinstance(listed, list) or not listed:
        raise Unreadable("calls: a list with at least one call is expected")
    return tuple(_call(item) for item in cast("Sequence[Any]", listed))


def _call(item: Any) -> Call:
    if not isinstance(item, dict):
        raise Unreadable("calls: each is an object with function and arguments")
    found = cast("dict[str, Any]", item)
    arguments: Any = found.get("arguments", {})
    if not isinstance(found.get("function"), str) or not isinstance(arguments, dict):
        raise Unreadable("calls: function is a text and arguments is an object")
    return Call(function=found["function"], arguments=cast("dict[str, Any]", arguments))


def value_in(document: Any) -> Any:
    """Return the final value: what stands under ``value``, or the document itself."""
    if not isinstance(document, dict):
        return document
    named = cast("dict[str, Any]", document)
    return named["value"] if set(named) == {"value"} else named
