"""The route table: every path that the server answers, who may use it, and what it takes and returns.

The gate, the dispatch, the OpenAPI document and the tests that attack each route all read this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from gsd_core import ConfigError

from . import page, project_api, sessions_api, sse
from .errors import Refused
from .routes import Handler, Method, Parameter, Route, Schema
from .schemas import EMPTY, NUMBER, START, TEXT, WORDS, enum, ref
from .site import Site, answer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Send


async def open_stream(site: Site, request: Request) -> ASGIApp:
    """Serve changes, output and terminals of any number of sessions."""
    from .stream import Connection

    async def run(scope: Any, receive: Receive, send: Send) -> None:
        await Connection(site=site, scope=scope["gsd"]["scope"], receive=receive, send=send).run()

    return run


async def mcp_app(site: Site, request: Request) -> ASGIApp:
    """Serve MCP."""
    if site.mcp is None or site.stopping.is_set():
        raise Refused(404, "this server shows one run; it has no MCP server", "start one with: gsd serve")
    try:
        await site.mcp.start()
    except ConfigError as error:
        raise Refused(500, str(error), error.hint) from error
    # Its types are less exact than those of Starlette.
    return cast("ASGIApp", site.mcp)


async def show_openapi(site: Site, request: Request) -> Response:
    """Return this document."""
    from .openapi import document

    return await answer(document(site.table, site.version))


API = "/api/v1"
SESSION = f"{API}/sessions/{{session}}"


def routes() -> Sequence[Route]:
    """Return the table; of two routes that match, the first one counts."""
    return (*_server_routes(), *_session_routes(), *_project_routes(), *_other_routes())


def _server_routes() -> Iterator[Route]:
    yield _get("server", f"{API}/server", sessions_api.show_server, ref("ServerInfo"))
    yield _get("openapi", f"{API}/openapi.json", show_openapi, {"type": "object"})
    yield _get("plugins", f"{API}/plugins", project_api.list_plugins, ref("PluginList"))
    yield _get("questions", f"{API}/questions", sessions_api.list_all_questions, ref("QuestionList"))
    session = Parameter(name="session", schema=TEXT, about="only those of this session")
    yield _get("events-stream", f"{API}/events", sse.stream_events, TEXT, session)


def _session_routes() -> Iterator[Route]:
    yield _get("sessions", f"{API}/sessions", sessions_api.list_sessions, ref("SessionList"))
    changed = ref("SessionChanged")
    start = {"body": START, "answer": changed, "status": 201}
    yield _change("POST", "start", f"{API}/sessions", sessions_api.start_session, **start)
    yield _get("session", SESSION, sessions_api.show_session, ref("SessionInfo"))
    yield _change("DELETE", "remove", SESSION, sessions_api.remove_session, status=204)
    yield _change("POST", "stop", f"{SESSION}/stop", sessions_api.stop_session, body=EMPTY, answer=changed)
    cursor = Parameter(name="cursor", schema=NUMBER, about="from this byte on; negative: from the end")
    limit = Parameter(name="limit", schema=NUMBER, about="at most so many bytes")
    output = f"{SESSION}/output"
    yield _get("output", output, sessions_api.show_output, ref("OutputPage"), cursor, limit)
    text = Parameter(name="text", schema=TEXT, about="in upper or lower case", required=True)
    end = Parameter(name="end", schema=NUMBER, about="only in what was printed before this byte")
    yield _get("search", f"{output}/search", sessions_api.search_output, ref("OutputLines"), text, end)
    path = f"{SESSION}/questions/{{question}}/answer"
    given = ref("AnswerGiven")
    yield _change("PUT", "answer", path, sessions_api.answer_question, body=WORDS, answer=given)


def _project_routes() -> Iterator[Route]:
    yield _get("status", f"{SESSION}/status", sessions_api.show_status, ref("Status"))
    yield _get("phases", f"{SESSION}/phases", project_api.list_phases, ref("PhaseList"))
    yield _get("phase", f"{SESSION}/phases/{{phase}}", project_api.show_phase, ref("PhaseDetail"))
    found = ref("RequirementList")
    yield _get("requirements", f"{SESSION}/requirements", project_api.list_requirements, found)
    phase = Parameter(name="phase", schema=TEXT, about="only those of this phase")
    yield _get("commits", f"{SESSION}/commits", project_api.list_commits, ref("CommitList"), phase)
    yield _get("commit", f"{SESSION}/commits/{{sha}}", project_api.show_commit, ref("CommitPatch"))
    lines = (
        Parameter(name="path", schema=TEXT, about="path in the project", required=True),
        Parameter(name="first", schema=NUMBER, about="first line, from 1 on"),
        Parameter(name="last", schema=NUMBER, about="last line"),
    )
    yield _get("lines", f"{SESSION}/files", project_api.show_lines, ref("FileLines"), *lines)
    events = (
        Parameter(name="after", schema=NUMBER, about="position in the journal"),
        Parameter(name="limit", schema=NUMBER, about="at most so many events"),
        Parameter(name="last", schema=NUMBER, about="the last so many events, instead of after"),
        Parameter(name="name", schema=TEXT, about="only events of this name", repeated=True),
    )
    yield _get("events", f"{SESSION}/events", project_api.list_events, ref("EventPage"), *events)
    by = Parameter(name="by", schema=enum("phase", "step", "model", "day"), about="how to group the calls")
    yield _get("cost", f"{SESSION}/cost", project_api.show_cost, ref("CostReport"), by)
    yield _get("session-questions", f"{SESSION}/questions", project_api.list_questions, ref("RunQuestions"))
    yield _get("panels", f"{SESSION}/panels", project_api.list_panels, ref("PanelList"))


def _other_routes() -> Iterator[Route]:
    yield Route(method="WEBSOCKET", path=f"{API}/ws", policy="read", handle=open_stream, name="socket")
    yield Route(method="*", path="/mcp", policy="control", handle=mcp_app, name="mcp")
    yield Route(method="GET", path="/", policy="public", handle=page.show_page, name="page")
    yield Route(method="GET", path="/{path}", policy="public", handle=page.show_file, name="file")


def _get(name: str, path: str, handle: Handler, schema: Schema, *query: Parameter) -> Route:
    """Return a route that only reads."""
    return Route(method="GET", path=path, policy="read", handle=handle, name=name, answer=schema, query=query)


def _change(method: Method, name: str, path: str, handle: Handler, **more: Any) -> Route:
    """Return a route that changes something; *more* is about its body and its answer."""
    return Route(method=method, path=path, policy="control", handle=handle, name=name, **more)
