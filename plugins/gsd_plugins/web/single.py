"""One run in the terminal as the only session of a server, which is in its process: ``gsd run --web``."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from gsd_core import Answer, Conflict, Event, NotFound, RunInfo, Session, SessionState, UserError
from gsd_core.project import Project
from gsd_plugins.sessions import Chunk, Polled, note_questions

from .server import serving

ID = "run"
"""The id of the only session; those of the harness are ``s1``, ``s2``, …"""
IN_TERMINAL = "this run is in a terminal of its own"


@asynccontextmanager
async def serve_run(run: RunInfo, port: int) -> AsyncGenerator[None]:
    """Serve the page about *run* as long as the context is entered."""
    async with (
        SingleRun(project=Project(run.project), run=run.id, pid=os.getpid()) as source,
        serving(source, host="127.0.0.1", port=port, mcp=False) as running,
    ):
        note = "" if running.port == port or not port else f" (port {port} is taken)"
        # Standard output may be for data, and the URL is for a person.
        print(f"page of this run{note}: {running.url}", file=sys.stderr, flush=True)
        yield


@attrs.define(kw_only=True)
class SingleRun(Polled):
    """Follows the run in *project* while its context is entered."""

    project: Project
    run: str
    pid: int
    _session: Session = attrs.field(init=False)
    _open: dict[str, None] = attrs.field(factory=dict[str, None], init=False)

    def __attrs_post_init__(self) -> None:
        now = datetime.now(UTC)
        self._session = Session(
            id=ID,
            project=self.project.root,
            command=tuple(sys.argv[1:]),
            state="running",
            run=self.run,
            pid=self.pid,
            created=now,
            started=now,
            updated=now,
        )

    async def __aenter__(self) -> SingleRun:
        self._publish(None)
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        self.project.close()

    def sessions(self) -> Sequence[Session]:
        """Return the only session."""
        return [self._session]

    def session(self, session: str) -> Session:
        """Return it, if that is its id."""
        if session != ID:
            raise NotFound(f"no session {session!r}", hint=f"there is only {ID!r}")
        return self._session

    async def status(self, session: str) -> dict[str, Any]:
        """Return the status of the run."""
        self.session(session)
        return await self._reads.run(asyncio.to_thread(self.project.status))

    async def output(self, session: str, cursor: int = 0, limit: int = 1 << 20) -> Chunk:
        """Return nothing: the run prints in its own terminal."""
        self.session(session)
        return Chunk(data=b"", start=0, end=0)

    async def start(self, arguments: Sequence[str], project: Path) -> Session:
        """Refuse: sessions belong to ``gsd serve``."""
        raise UserError("this server shows one run and starts no others", hint="use: gsd serve")

    async def stop(self, session: str) -> Session:
        """Ask the run to stop."""
        self.session(session)
        await self._reads.run(asyncio.to_thread(self.project.stop, by=getpass.getuser()))
        return self._session

    async def pause(self, session: str, *, by: str) -> bool:
        """Ask the run to end after its current step."""
        self.session(session)
        return await self._reads.run(asyncio.to_thread(self.project.stop, by=by, after_step=True))

    async def remove(self, session: str) -> None:
        """Refuse: it has not ended."""
        raise Conflict(f"session {self.session(session).id} has not ended")

    async def answer(self, session: str, question: str, words: str, *, by: str = "") -> Answer:
        """Answer an open question."""
        self.session(session)
        await self.refresh()
        by = by or getpass.getuser()
        found = await self._reads.run(asyncio.to_thread(self.project.answer, question, words, by=by))
        await self.refresh()
        return found

    async def send(self, session: str, data: bytes) -> None:
        """Refuse: the run has a terminal of its own."""
        self.session(session)
        raise Conflict(f"session {ID} has no terminal here", hint=IN_TERMINAL)

    async def resize(self, session: str, columns: int, rows: int) -> None:
        """Refuse: the run has a terminal of its own."""
        await self.send(session, b"")

    async def _look(self) -> None:
        for event in await asyncio.to_thread(self.project.poll):
            if event.run == self.run:
                note_questions(self._open, event)
            self._publish(event)
            checkpoint = next(iter(self._open), "")
            if checkpoint != self._session.checkpoint:
                state: SessionState = "waiting_checkpoint" if checkpoint else "running"
                now = datetime.now(UTC)
                self._session = attrs.evolve(self._session, state=state, checkpoint=checkpoint, updated=now)
                self._publish(None)

    def _publish(self, event: Event | None) -> None:
        self.changes.publish([(self._session, event, 0)])
