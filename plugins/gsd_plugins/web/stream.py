"""The WebSocket: one connection with any number of subscriptions, terminals and their input."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import attrs

from gsd_core import GsdError
from gsd_plugins.sessions import cancel_tasks, until_one_ends

from .errors import Refused, error_json, refused_by
from .gate import PROTOCOL
from .text import printed_text

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from .site import Site

MAX_MESSAGE = 64 << 10
"""The size of the largest message of a client, in bytes."""
OUTPUT_BYTES = 64 << 10
"""How much output one message has."""
LOOK_SECONDS = 0.05
"""How often output is looked for."""
WAIT_SECONDS = 10.0
SEND_SECONDS = 60.0
"""How long a client may take to read one message before it is taken for dead."""
MAX_SESSIONS = 500
EVERYTHING = "*"


@attrs.define
class Printed:
    """A subscription to what a session prints, from *cursor* on; *known* is where it ended."""

    cursor: int
    known: int = -1

    def is_due(self, end: int) -> bool:
        """Whether the session has printed or changed since the last look: reading the files costs more."""
        is_new, self.known = end != self.known, end
        return is_new or self.cursor < end


@attrs.define(kw_only=True)
class Connection:
    """One WebSocket that has been admitted."""

    site: Site
    scope: str
    receive: Receive
    send: Send
    _position: int = attrs.field(default=0, init=False)
    _removals: int = attrs.field(default=0, init=False)
    _sessions: set[str] = attrs.field(factory=set[str], init=False)
    _printed: dict[tuple[str, bool], Printed] = attrs.field(
        factory=dict[tuple[str, bool], Printed], init=False
    )
    _publisher: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _failed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Serve it until either side ends it."""
        await self.receive()
        await self.send({"type": "websocket.accept", "subprotocol": PROTOCOL, "headers": []})
        feed = self.site.feed
        self._position, self._removals = feed.number, len(feed.removed)
        hello = {"epoch": self.site.epoch, "number": feed.number, "scope": self.scope}
        await self._say({"hello": {**hello, "version": self.site.version}})
        try:
            await until_one_ends(self._listen(), self._print(), self._stop(), self._failed.wait())
        finally:
            await self._halt()

    async def _stop(self) -> None:
        await self.site.stopping.wait()
        await self._close(1001)

    # What the client says

    async def _listen(self) -> None:
        while True:
            message = await self.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                await self._close(1003)
                return
            if len(text) > MAX_MESSAGE:
                await self._close(1009)
                return
            try:
                orders = json.loads(text)
            except (ValueError, RecursionError):
                orders = None
            if not isinstance(orders, dict):
                await self._close(1007)
                return
            for name, about in cast("dict[str, Any]", orders).items():
                await self._obey(name, about)

    async def _obey(self, name: str, about: Any) -> None:
        known: Mapping[str, Callable[[Any], Awaitable[None]]] = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "terminal": self._terminal,
            "input": self._input,
            "resize": self._resize,
            "ping": lambda about: self._say({"pong": about}),
        }
        try:
            if name not in known:
                raise Refused(400, f"unknown message {name[:40]!r}")
            if name != "ping" and not isinstance(about, dict):
                raise Refused(400, f"{name}: expected an object")
            if name in ("input", "resize") and self.scope != "control":
                raise Refused(403, "this token may only watch", "use the token for control")
            await known[name](cast("Any", about))
        except (Refused, GsdError) as error:
            refused = error if isinstance(error, Refused) else refused_by(error)
            await self._say(refused.as_json())
        except OSError as error:
            await self._say(error_json("conflict", f"the session's terminal is gone: {error.strerror}"))

    async def _subscribe(self, about: Mapping[str, Any]) -> None:
        session = self._session_in(about, may_be_all=True)
        after, epoch = about.get("after"), about.get("epoch")
        if not (after is None or (isinstance(after, int) and not isinstance(after, bool) and after >= 0)):
            raise Refused(400, "subscribe.after: expected a number or null")
        if len(self._sessions) >= MAX_SESSIONS and session not in self._sessions:
            raise Refused(409, f"a connection may have at most {MAX_SESSIONS} subscriptions")
        feed = self.site.feed
        is_other = epoch is not None and epoch != self.site.epoch
        wanted = feed.number if after is None or is_other else after
        if wanted == 0:
            wanted = feed.everything_from()
        await self._halt()
        # One position for all subscriptions: a client may see a change twice, and never miss one.
        self._position = min(self._position, wanted) if self._sessions else wanted
        self._sessions.add(session)
        if is_other:
            await self._say({"resync": True, "number": self._position})
        self._publisher = asyncio.create_task(self._publish())
        self._printed.pop((session, False), None)
        if about.get("output") is True and session != EVERYTHING:
            self._printed[session, False] = Printed(cursor=_cursor_in(about, -OUTPUT_BYTES))

    async def _unsubscribe(self, about: Mapping[str, Any]) -> None:
        session = self._session_in(about, may_be_all=True)
        await self._halt()
        self._sessions.discard(session)
        self._printed.pop((session, False), None)
        if self._sessions:
            self._publisher = asyncio.create_task(self._publish())

    async def _halt(self) -> None:
        """End the task that publishes, between two frames: its position and subscriptions change."""
        if self._publisher is not None:
            await cancel_tasks(self._publisher)
            self._publisher = None

    async def _terminal(self, about: Mapping[str, Any]) -> None:
        session = self._session_in(about)
        if about.get("close") is True:
            self._printed.pop((session, True), None)
            return
        cursor = _cursor_in(about, 0)
        if len(self._printed) >= MAX_SESSIONS:
            raise Refused(409, f"a connection may follow at most {MAX_SESSIONS} outputs")
        self._printed[session, True] = Printed(cursor=cursor)

    async def _input(self, about: Mapping[str, Any]) -> None:
        session = self._session_in(about)
        try:
            data = base64.b64decode(str(about.get("data", "")), validate=True)
        except (ValueError, binascii.Error) as error:
            raise Refused(400, "input.data: expected base64") from error
        await self.site.source.send(session, data)

    async def _resize(self, about: Mapping[str, Any]) -> None:
        session = self._session_in(about)
        match about.get("columns"), about.get("rows"):
            case int(columns), int(rows) if 1 <= columns <= 1000 and 1 <= rows <= 1000:
                await self.site.source.resize(session, columns, rows)
            case _:
                raise Refused(400, "resize: expected columns and rows from 1 to 1000")

    def _session_in(self, about: Mapping[str, Any], *, may_be_all: bool = False) -> str:
        name = about.get("session")
        if may_be_all and name == EVERYTHING:
            return EVERYTHING
        if not isinstance(name, str):
            raise Refused(400, "session: expected the id of a session")
        return self.site.source.session(name).id

    # What the client gets

    async def _publish(self) -> None:
        try:
            while True:
                await self._publish_piece()
        except asyncio.CancelledError:
            raise
        except Exception:
            # The client is gone, or has not read for a minute.
            self._failed.set()

    async def _publish_piece(self) -> None:
        """Send what has changed since the last piece; wait if nothing has."""
        feed = self.site.feed
        if gone := feed.removed[self._removals :]:
            shown = [one for one in gone if EVERYTHING in self._sessions or one in self._sessions]
            if shown:
                await self._say({"removed": {"sessions": shown}})
            self._removals += len(gone)
        piece = feed.after(self._position)
        if piece.lost:
            await self._say({"resync": True, "number": piece.number})
        elif piece.entries:
            names = None if EVERYTHING in self._sessions else frozenset(self._sessions)
            if text := feed.frame(piece, names):
                await self._write(text)
            else:
                await asyncio.sleep(0)
        else:
            await feed.wait(self._position, self._removals, WAIT_SECONDS)
        # Only now: a task that was cancelled before sends the piece again.
        self._position = piece.number

    async def _print(self) -> None:
        """Send what the sessions print."""
        while True:
            moved = False
            for (session, raw), printed in list(self._printed.items()):
                moved |= await self._print_piece(session, raw, printed)
            if not moved:
                await asyncio.sleep(LOOK_SECONDS)

    async def _print_piece(self, session: str, raw: bool, printed: Printed) -> bool:
        """Send the next piece of one session's output, and return whether there was one."""
        source = self.site.source
        if not printed.is_due(self.site.feed.output_of(session)):
            return False
        try:
            has_ended = source.session(session).has_ended
            chunk = await source.output(session, printed.cursor, OUTPUT_BYTES)
        except (GsdError, OSError):
            self._printed.pop((session, raw), None)
            return False
        if self._printed.get((session, raw)) is not printed:
            return False
        is_last = has_ended and len(chunk.data) < OUTPUT_BYTES
        printed.cursor = chunk.start
        if not chunk.data and not is_last:
            return False
        about: dict[str, Any] = {"session": session, "start": chunk.start, "dropped": chunk.dropped}
        about["ended"] = is_last
        if raw:
            about |= {"end": chunk.end, "data": base64.b64encode(chunk.data).decode()}
        else:
            text, used = printed_text(chunk.data, is_last=is_last or len(chunk.data) == OUTPUT_BYTES)
            if not used and not is_last:
                return False
            about |= {"end": chunk.start + used, "text": text}
        printed.cursor = about["end"]
        if is_last:
            self._printed.pop((session, raw), None)
        await self._say({"terminal" if raw else "output": about})
        return True

    async def _say(self, data: Mapping[str, Any]) -> None:
        await self._write(json.dumps(data, ensure_ascii=True, separators=(",", ":")))

    async def _write(self, text: str) -> None:
        # The server waits here until the client has read enough of what was sent before.
        async with asyncio.timeout(SEND_SECONDS):
            await self.send({"type": "websocket.send", "text": text})

    async def _close(self, code: int) -> None:
        with suppress(Exception):
            await self.send({"type": "websocket.close", "code": code})


def _cursor_in(about: Mapping[str, Any], default: int) -> int:
    found = about.get("cursor", default)
    if not isinstance(found, int) or isinstance(found, bool) or abs(found) > 1 << 60:
        raise Refused(400, "cursor: expected a number")
    return found
