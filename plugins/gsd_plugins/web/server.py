"""Running the server: its socket, its MCP server, its end."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import logging
import socket
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import attrs

from gsd_core import UserError, __version__
from gsd_plugins.sessions import Source, cancel_tasks

from .access import Addresses, is_any_address, remove_token_file, tokens_for, write_token_file
from .gate import Gate
from .site import Site
from .stream import MAX_MESSAGE
from .table import routes

if TYPE_CHECKING:
    import uvicorn

    from gsd_plugins.mcp import HttpApp

log = logging.getLogger(__name__)

TRIES = 50
"""How many ports after the wanted one are tried."""
STOP_SECONDS = 2
"""How long requests may take after the server was asked to stop."""
MAX_CONNECTIONS = 2000


@attrs.frozen(kw_only=True)
class Running:
    """A server that listens: its *url* with the token in the fragment, and the *task* that it runs in."""

    url: str
    watch_url: str
    port: int
    site: Site
    server: uvicorn.Server
    task: asyncio.Task[None]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on *port*, or on the next port that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(port + TRIES, 65536) - 1
    for number in range(port, last + 1):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host.strip("[]"), number))
            found.listen(512)
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                problem = f"cannot listen on {host} port {number}: {error.strerror}"
                raise UserError(problem, hint="choose another one with --host and --port") from error
            continue
        found.setblocking(False)
        return found
    raise UserError(f"no port from {port} to {last} is free on {host}", hint="choose one with --port")


@asynccontextmanager
async def serving(
    source: Source,
    *,
    host: str,
    port: int,
    public_urls: Iterable[str] = (),
    slots: int | None = None,
    mcp: bool = True,
    keep_token: bool = False,
) -> AsyncGenerator[Running]:
    """Serve *source* as long as the context is entered; *keep_token*: the tokens of the last one."""
    import uvicorn

    taken = listen(host, port)
    number: int = taken.getsockname()[1]
    tokens = tokens_for(number, keep=keep_token)
    site = Site(
        source=source,
        tokens=tokens,
        addresses=Addresses.of(host, number, public_urls),
        table=routes(),
        version=__version__,
        slots=slots,
    )
    shown = "127.0.0.1" if is_any_address(host) else f"[{host}]" if ":" in host else host
    base = next(iter(public_urls), f"http://{shown}:{number}").rstrip("/")
    url, watch_url = f"{base}/#token={tokens.control}", f"{base}/#token={tokens.read}"
    config = uvicorn.Config(
        Gate(site),
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        h11_max_incomplete_event_size=64 << 10,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _server_class()(config)
    async with AsyncExitStack() as stack:
        stack.callback(taken.close)
        await stack.enter_async_context(site.following())
        if mcp and (app := _mcp(source)):
            site.mcp = app
            stack.push_async_callback(app.aclose)
        stack.callback(remove_token_file, write_token_file(tokens, url, number))
        task = asyncio.create_task(server.serve(sockets=[taken]), name="web server")
        task.add_done_callback(_report)
        stack.push_async_callback(_stop, site, server, task)
        stack.push_async_callback(site.printed.aclose)
        yield Running(url=url, watch_url=watch_url, port=number, site=site, server=server, task=task)


def _server_class() -> type[uvicorn.Server]:
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leave the signals alone: a run has its own idea of Ctrl-C."""
            yield

    return Server


def _report(task: asyncio.Task[None]) -> None:
    """Say why the server has ended: a run goes on without its page."""
    if not task.cancelled() and (error := task.exception()):
        log.error("the dashboard has ended: %s: %s", type(error).__name__, error)


async def _stop(site: Site, server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    """End the streams, then the server."""
    site.stopping.set()
    server.should_exit = True
    if site.mcp:
        # Its requests may wait for minutes; uvicorn would wait for them, and then some more.
        await site.mcp.aclose()
    await asyncio.wait([task], timeout=STOP_SECONDS + 0.5)
    if not task.done():
        await cancel_tasks(task)


def _mcp(source: Source) -> HttpApp | None:
    """Return the MCP server, or ``None`` if that plugin or its SDK is not installed."""
    if not all(importlib.util.find_spec(name) for name in ("gsd_plugins.mcp", "mcp")):
        return None
    from gsd_plugins.mcp import http_app

    return http_app(source)
