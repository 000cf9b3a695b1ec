"""Telling clients that a document has changed: subscriptions to resources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs

from gsd_plugins.sessions import Source, end_task

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import InMemorySubscriptionBus

WAIT_SECONDS = 10.0

Stamps = dict[str, tuple[int, int]]


@attrs.define(kw_only=True)
class Updates:
    """Follows *source*, and says which of the documents, by the end of their address, have changed.

    *bus* has the clients that listen, *sessions* those of earlier versions of MCP, by the address.
    """

    source: Source
    documents: Mapping[str, str]
    scheme: str
    bus: InMemorySubscriptionBus
    sessions: dict[str, set[ServerSession]] = attrs.field(factory=dict[str, "set[ServerSession]"])

    @asynccontextmanager
    async def following(self, _: Server[Any]) -> AsyncGenerator[None]:
        """Follow the documents as long as the server runs."""
        # What is known is read before the first client can ask for changes: a later one is never missed.
        number, known = self.source.changes.number, await asyncio.to_thread(self._stamps)
        task = asyncio.create_task(self._follow(number, known), name="resources")
        try:
            yield
        finally:
            await end_task(task)

    async def _follow(self, number: int, known: Stamps) -> None:
        from mcp.server.subscriptions import ResourceUpdated

        while True:
            await self.source.changes.wait(number, WAIT_SECONDS)
            if number == self.source.changes.number:
                continue
            number, now = self.source.changes.number, await asyncio.to_thread(self._stamps)
            for uri in [uri for uri, stamp in now.items() if known.get(uri) != stamp]:
                await self.bus.publish(ResourceUpdated(uri=uri))
                for session in [*self.sessions.get(uri, ())]:
                    try:
                        await session.send_resource_updated(uri)
                    except Exception:  # the client is gone, which each transport says in another way
                        self.sessions[uri].discard(session)
            known = now

    def _stamps(self) -> Stamps:
        """Return when each document was last written, and its size."""
        found: Stamps = {}
        for session in self.source.sessions():
            for name, file in self.documents.items():
                with suppress(OSError):
                    about = (session.project / ".planning" / file).stat()
                    found[f"{self.scheme}{session.id}/{name}"] = (about.st_mtime_ns, about.st_size)
        return found
