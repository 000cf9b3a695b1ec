"""Requests to the real application without a socket, so that a test can send what no client would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from gsd_plugins.sessions import Source
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry, output_folder
from gsd_plugins.web.access import Addresses, Tokens
from gsd_plugins.web.gate import Gate
from gsd_plugins.web.site import STATIC, Site
from gsd_plugins.web.table import routes

PORT = 3333
HOST = f"127.0.0.1:{PORT}"


@attrs.frozen(kw_only=True)
class Response:
    """The status, headers and body of an answer; 101 for a WebSocket that was accepted."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON data."""
        return json.loads(self.body)


@attrs.define(kw_only=True)
class Client:
    """Sends requests to a site, with the headers of the page unless others are given."""

    site: Site
    app: Gate

    @property
    def headers(self) -> dict[str, str]:
        """The headers with which the page calls."""
        return {
            "host": HOST,
            "authorization": f"Bearer {self.site.tokens.control}",
            "origin": f"http://{HOST}",
            "sec-fetch-site": "same-origin",
        }

    async def get(self, path: str) -> Response:
        """Send a GET as the page does."""
        return await self.request("GET", path)

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str | None] | None = None,
        more: Iterable[tuple[str, str]] = (),
        body: bytes | object = None,
        subprotocols: Iterable[str] | None = None,
    ) -> Response:
        """Send a request; a header of ``None`` is left out, *more* are sent as well, even if sent before."""
        is_socket = method == "WEBSOCKET"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        merged: dict[str, str | None] = {**self.headers}
        if data:
            merged |= {"content-type": "application/json", "content-length": str(len(data))}
        merged |= headers or {}
        listed = [(name, value) for name, value in merged.items() if value is not None]
        raw_path, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "websocket" if is_socket else "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "ws" if is_socket else "http",
            "path": raw_path,
            "raw_path": raw_path.encode("latin-1", "replace"),
            "root_path": "",
            "query_string": query.encode("latin-1", "replace"),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in [*listed, *more]],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", PORT),
            "subprotocols": [*(subprotocols or ())],
            "extensions": {"websocket.http.response": {}},
        }
        if is_socket:
            del scope["method"]
        return await _exchange(self.app, scope, data, is_socket=is_socket)


async def _exchange(app: Gate, scope: dict[str, Any], data: bytes, *, is_socket: bool) -> Response:
    incoming: list[dict[str, Any]]
    if is_socket:
        incoming = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]
    else:
        incoming = [{"type": "http.request", "body": data, "more_body": False}, {"type": "http.disconnect"}]
    status, headers, body = 0, dict[str, str](), b""

    async def receive() -> dict[str, Any]:
        if not incoming:
            await asyncio.Event().wait()
        return incoming.pop(0)

    async def send(message: Any) -> None:
        nonlocal status, body
        kind = message["type"].removeprefix("websocket.")
        if kind == "accept":
            status = 101
        elif kind == "close":
            status = status or 403
        elif kind.endswith("response.start"):
            status = message["status"]
            headers.update({name.decode(): value.decode("latin-1") for name, value in message["headers"]})
        elif kind.endswith("response.body"):
            body += message.get("body", b"")

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return Response(status=status, headers=headers, body=body)


@asynccontextmanager
async def serving(*, source: Source | None = None, static: Path | None = None) -> AsyncGenerator[Client]:
    """Serve the sessions of the registry, or another *source*."""
    async with Harness() as sessions:
        site = Site(
            source=source or sessions,
            tokens=Tokens(),
            addresses=Addresses.of("127.0.0.1", PORT),
            table=routes(),
            version="0",
            static=static or STATIC,
        )
        async with site.following():
            yield Client(site=site, app=Gate(site))


def ended_session(project: Path, output: bytes = b"") -> str:
    """Add a session that has ended to the registry, and return its id."""
    project.mkdir(exist_ok=True)
    with Registry() as registry:
        session = registry.add(project=project, folder=project, command=["run", "idea.md"])
        registry.end(session.id, "completed", exit_code=0, reason="")
    folder = output_folder(session.id)
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.out").write_bytes(output)
    return session.id
