"""The route table: every path that the server answers, who may use it, and what it takes and returns.

The gate, the dispatch, the OpenAPI document and the tests that attack each route all read this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from gsd_core import ConfigError

from . import page, project_api, sessions_api, sse
from .errors import Refused
from .routes import Handler, Parameter, Route, Schema
from .schemas import EMPTY, NUMBER, START, TEXT, WORDS, enum, ref
from .site import Site, answer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Send


async def open_stream(site: Site, request: Request) -> ASGIApp:
    """Return the application of a WebSocket."""
    from .stream import Connection

    async def run(scope: Any, receive: Receive, send: Send) -> None:
        await Connection(site=site, scope=scope["gsd"]["scope"], receive=receive, send=send).run()

    return run


async def mcp_app(site: Site, request: Request) -> ASGIApp:
    """Return the MCP server."""
    if site.mcp is None or site.stopping.is_set():
        raise Refused(404, "this server shows one run; it has no MCP server", "start one with: gsd serve")
    try:
        await site.mcp.start()
    except ConfigError as error:
        raise Refused(500, str(error), error.hint) from error
    # Its types are less exact than those of Starlette.
    return cast("ASGIApp", site.mcp)


async def show_openapi(site: Site, request: Request) -> Response:
    """Return the OpenAPI document."""
    from .openapi import document

    return await answer(document(site.table, site.version))


API = "/api/v1"
SESSION = f"{API}/sessions/{{session}}"


def routes() -> Sequence[Route]:
    """Return the table; of two routes that match, the first one counts."""
    return (*_server_routes(), *_session_routes(), *_project_routes(), *_other_routes())


def _server_routes() -> Iterator[Route]:
    yield _get("server", f"{API}/server", sessions_api.show_server, "What the server is.", ref("ServerInfo"))
    yield _get("openapi", f"{API}/openapi.json", show_openapi, "This document.", {"type": "object"})
    yield _get(
        "plugins",
        f"{API}/plugins",
        project_api.list_plugins,
        "The plugins of this installation.",
        ref("PluginList"),
    )
    yield _get(
        "questions",
        f"{API}/questions",
        sessions_api.list_all_questions,
        "The open questions of all projects, each once, oldest first.",
        ref("QuestionList"),
    )
    yield _get(
        "events-stream",
        f"{API}/events",
        sse.stream_events,
        "Changes as server-sent events; continue with the header Last-Event-ID.",
        TEXT,
        Parameter(name="session", schema=TEXT, about="only those of this session"),
    )


def _session_routes() -> Iterator[Route]:
    yield _get(
        "sessions",
        f"{API}/sessions",
        sessions_api.list_sessions,
        "All sessions, oldest first.",
        ref("SessionList"),
    )
    yield Route(
        method="POST",
        path=f"{API}/sessions",
        policy="control",
        handle=sessions_api.start_session,
        name="start",
        about="Start a session; exactly one of idea, idea_file, resume, step and exec says what it does.",
        body=START,
        answer=ref("SessionChanged"),
        status=201,
    )
    yield _get(
        "session",
        SESSION,
        sessions_api.show_session,
        "One session.",
        ref("SessionInfo"),
    )
    yield Route(
        method="DELETE",
        path=SESSION,
        policy="control",
        handle=sessions_api.remove_session,
        name="remove",
        about="Forget a session that has ended, and what it printed.",
        status=204,
    )
    yield Route(
        method="POST",
        path=f"{SESSION}/stop",
        policy="control",
        handle=sessions_api.stop_session,
        name="stop",
        about="Ask a session to stop; it finishes what it is writing.",
        body=EMPTY,
        answer=ref("SessionChanged"),
    )
    yield _get(
        "output",
        f"{SESSION}/output",
        sessions_api.show_output,
        "What the session printed, as text without escape sequences. Cursors count bytes.",
        ref("OutputPage"),
        Parameter(name="cursor", schema=NUMBER, about="from this byte on; negative: from the end"),
        Parameter(name="limit", schema=NUMBER, about="at most so many bytes"),
    )
    yield _get(
        "search",
        f"{SESSION}/output/search",
        sessions_api.search_output,
        "The lines with a text in everything that the session printed; the last ones, if they are many.",
        ref("OutputLines"),
        Parameter(name="text", schema=TEXT, about="in upper or lower case", required=True),
        Parameter(name="end", schema=NUMBER, about="only in what was printed before this byte"),
    )
    yield Route(
        method="PUT",
        path=f"{SESSION}/questions/{{question}}/answer",
        policy="control",
        handle=sessions_api.answer_question,
        name="answer",
        about="Answer a question, or change an answer that no run has taken yet.",
        body=WORDS,
        answer=ref("AnswerGiven"),
    )


def _project_routes() -> Iterator[Route]:
    yield _get(
        "status",
        f"{SESSION}/status",
        sessions_api.show_status,
        "The status of the project's run, as gsd status --json prints it.",
        ref("Status"),
    )
    yield _get(
        "phases",
        f"{SESSION}/phases",
        project_api.list_phases,
        "The phases of the milestone, with steps and plans.",
        ref("PhaseList"),
    )
    yield _get(
        "phase",
        f"{SESSION}/phases/{{phase}}",
        project_api.show_phase,
        "One phase: context, plans, summaries, verification, evidence, commits.",
        ref("PhaseDetail"),
    )
    yield _get(
        "requirements",
        f"{SESSION}/requirements",
        project_api.list_requirements,
        "The requirements with plans, commits, checks and evidence.",
        ref("RequirementList"),
    )
    yield _get(
        "commits",
        f"{SESSION}/commits",
        project_api.list_commits,
        "The commits of the run, oldest first.",
        ref("CommitList"),
        Parameter(name="phase", schema=TEXT, about="only those of this phase"),
    )
    yield _get(
        "commit",
        f"{SESSION}/commits/{{sha}}",
        project_api.show_commit,
        "One commit with its patch.",
        ref("CommitPatch"),
    )
    yield _get(
        "lines",
        f"{SESSION}/files",
        project_api.show_lines,
        "Lines of a file of the project, such as those that evidence cites.",
        ref("FileLines"),
        Parameter(name="path", schema=TEXT, about="path in the project", required=True),
        Parameter(name="first", schema=NUMBER, about="first line, from 1 on"),
        Parameter(name="last", schema=NUMBER, about="last line"),
    )
    yield _get(
        "events",
        f"{SESSION}/events",
        project_api.list_events,
        "Events of the project's journal after a position.",
        ref("EventPage"),
        Parameter(name="after", schema=NUMBER, about="position in the journal"),
        Parameter(name="limit", schema=NUMBER, about="at most so many events"),
        Parameter(name="last", schema=NUMBER, about="the last so many events, instead of after"),
        Parameter(name="name", schema=TEXT, about="only events of this name", repeated=True),
    )
    yield _get(
        "cost",
        f"{SESSION}/cost",
        project_api.show_cost,
        "What the run cost, as gsd cost --json prints it.",
        ref("CostReport"),
        Parameter(name="by", schema=enum("phase", "step", "model", "day"), about="how to group the calls"),
    )
    yield _get(
        "session-questions",
        f"{SESSION}/questions",
        project_api.list_questions,
        "The open and the answered questions of the project's run.",
        ref("RunQuestions"),
    )

    yield _get(
        "panels",
        f"{SESSION}/panels",
        project_api.list_panels,
        "What plugins show about the project, as gsd panels --json prints it; at most 30 seconds old.",
        ref("PanelList"),
    )


def _other_routes() -> Iterator[Route]:
    yield Route(
        method="WEBSOCKET",
        path=f"{API}/ws",
        policy="read",
        handle=open_stream,
        name="socket",
        about="Changes, output and terminals of any number of sessions.",
    )
    yield Route(
        method="*", path="/mcp", policy="control", handle=mcp_app, name="mcp", about="The MCP server."
    )
    yield Route(
        method="GET", path="/", policy="public", handle=page.show_page, name="page", about="The page."
    )
    yield Route(
        method="GET",
        path="/{path}",
        policy="public",
        handle=page.show_file,
        name="file",
        about="A file of the page.",
    )


def _get(name: str, path: str, handle: Handler, about: str, schema: Schema, *query: Parameter) -> Route:
    """Return a route that only reads."""
    return Route(
        method="GET",
        path=path,
        policy="read",
        handle=handle,
        name=name,
        about=about,
        answer=schema,
        query=query,
    )
