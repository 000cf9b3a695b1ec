"""What MCP and the dashboard need of what they show: the harness is one such source, a single run another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self

import attrs

from gsd_core import Answer, GsdError, Session

from .changes import Changes, ShieldedTasks, end_task
from .output import Chunk

POLL_SECONDS = 0.08
"""How often the journals are read. A question has to be on every screen within 250 ms."""
KEPT_CHANGES = 50_000
"""How many changes are kept for those who come back; older ones are in the journals."""


class Source(Protocol):
    """Sessions that change, and what can be done with them; the methods are those of
    :class:`gsd_plugins.sessions.following.Harness`."""

    @property
    def changes(self) -> Changes: ...
    def sessions(self) -> Sequence[Session]: ...
    def session(self, session: str) -> Session: ...
    async def status(self, session: str) -> dict[str, Any]: ...
    async def output(self, session: str, cursor: int = 0, limit: int = 1 << 20) -> Chunk: ...
    async def refresh(self) -> None: ...
    async def start(self, arguments: Sequence[str], project: Path) -> Session: ...
    async def stop(self, session: str) -> Session: ...
    async def pause(self, session: str, *, by: str) -> bool: ...
    async def remove(self, session: str) -> None: ...
    async def answer(self, session: str, question: str, words: str, *, by: str = "") -> Answer: ...
    async def send(self, session: str, data: bytes) -> None: ...
    async def resize(self, session: str, columns: int, rows: int) -> None: ...


@attrs.define(kw_only=True)
class Polled:
    """What the sources have in common: they look for changes as long as their context is entered.

    Methods that touch the disk are coroutines; they run in a thread, so that no reader waits for another.
    """

    poll_seconds: float = POLL_SECONDS
    changes: Changes = attrs.field(factory=lambda: Changes(kept=KEPT_CHANGES), init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _reads: ShieldedTasks = attrs.field(factory=ShieldedTasks, init=False)

    async def __aenter__(self) -> Self:
        await self.refresh()
        self._task = asyncio.create_task(self._follow(), name="changes")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task:
            await end_task(self._task)
        # Threads may still read the registry and the journals.
        await self._reads.wait()

    async def refresh(self) -> None:
        """Read what has changed now, without waiting for the next poll."""
        await self._reads.run(self._refresh())

    async def _refresh(self) -> None:
        async with self._lock:
            await self._look()

    async def _look(self) -> None:
        """Publish what has changed."""
        raise NotImplementedError

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self.poll_seconds)
            # A journal that is being moved away, a full disk: the next poll may succeed.
            with suppress(GsdError, OSError):
                await self.refresh()
