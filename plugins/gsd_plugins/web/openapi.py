"""The OpenAPI 3.1 document, made from the route table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import CODES
from .routes import Route
from .schemas import TEXT, components, ref

ABOUT = """The interface of gsd serve. The token is sent as a bearer token, never in a cookie or the query."""
MODEL = "application/json"


def document(table: Sequence[Route], version: str) -> dict[str, Any]:
    """Return the document of all routes with JSON; the page, the WebSocket and MCP are not among them."""
    paths: dict[str, Any] = {}
    for route in table:
        if route.method in ("WEBSOCKET", "*") or route.policy == "public":
            continue
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gsd serve", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": _json("The request was refused.", ref("Error"))},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    in_path = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in route.parameters]
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "x-scope": route.policy,
        "parameters": in_path,
        "responses": {
            str(route.status): _answer(route),
            **{str(status): {"$ref": "#/components/responses/Error"} for status in CODES},
        },
    }
    for one in route.query:
        schema = {"type": "array", "items": one.schema} if one.repeated else one.schema
        about = {"name": one.name, "in": "query", "required": one.required, "description": one.about}
        found["parameters"].append({**about, "schema": schema})
    if route.body is not None:
        found["requestBody"] = {"required": True, "content": {MODEL: {"schema": route.body}}}
    return found


def _answer(route: Route) -> dict[str, Any]:
    if route.name == "events-stream":
        return {"description": "Server-sent events.", "content": {"text/event-stream": {}}}
    if route.answer is None:
        return {"description": "Done; the answer is empty."}
    return _json("Done.", route.answer)


def _json(about: str, schema: Any) -> dict[str, Any]:
    return {"description": about, "content": {MODEL: {"schema": schema}}}
