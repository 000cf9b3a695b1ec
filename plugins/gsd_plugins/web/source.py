"""What the server shows: something with sessions that change. The harness is one, a single run another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from gsd_core import Answer, Session
from gsd_plugins.sessions import Change


class Output(Protocol):
    """A piece of what a session printed."""

    @property
    def data(self) -> bytes:
        """The bytes."""
        ...

    @property
    def start(self) -> int:
        """The cursor of the first byte."""
        ...

    @property
    def end(self) -> int:
        """The cursor after the last byte."""
        ...

    @property
    def dropped(self) -> bool:
        """Whether older bytes that were asked for are not kept any more."""
        ...


class Source(Protocol):
    """Sessions, and what can be done with them; :class:`gsd_plugins.sessions.following.Harness` is one."""

    @property
    def number(self) -> int:
        """The number of the last change."""
        ...

    def sessions(self) -> Sequence[Session]:
        """Return all sessions, oldest first."""
        ...

    def session(self, session: str) -> Session:
        """Return one session; raise ``NotFound`` if there is none."""
        ...

    async def status(self, session: str) -> dict[str, Any]:
        """Return the status of the session's project, as ``gsd status --json`` prints it."""
        ...

    async def output(self, session: str, cursor: int = 0, limit: int = 1 << 20) -> Output:
        """Return what the session printed from byte *cursor* on."""
        ...

    def changes(self, after: int) -> tuple[Sequence[Change], bool]:
        """Return the changes after number *after*, and whether some are not kept any more."""
        ...

    async def wait(self, after: int, seconds: float) -> int:
        """Wait for a change after number *after*, and return the last number."""
        ...

    async def refresh(self) -> None:
        """Read what has changed now."""
        ...

    async def start(self, arguments: Sequence[str], project: Path) -> Session:
        """Start a session; raise ``UserError`` if the command refuses."""
        ...

    async def stop(self, session: str) -> Session:
        """Ask a session to stop."""
        ...

    async def remove(self, session: str) -> None:
        """Forget an ended session."""
        ...

    async def answer(self, session: str, question: str, words: str, *, by: str = "") -> Answer:
        """Answer an open question."""
        ...

    async def send(self, session: str, data: bytes) -> None:
        """Send keys to the session's terminal."""
        ...

    async def resize(self, session: str, columns: int, rows: int) -> None:
        """Set the size of the session's terminal."""
        ...
