"""The proxy on loopback that holds the credentials of one call, outside of the sandbox.

Claude Code runs the commands of a model as children with its own rights, so they can read what is in its
memory, its environment and its files. So it gets only a token of this process. The proxy accepts requests
with that token, while the call lasts, for the paths that Claude Code needs; it puts the real credentials in
place of the token and forwards them to the one configured API.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from .loopback import Handler, Server

if TYPE_CHECKING:
    import httpx2

API = "https://api.anthropic.com"
PATHS = ("/v1/messages", "/v1/messages/count_tokens")
MAX_BODY = 64 * 2**20
MAX_AT_ONCE = 16
"""Requests at the same time: Claude Code makes one for each of its agents, and a few small ones."""
CONNECT_SECONDS = 30
CREDENTIALS = ("x-api-key", "authorization")
NOT_FORWARDED = (
    *("host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "te", "trailer"),
    *("proxy-connection", "proxy-authorization", "expect"),
)
"""Headers that are about one connection (RFC 9110, section 7.6.1)."""


@attrs.frozen(kw_only=True)
class Access:
    """How to reach the API at *url*: which headers to send instead of the token, and others to add.

    *credentials* returns the headers with the credentials; with ``True``, renewed ones if it can, because the
    API has rejected the last ones. It may block. *is_key*: they are a key, not the token of a login.
    """

    url: str = API
    credentials: Callable[[bool], Mapping[str, str]] = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    is_key: bool = True


@asynccontextmanager
async def proxy_to(access: Access, token: str) -> AsyncGenerator[str]:
    """Serve *access* to whoever has *token* until the context ends; yield the address."""
    server = _Server(access, token)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True, name="API proxy")
    thread.start()
    try:
        yield server.url
    finally:
        await asyncio.shield(asyncio.to_thread(server.close))


def credentials_sent(start: Callable[[str], object]) -> dict[str, str]:
    """Return the headers with credentials of the requests that *start* has a program make to an address.

    Nothing is forwarded. Blocks until *start* has returned.
    """
    with _Server(None, "") as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            start(server.url)
        finally:
            server.shutdown()
    return server.seen


class _Server(Server):
    def __init__(self, access: Access | None, token: str) -> None:
        super().__init__(_Handler)
        self.access = access
        self.token = token
        self.seen: dict[str, str] = {}
        self.slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class _Handler(Handler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        """Forward a request, if it is one that Claude Code makes."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.refuse(413, "request_too_large", "the proxy forwards no request of this length")
            return
        body = self.rfile.read(int(length))
        sent = {name: self.headers[name] for name in CREDENTIALS if name in self.headers}
        given = [value.removeprefix("Bearer ").encode() for value in sent.values()]
        access = self.server.access
        if access is None:
            self.server.seen = sent
            self.refuse(400, "invalid_request_error", "only the credentials were asked for")
        elif not any(secrets.compare_digest(each, self.server.token.encode()) for each in given):
            self.refuse(401, "authentication_error", "this is not the token of the call")
        elif urlsplit(self.path).path not in PATHS:
            self.refuse(404, "not_found_error", "the proxy does not forward this path")
        elif not self.server.slots.acquire(timeout=CONNECT_SECONDS):
            self.refuse(429, "rate_limit_error", "too many requests at the same time")
        else:
            try:
                self._forward(access, body)
            finally:
                self.server.slots.release()

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        """Answer that there is nothing: Claude Code needs no other requests."""
        self.refuse(404, "not_found_error", "the proxy does not forward this request")

    do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do_GET  # noqa: N815 - http.server's names

    def _forward(self, access: Access, body: bytes, *, renewed: bool = False) -> None:
        import httpx2

        url = access.url.rstrip("/") + self.path
        try:
            credentials = access.credentials(renewed)
            left_out = (*NOT_FORWARDED, *CREDENTIALS)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
            headers = {**kept, **access.headers, **credentials}
            with _client().stream("POST", url, content=body, headers=headers) as response:
                is_rejected = response.status_code == 401 and not renewed
                if not is_rejected or access.credentials(True) == credentials:
                    self._pass_on(response)
                    return
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, ImportError) as error:
            # Halfway through an answer, only the end of the connection can say so.
            if not self.close_connection:
                why = f"cannot reach {urlsplit(url).netloc}: {error or type(error).__name__}"
                self.refuse(502, "api_error", why)
            return
        self._forward(access, body, renewed=True)

    def _pass_on(self, response: httpx2.Response) -> None:
        """Stream a response; if it breaks off, so does this one: the last chunk is missing."""
        self.send_response(response.status_code)
        for name, value in response.headers.multi_items():
            if name not in NOT_FORWARDED:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for chunk in response.iter_raw():
            if not self.server.is_open:
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = False


@cache
def _client() -> httpx2.Client:
    """Return the client of this process: a new one reads the certificates, which takes half a second."""
    import httpx2

    context = httpx2.create_ssl_context()
    if more := os.environ.get("NODE_EXTRA_CA_CERTS"):
        with suppress(OSError):
            context.load_verify_locations(more)
    return httpx2.Client(
        verify=context,
        # Claude Code has its own time limits.
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None),
        # A server on this machine is not reached through a proxy elsewhere.
        mounts={f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
    )
