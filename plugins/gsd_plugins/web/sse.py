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
    last = request.headers.get("last-event-id", "")
    epoch, _, number = last.rpartition("-")
    if last and not (number.isascii() and number.isdigit() and len(number) < 18):
        raise Refused(400, "Last-Event-ID: expected the id of an event of this stream")
    # It may be of another start of the server, whose numbers mean nothing here.
    is_other = bool(last) and epoch != site.epoch
    position = int(number) if last and not is_other else site.feed.number
    lines = _lines(site, session, position, is_other=is_other)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


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
