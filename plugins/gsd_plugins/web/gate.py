"""The gate: one ASGI application around everything that the server answers, HTTP and WebSocket alike.

It refuses a request before anything else sees it, and it knows every route: what is not in the table does not
exist. A request has to come to this host and, from a browser, from this origin; it has to have a token unless
its route is public; and a body has to be JSON. No answer has a CORS header, so no other origin reads one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from .errors import Refused
from .routes import Route, find_route, is_plain_path

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Send

    from .access import Scope
    from .site import Site

MAX_BODY = 1 << 20
"""The size of the largest body, in bytes."""
MAX_URL = 4096
PROTOCOL = "gsd.v1"
TOKEN_PROTOCOL = "gsd.token."
WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
SECRET_NAMES = ("token", "access_token", "key", "authorization")

NO_PAGE = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    (b"content-security-policy", NO_PAGE),
    (b"cache-control", b"no-store"),
)
"""The headers of every answer; one that sets a header itself keeps its own."""


class Gate:
    """The application that uvicorn runs."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in ("http", "websocket"):
            return
        send = _with_headers(send)
        try:
            route, scope = self._admit(scope)
            receive = receive if scope["type"] == "websocket" else _limited(receive)
            await self._site.serve(route, scope, receive, send)
        except Refused as refused:
            await _refuse(refused, scope, receive, send)

    def _admit(self, scope: Any) -> tuple[Route, Any]:
        """Return the route of a request that may pass; raise :class:`Refused` for every other."""
        headers = Headers(scope["headers"])
        addresses = self._site.addresses
        host = headers.only("host").lower()
        if host not in addresses.hosts:
            hint = "use the URL that it printed; for a tunnel: gsd serve --public-url URL"
            raise Refused(421, "this server does not answer to that host", hint)
        is_socket = scope["type"] == "websocket"
        method = "WEBSOCKET" if is_socket else scope["method"]
        raw = scope.get("raw_path") or scope["path"].encode()
        if len(raw) + len(scope["query_string"]) > MAX_URL:
            raise Refused(400, f"a URL may have at most {MAX_URL} bytes")
        path = raw.decode("ascii", "replace") if is_plain_path(raw) else ""
        found = find_route(self._site.table, method, path)
        policy = found.route.policy if found.route else "read"
        self._check_origin(headers, may_be_linked=policy == "public" and method in ("GET", "HEAD"))
        # A token never belongs into the query, where logs, histories and proxies would keep it.
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name.lower() in SECRET_NAMES for name, _ in query):
            raise Refused(400, "a token never belongs into the query", "send it as: Authorization: Bearer")
        allowed = self._scope_of(scope, headers)
        if policy != "public" and allowed is None:
            hint = (
                "open the URL that gsd serve printed last; without --keep-token, each start has a new token"
            )
            raise Refused(401, "the token is missing or wrong", hint)
        if found.route is None:
            if found.methods:
                raise Refused(405, f"{method[:20]} is not possible here")
            raise Refused(404, "there is nothing at this path")
        if policy == "control" and allowed != "control":
            raise Refused(403, "this token may only watch", "use the token for control")
        if not is_socket:
            _check_body(scope["method"], headers)
        state = {"scope": allowed, "nonce": secrets.token_urlsafe(18)}
        return found.route, {**scope, "path_params": dict(found.parameters), "gsd": state}

    def _check_origin(self, headers: Headers, *, may_be_linked: bool) -> None:
        """Refuse what a page of another origin sent; *may_be_linked*: except for following a link."""
        origin = headers.only("origin")
        if origin and origin.lower() not in self._site.addresses.origins:
            raise Refused(403, "the page that sent this comes from another origin")
        site = headers.only("sec-fetch-site")
        if site in ("", "same-origin", "none"):
            return
        is_link = headers.only("sec-fetch-mode") == "navigate"
        is_link = is_link and headers.only("sec-fetch-dest") == "document"
        if not (may_be_linked and is_link and not origin):
            raise Refused(403, "the page that sent this comes from another site")

    def _scope_of(self, scope: Any, headers: Headers) -> Scope | None:
        """Return what the request's token allows: of the header, or a WebSocket's subprotocol."""
        tokens = self._site.tokens
        kind, _, token = headers.only("authorization").partition(" ")
        if kind.lower() == "bearer" and token:
            return tokens.scope_of(token.strip())
        if scope["type"] == "websocket":
            offered = [name for name in scope.get("subprotocols", ()) if name.startswith(TOKEN_PROTOCOL)]
            if len(offered) == 1 and PROTOCOL in scope["subprotocols"]:
                return tokens.scope_of(offered[0].removeprefix(TOKEN_PROTOCOL))
        return None


class Headers:
    """The headers of a request. One that is sent twice is refused if it decides something."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in raw:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def only(self, name: str) -> str:
        """Return the value, empty if there is none; raise :class:`Refused` if there are several."""
        values = self._values.get(name, [])
        if len(values) > 1:
            raise Refused(400, f"the header {name} was sent {len(values)} times")
        return values[0].strip() if values else ""


def _check_body(method: str, headers: Headers) -> None:
    length = headers.only("content-length")
    if length and not (length.isascii() and length.isdigit()):
        raise Refused(400, "the header content-length is no number")
    size = int(length[:12] or "0")
    if size > MAX_BODY:
        raise Refused(413, f"a body may have at most {MAX_BODY} bytes")
    has_body = size > 0 or bool(headers.only("transfer-encoding"))
    if method not in WITH_BODY and not has_body:
        return
    # Also without a body: a form or a text/plain request needs no preflight, so it must do nothing.
    kind = headers.only("content-type").partition(";")[0].strip().lower()
    if kind != "application/json" and (has_body or method != "DELETE"):
        raise Refused(415, "the body has to be JSON", "send the header Content-Type: application/json")


def _limited(receive: Receive) -> Receive:
    """Return *receive*, which ends with 413 when a body without a length is too large."""
    size = 0

    async def read() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise Refused(413, f"a body may have at most {MAX_BODY} bytes")
        return message

    return read


def _with_headers(send: Send) -> Send:
    """Return *send*, which adds the headers that every answer has."""

    async def write(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            names = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS if name not in names]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return write


async def _refuse(refused: Refused, scope: Any, receive: Receive, send: Send) -> None:
    from starlette.responses import JSONResponse

    response = JSONResponse(refused.as_json(), status_code=refused.status)
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        head = {"status": response.status_code, "headers": response.raw_headers}
        await send({"type": "websocket.http.response.start", **head})
        await send({"type": "websocket.http.response.body", "body": response.body})
        return
    if refused.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    # What is left of the body is not read, so the connection cannot be used again.
    response.headers["connection"] = "close"
    await response(scope, receive, send)
