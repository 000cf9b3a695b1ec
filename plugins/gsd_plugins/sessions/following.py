"""The harness: all sessions and their projects as one process sees them, kept up to date, with a number for
every change.

MCP and the dashboard are built on it. It owns nothing: sessions live in their own processes, and what they
did is in their projects' journals. So a harness that is killed and started again knows the same as before,
and several of them (``gsd serve``, ``gsd mcp``) can work side by side.

One task polls the registry and the journals. Neither takes a lock, and a journal that has nothing new costs
one query.
"""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from gsd_core import Answer, Conflict, Event, GsdError, NotFound, Session, remember_origin, settings_of
from gsd_core.project import Project

from . import SessionsSettings, host
from .barriers import work_of
from .output import Chunk, end_of
from .registry import ENDED, Registry, output_folder
from .source import Polled
from .starting import start_session

PROJECT_SECONDS = 0.2
"""How long one look at one project may take, about: its owner may want to keep the others from being read."""
SETTLE_SECONDS = 1.0
"""How often it is checked whether the sessions' processes still run."""
BACKLOG = 1000
"""How many records of a journal that exists already become changes; readers get the others from there."""


@attrs.define
class _Watched:
    """One session as the poll loop knows it."""

    session: Session
    project: Project
    output: int = 0


@attrs.define(kw_only=True)
class Harness(Polled):
    """Follows all sessions while its context is entered: ``async with Harness()``."""

    _watched: dict[str, _Watched] = attrs.field(factory=dict[str, _Watched], init=False)
    _projects: dict[Path, Project] = attrs.field(factory=dict[Path, Project], init=False)
    _problems: dict[Path, GsdError] = attrs.field(factory=dict[Path, GsdError], init=False)
    _starting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _registry: Registry | None = attrs.field(default=None, init=False)
    _sessions: dict[str, Session] = attrs.field(factory=dict[str, Session], init=False)
    _version: int = attrs.field(default=-1, init=False)
    _settled: float = attrs.field(default=0.0, init=False)

    async def __aenter__(self) -> Harness:
        remember_origin()
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        for project in self._projects.values():
            project.close()
        if self._registry:
            self._registry.close()
            self._registry = None

    # Reading

    def sessions(self) -> Sequence[Session]:
        """Return all sessions as of the last poll, oldest first."""
        return [watched.session for watched in self._watched.values()]

    def session(self, session: str) -> Session:
        """Return one session as of the last poll; raise ``NotFound`` if there is none."""
        return self._find(session).session

    async def status(self, session: str) -> dict[str, Any]:
        """Return the status of the session's project, as ``gsd status --json`` prints it.

        Raise an error if the project cannot be read: what is known before a damaged record is not its status.
        """
        if problem := self._problems.get(self._find(session).project.root):
            raise problem.with_traceback(None)  # the same one each time
        return await self._reads.run(asyncio.to_thread(self._find(session).project.status))

    async def output(self, session: str, cursor: int = 0, limit: int = 1 << 20) -> Chunk:
        """Return what the session printed from byte *cursor* on, at most *limit* bytes."""
        return await asyncio.to_thread(host.output_of, session, cursor, limit)

    # Acting

    async def start(self, arguments: Sequence[str], project: Path) -> Session:
        """Start a session: *arguments* are those after ``gsd``, beginning with the subcommand.

        The command checks everything first; raise ``CommandRefused`` if it refuses. Raise ``Conflict`` if
        another session continues the project's run already: whoever clicks twice wants one.
        """
        async with self._starting:
            await self.refresh()
            root = await asyncio.to_thread(project.resolve)
            others = [one for one in self.sessions() if one.project == root and not one.has_ended]
            for other in others if arguments[0] == "resume" else ():
                if work_of(other.command).does in ("run", "resume"):
                    raise Conflict(f"session {other.id} continues this project already")
            session = await start_session(arguments, project)
            await self.refresh()
        return self.session(session)

    async def stop(self, session: str) -> Session:
        """Ask a session to stop."""
        found = await asyncio.to_thread(host.stop_session, session)
        await self.refresh()
        return found

    async def pause(self, session: str, *, by: str) -> bool:
        """Ask the run of the project to end after its current step; return whether one is active."""
        project = self._find(session).project
        return await self._reads.run(asyncio.to_thread(project.stop, by=by, after_step=True))

    async def remove(self, session: str) -> None:
        """Forget an ended session, and what it printed."""
        await asyncio.to_thread(host.remove_session, session)
        await self.refresh()

    async def answer(self, session: str, question: str, words: str, *, by: str = "") -> Answer:
        """Answer an open question of the session's project; the first answer that a run takes wins.

        Raise ``Conflict`` if it is answered already, naming who did; ``UserError`` if *words* are no valid
        answer.
        """
        await self.refresh()
        project = self._find(session).project
        by = by or getpass.getuser()
        found = await self._reads.run(asyncio.to_thread(project.answer, question, words, by=by))
        await self.refresh()
        return found

    async def send(self, session: str, data: bytes) -> None:
        """Send keys to the session's terminal."""
        await asyncio.to_thread(_steer, session, lambda control: control.send(data))

    async def resize(self, session: str, columns: int, rows: int) -> None:
        """Set the size of the session's terminal."""
        await asyncio.to_thread(_steer, session, lambda control: control.resize(columns, rows))

    # Following

    async def _look(self) -> None:
        self.changes.publish(await asyncio.to_thread(self._poll))

    def _poll(self) -> list[tuple[Session, Event | None, int]]:
        """Return what has changed since the last poll, in the order in which it is published."""
        found: list[tuple[Session, Event | None, int]] = []
        for key, session in self._read_sessions().items():
            watched = self._watched.get(key)
            is_new = watched is None or watched.session != session
            if watched is None:
                project = self._projects.setdefault(session.project.resolve(), Project(session.project))
                watched = self._watched[key] = _Watched(session=session, project=project)
            if not is_new and watched.session.state in ENDED:
                continue
            output = end_of(output_folder(key))
            if is_new or output != watched.output:
                watched.session, watched.output = session, output
                found.append((session, None, output))
        owners = {watched.project.root: watched for watched in self._watched.values()}
        for root in [root for root in self._projects if root not in owners]:
            self._projects.pop(root).close()
            self._problems.pop(root, None)
        for root, owner in owners.items():
            # A journal that is damaged or being moved away must not keep the others from being read.
            with suppress(OSError):
                found += [(owner.session, event, owner.output) for event in self._events_of(root)]
        return found

    def _events_of(self, root: Path) -> Iterator[Event]:
        """Yield what is new in a project; remember why it cannot be read, if so."""
        project = self._projects[root]
        try:
            events = project.poll(backlog=BACKLOG, seconds=PROJECT_SECONDS)
            yield from events
            # The first call returns what is before a damaged record, and only the second one names it.
            if events:
                yield from project.poll(seconds=PROJECT_SECONDS)
        except GsdError as error:
            self._problems[root] = error
        else:
            self._problems.pop(root, None)

    def _read_sessions(self) -> dict[str, Session]:
        """Return all sessions by id, and forget those that were removed."""
        if self._registry is None or not self._registry.is_current():
            if self._registry:
                self._registry.close()
            self._registry, self._version, self._settled = None, -1, 0.0
            self._registry = Registry()
        is_due = time.monotonic() - self._settled > SETTLE_SECONDS
        if is_due:
            host.settle(self._registry, settings_of(SessionsSettings))
            self._settled = time.monotonic()
        if is_due or self._version != self._registry.version():
            self._version = self._registry.version()
            self._sessions = {row.session.id: row.session for row in self._registry.all()}
            for gone in [key for key in self._watched if key not in self._sessions]:
                del self._watched[gone]
        return self._sessions

    def _find(self, session: str) -> _Watched:
        name = session.strip()
        watched = self._watched.get(name) or self._watched.get(f"s{name}")
        if watched is None:
            raise NotFound(f"no session {session!r}", hint="list the sessions with: gsd ps --all")
        return watched


def _steer(session: str, order: Callable[[host.Control], None]) -> None:
    with host.Control(session) as control:
        order(control)
