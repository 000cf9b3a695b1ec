"""Server-sent events: the changes as a stream of lines, for scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from gsd_plugins.sessions import until_one_ends

from .errors import Refused
from .site import Site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BEAT_SECONDS = 15.0


async def stream_events(site: Site, request: Request) -> Response:
    """Return changes as server-sent events; continue with the header Last-Event-ID."""
    from starlette.responses import StreamingResponse

    named = request.query_params.get("session", "")
    session = site.source.session(named).id if named else ""
    position, is_other = _position(site, request.headers.get("last-event-id", ""))
    lines = _lines(site, session, position, is_other=is_other)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _position(site: Site, last: str) -> tuple[int, bool]:
    """Return where to begin, and whether the client knew another start of the server."""
    if not last:
        return site.feed.number, False
    epoch, _, number = last.rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 18):
        raise Refused(400, "Last-Event-ID: expected the id of an event of this stream")
    return (int(number), False) if epoch == site.epoch else (site.feed.number, True)


async def _lines(site: Site, session: str, position: int, *, is_other: bool) -> AsyncGenerator[str]:
    feed, epoch = site.feed, site.epoch
    yield ": gsd\n\n"
    if is_other:
        yield _resync(epoch, position)
    while not site.stopping.is_set():
        piece = feed.after(position)
        position = piece.number
        if piece.lost:
            yield _resync(epoch, position)
        elif piece.entries:
            texts = [
                f"id: {epoch}-{entry.number}\nevent: change\ndata: {entry.text}\n\n"
                for entry in piece.entries
                if not session or entry.session == session
            ]
            if texts:
                yield "".join(texts)
            await asyncio.sleep(0)
        else:
            await until_one_ends(site.stopping.wait(), feed.wait(position, len(feed.removed), BEAT_SECONDS))
            if not site.stopping.is_set() and feed.number <= position:
                yield ": still here\n\n"


def _resync(epoch: str, number: int) -> str:
    return f'id: {epoch}-{number}\nevent: resync\ndata: {{"number":{number}}}\n\n'
