"""The changes of all sessions, encoded once, for any number of readers.

The feed keeps the last changes in one list that all readers share. A reader is a position in it, so a slow
one costs no memory and delays nobody: when its position is too old, it is told to read everything again.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from gsd_core import Event, Session, redact_data
from gsd_plugins.sessions import Source

MAX_FRAME = 256
"""How many changes one frame has at most."""
KEPT = 20_000
"""How many changes are kept for readers; the source may keep more, which are not worth sending one by one."""
MAX_LAG = 10_000
"""How far behind a reader may be before it is resynchronized instead."""
CACHED_FRAMES = 64
WAIT_SECONDS = 10.0


@attrs.frozen
class Entry:
    """A change as it is sent."""

    number: int
    session: str
    text: str


@attrs.frozen(kw_only=True)
class Piece:
    """What a reader gets next: entries in order, up to *number*; *lost*: some before them are gone."""

    entries: Sequence[Entry]
    number: int
    lost: bool = False


@attrs.define(kw_only=True)
class Feed:
    """Follows *source* while :meth:`run` runs.

    *number* is that of the last change that readers can get, *removed* are the sessions that were removed.
    """

    source: Source
    kept: int = KEPT
    max_lag: int = MAX_LAG
    _entries: list[Entry] = attrs.field(factory=list[Entry], init=False)
    _first: int = attrs.field(default=1, init=False)
    number: int = attrs.field(default=0, init=False)
    _sessions: frozenset[str] = attrs.field(default=frozenset(), init=False)
    removed: list[str] = attrs.field(factory=list[str], init=False)
    _outputs: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _frames: OrderedDict[tuple[int, int], str] = attrs.field(
        factory=OrderedDict[tuple[int, int], str], init=False
    )

    def __len__(self) -> int:
        """Return how many changes are kept."""
        return len(self._entries)

    def output_of(self, session: str) -> int:
        """Return a number that grows with what *session* prints, and with its end."""
        return self._outputs.get(session, 0)

    async def run(self) -> None:
        """Follow the source until cancelled."""
        self.take()
        while True:
            await self.source.changes.wait(self.number, WAIT_SECONDS)
            self.take()

    def take(self) -> None:
        """Take what the source has published since the last call."""
        found, lost = self.source.changes.after(self.number)
        if lost and found:
            # More happened at once than the source keeps: readers cannot get what is before these.
            self._entries.clear()
            self._first = found[0].number
        for change in found:
            text = encode(change.number, change.session, change.event)
            self._entries.append(Entry(change.number, change.session.id, text))
            # A session that has ended counts as one byte more, so that its readers look once again.
            self._outputs[change.session.id] = change.output + change.session.has_ended
        if found:
            self.number = found[-1].number
        if (over := len(self._entries) - self.kept) > 0:
            del self._entries[:over]
            self._first += over
        now = frozenset(session.id for session in self.source.sessions())
        gone = sorted(self._sessions - now)
        self.removed += gone
        self._sessions = now
        if found or gone:
            wake, self._wake = self._wake, asyncio.Event()
            wake.set()

    async def wait(self, after: int, removals: int, seconds: float) -> None:
        """Wait at most *seconds* for a change after *after*, or a removal after the first *removals*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.number <= after and len(self.removed) <= removals:
                    await self._wake.wait()

    def after(self, number: int, limit: int = MAX_FRAME) -> Piece:
        """Return at most *limit* changes after *number*; none, but *lost*, if that is too long ago."""
        too_old = number + 1 < self._first or self.number - number > self.max_lag
        if number > self.number or too_old:
            return Piece(entries=(), number=self.number, lost=True)
        begin = number + 1 - self._first
        entries = self._entries[begin : begin + limit]
        return Piece(entries=entries, number=entries[-1].number if entries else number)

    def everything_from(self) -> int:
        """Return the position before the oldest change that a reader can get."""
        return max(self._first - 1, self.number - self.max_lag)

    def frame(self, piece: Piece, sessions: frozenset[str] | None) -> str:
        """Return a piece as one message; ``None`` stands for all *sessions*. Empty if none is theirs.

        Readers of everything share the text, because encoding it is most of the work.
        """
        if sessions is not None:
            texts = [entry.text for entry in piece.entries if entry.session in sessions]
            return _frame(texts, piece.number) if texts else ""
        key = piece.entries[0].number, piece.number
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = _frame((entry.text for entry in piece.entries), piece.number)
            if len(self._frames) > CACHED_FRAMES:
                self._frames.popitem(last=False)
        return found


def _frame(texts: Iterable[str], number: int) -> str:
    return f'{{"frame":[{",".join(texts)}],"number":{number}}}'


def encode(number: int, session: Session, event: Event | None) -> str:
    """Return a change as JSON text."""
    about = {"number": number, "session": session.id}
    more = {"state": session_json(session)} if event is None else {"event": event_json(event)}
    return json.dumps({**about, **more}, separators=(",", ":"), ensure_ascii=False)


def session_json(session: Session) -> dict[str, object]:
    """Return a session as JSON data, without secrets and control characters."""
    from .text import clean

    found: dict[str, object] = clean(redact_data(session.as_json()))
    return found


def event_json(event: Event) -> dict[str, object]:
    """Return an event as JSON data, without control characters; secrets were redacted when it was read."""
    from gsd_plugins.terminal import activity_text

    from .text import clean, visible

    said = {"words": activity_text(event)} if event.name == "agent.activity" else {}
    return {
        "seq": event.seq,
        "name": event.name,
        "at": event.at.isoformat(),
        "run": clean(event.run, visible),
        "step": clean(event.step, visible),
        # A journal can come from elsewhere: that a run sanitizes what it records is no promise of it.
        "data": clean({**event.data, **said}, visible),
    }
