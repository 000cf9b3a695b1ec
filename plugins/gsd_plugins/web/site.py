"""One server: what it shows, who may see it, and how a request that has passed the gate is answered."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

from gsd_core import GsdError, redact_data, safe_text
from gsd_core.project import Project
from gsd_plugins.sessions import Source, end_task

from .access import Addresses, Tokens
from .errors import Refused, refused_by
from .feed import Feed
from .plugin_list import PrintedAboutPlugins
from .routes import Route
from .text import clean

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Send

    from gsd_core.project import ProjectDetails
    from gsd_plugins.mcp import HttpApp


STATIC = Path(__file__).parent / "static"
"""The built page."""
START_DELAY = 1.0
"""How long requests are answered before the plugins are listed, which takes a second of processor time."""
MAX_DETAILS = 20
"""How many projects' journals are kept folded; reading one again costs about a second per 100,000 events."""


@attrs.define(kw_only=True)
class Site:
    """Everything that the routes need. *mcp* is the application at ``/mcp``, if there is one.

    *epoch* names this start of the server; the numbers of changes are only comparable within it.
    """

    source: Source
    tokens: Tokens
    addresses: Addresses
    table: Sequence[Route]
    version: str
    static: Path = STATIC
    slots: int | None = None
    mcp: HttpApp | None = None
    printed: PrintedAboutPlugins = attrs.field(factory=PrintedAboutPlugins)
    epoch: str = attrs.field(factory=lambda: secrets.token_hex(8))
    started_at: datetime = attrs.field(factory=lambda: datetime.now(UTC))
    feed: Feed = attrs.field(init=False)
    _details: OrderedDict[Path, ProjectDetails] = attrs.field(
        factory=OrderedDict[Path, "ProjectDetails"], init=False
    )
    stopping: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.feed = Feed(source=self.source)

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Follow the changes as long as the context is entered."""
        task = asyncio.create_task(self.feed.run(), name="feed")
        try:
            yield
        finally:
            await end_task(task)
            for details in self._details.values():
                details.close()

    def details(self, session: str) -> ProjectDetails:
        """Return the details of a session's project; those of the projects that were shown last are kept."""
        root = self.source.session(session).project
        found = self._details.pop(root, None) or Project(root).details()
        self._details[root] = found
        while len(self._details) > MAX_DETAILS:
            self._details.popitem(last=False)[1].close()
        return found

    async def read_ahead(self) -> None:
        """Read the projects of the last sessions that have not ended, one after the other, then the plugins.

        One with hundreds of plans takes a second, for which the first one who opens its page would wait.
        """
        owners = {one.project: one.id for one in self.source.sessions() if not one.has_ended}
        for session in [*reversed(owners.values())][:MAX_DETAILS]:
            # It may be removed meanwhile, or its files be damaged; then its page says so.
            with suppress(GsdError, OSError):
                await self.details(session).phases(is_running=True)
        await asyncio.sleep(START_DELAY)
        # Whoever asks for the list then gets the error, after another try.
        with suppress(Refused):
            await self.printed.plugins()

    async def serve(self, route: Route, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request that the gate has admitted."""
        from starlette.requests import HTTPConnection, Request

        is_socket = scope["type"] == "websocket"
        try:
            request = cast("Request", HTTPConnection(scope)) if is_socket else Request(scope, receive)
            if route.body is not None:
                scope["gsd"]["body"] = await _checked_body(route, request)
            response = await route.handle(self, request)
        except GsdError as error:
            raise refused_by(error) from error
        except (Refused, asyncio.CancelledError):
            raise
        except Exception as error:
            # What went wrong is for the terminal of the server; the answer must not show its inside.
            line = f"error: {route.method} {route.path}: {type(error).__name__}: {error}"
            print(safe_text(line, multiline=False), file=sys.stderr)
            raise Refused(500, "an internal error; see the output of gsd serve") from error
        await response(scope, receive, send)


def body_of(request: Request) -> Mapping[str, Any]:
    """Return the body of a request, which its route's schema describes."""
    body: Mapping[str, Any] = request.scope["gsd"]["body"]
    return body


async def answer(data: Any, status: int = 200, *, is_redacted: bool = False) -> Response:
    """Return JSON data as a response: sanitized, and without secrets.

    *is_redacted*: the core has redacted it already, which takes most of the time.
    """
    from starlette.responses import Response

    def encoded() -> bytes:
        cleaned = clean(data if is_redacted else redact_data(data))
        return json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    # In a thread: a project may have a question with 10,000 options, and others wait for their answers.
    return Response(await asyncio.to_thread(encoded), status, media_type="application/json")


async def _checked_body(route: Route, request: Request) -> Any:
    from jsonschema import Draft202012Validator

    try:
        body = json.loads(await request.body() or b"null", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not valid JSON: {error}"[:300]) from error
    checked = cast("Any", Draft202012Validator(route.body or {}))
    problems = sorted(checked.iter_errors(body), key=lambda one: [str(part) for part in one.path])
    if problems:
        first = problems[0]
        place = ".".join(map(str, first.path)) or "the body"
        raise Refused(400, f"{place}: {first.message}"[:500])
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
