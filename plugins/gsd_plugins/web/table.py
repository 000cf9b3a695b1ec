"""The route table: every path that the server answers, who may use it, and what it takes and returns.

The gate, the dispatch, the OpenAPI document and the tests that attack each route all read this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import page, sessions_api
from .errors import Refused
from .routes import Route
from .site import Site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Send


async def open_stream(site: Site, request: Request) -> ASGIApp:
    """Return the application of a WebSocket."""
    from .stream import Connection

    async def run(scope: Any, receive: Receive, send: Send) -> None:
        await Connection(site=site, scope=scope["gsd"]["scope"], receive=receive, send=send).run()

    return run


async def mcp_app(site: Site, request: Request) -> ASGIApp:
    """Return the MCP server."""
    if site.mcp is None:
        raise Refused(404, "there is no MCP server here", "install the plugin mcp")
    return site.mcp


API = "/api/v1"
SESSION = f"{API}/sessions/{{session}}"


def routes() -> Sequence[Route]:
    """Return the table."""
    return (
        Route(
            method="GET",
            path=f"{API}/server",
            policy="read",
            handle=sessions_api.show_server,
            name="server",
            about="",
        ),
        Route(
            method="GET",
            path=f"{API}/sessions",
            policy="read",
            handle=sessions_api.list_sessions,
            name="sessions",
            about="",
        ),
        Route(
            method="POST",
            path=f"{API}/sessions",
            policy="control",
            handle=sessions_api.start_session,
            name="start",
            about="",
            body={"type": "object", "required": ["project"]},
        ),
        Route(
            method="GET",
            path=SESSION,
            policy="read",
            handle=sessions_api.show_session,
            name="session",
            about="",
        ),
        Route(
            method="DELETE",
            path=SESSION,
            policy="control",
            handle=sessions_api.remove_session,
            name="remove",
            about="",
        ),
        Route(
            method="POST",
            path=f"{SESSION}/stop",
            policy="control",
            handle=sessions_api.stop_session,
            name="stop",
            about="",
        ),
        Route(
            method="GET",
            path=f"{SESSION}/status",
            policy="read",
            handle=sessions_api.show_status,
            name="status",
            about="",
        ),
        Route(
            method="GET",
            path=f"{SESSION}/output",
            policy="read",
            handle=sessions_api.show_output,
            name="output",
            about="",
        ),
        Route(
            method="GET",
            path=f"{API}/questions",
            policy="read",
            handle=sessions_api.list_all_questions,
            name="questions",
            about="",
        ),
        Route(
            method="PUT",
            path=f"{SESSION}/questions/{{question}}/answer",
            policy="control",
            handle=sessions_api.answer_question,
            name="answer",
            about="",
            body={"type": "object", "required": ["words"], "properties": {"words": {"type": "string"}}},
        ),
        Route(method="WEBSOCKET", path=f"{API}/ws", policy="read", handle=open_stream, name="ws", about=""),
        Route(method="*", path="/mcp", policy="control", handle=mcp_app, name="mcp", about=""),
        Route(method="GET", path="/", policy="public", handle=page.show_page, name="page", about=""),
        Route(method="GET", path="/{path}", policy="public", handle=page.show_file, name="file", about=""),
    )
