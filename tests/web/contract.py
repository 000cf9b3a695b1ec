"""Whether JSON data is what the OpenAPI document says, with nothing that it does not name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator

from gsd_plugins.web.openapi import document
from gsd_plugins.web.table import routes


def answer_schema(path: str, method: str, status: int = 200) -> str:
    """Return the name of the component that an answer consists of."""
    answers = _document()["paths"][path][method]["responses"]
    schema: Mapping[str, Any] = answers[str(status)]["content"]["application/json"]["schema"]
    return str(schema["$ref"]).rpartition("/")[2]


def mistakes(component: str, data: object) -> list[str]:
    """Return what is wrong with *data* as the *component* of this name.

    Clients have to ignore fields that they do not know, so the document allows them. A field that the server
    sends and the document does not name is a mistake all the same: the page's types are made from it.
    """
    return [f"{error.json_path}: {error.message[:300]}" for error in _validator(component).iter_errors(data)]


@cache
def _validator(component: str) -> Any:
    components = _closed(_document()["components"])
    return Draft202012Validator({"$ref": f"#/components/schemas/{component}", "components": components})


@cache
def _document() -> Mapping[str, Any]:
    return document(routes(), "1")


def _closed(schema: Any) -> Any:
    """Return a copy in which no object may have fields that its schema does not name."""
    if isinstance(schema, list | tuple):
        return [_closed(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: _closed(value) for key, value in cast("Mapping[str, Any]", schema).items()}
    return {"additionalProperties": False, **found} if isinstance(found.get("properties"), dict) else found
