"""MCP over Streamable HTTP, as an application that can be mounted anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from gsd_plugins.sessions import Source, end_task

from .server import make_server

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


END_SECONDS = 0.5
"""How long requests may take to end, with an error, when the application ends."""


@attrs.define
class HttpApp:
    """The application; its session manager runs in a separate task, from the first request on.

    Servers that mount it need not pass on the lifespan, which most frameworks do not do for what is mounted.
    No state is kept between requests, so that clients need not notice that the server was restarted.
    """

    harness: Source
    _manager: StreamableHTTPSessionManager | None = attrs.field(default=None, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _ready: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _closing: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _requests: set[asyncio.Task[Any]] = attrs.field(factory=set[asyncio.Task[Any]], init=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the lifespan of the server."""
        while scope["type"] == "lifespan":
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
        if scope["type"] != "http":
            return
        manager = await self.start()
        request = asyncio.current_task()
        assert request is not None, "only an event loop calls this"
        self._requests.add(request)
        try:
            await manager.handle_request(scope, receive, send)
        finally:
            self._requests.discard(request)

    async def aclose(self) -> None:
        """End all requests; another one starts it again."""
        task, self._task, self._manager = self._task, None, None
        self._closing.set()
        if left := self._requests - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=END_SECONDS)
        if task:
            await end_task(task)

    async def start(self) -> StreamableHTTPSessionManager:
        """Start it, if it is not; raise ``ConfigError`` if the SDK cannot be used."""
        if self._manager is None:
            self._closing = asyncio.Event()
            server = make_server(self.harness, self._closing)  # which says what is wrong with the SDK
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            self._manager = StreamableHTTPSessionManager(server, stateless=True)
            self._ready = asyncio.Event()
            self._task = asyncio.create_task(_run(self._manager, self._ready), name="mcp")
        manager = self._manager
        await self._ready.wait()
        return manager


async def _run(manager: StreamableHTTPSessionManager, is_ready: asyncio.Event) -> None:
    """Run the manager until the task is cancelled; it has to be entered and left by the same task."""
    try:
        async with manager.run():
            is_ready.set()
            await asyncio.Event().wait()
    finally:
        is_ready.set()  # who waits for it gets the error of the manager, if it could not start
