"""Starting, stopping, steering and removing sessions: what the commands, MCP and the dashboard use."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from gsd_core import (
    Conflict,
    Session,
    SessionRequest,
    UserError,
    refuse_agents,
    settings_of,
    signal_process,
    state_folder,
)

from . import SessionsSettings
from .barriers import phases_of, will_be_possible
from .output import Chunk, read_output
from .queue import settle_lost
from .registry import ACTIVE, ENDED, Registry, RegistryError, is_process, output_folder

START_SECONDS = 15.0
POLL_SECONDS = 0.02
RUNNER_LOG = "runner.log"


@attrs.frozen
class LocalHost:
    """Sessions as processes of this user on this machine."""

    settings: SessionsSettings

    def start(self, request: SessionRequest) -> Session:
        """Start a session, or queue it if no slot is free."""
        return start_session(request, self.settings)

    def stop(self, session: str) -> Session:
        """Ask a session to stop."""
        return stop_session(session)

    def list(self) -> Sequence[Session]:
        """Return all sessions, oldest first."""
        return list_sessions()


def start_session(request: SessionRequest, settings: SessionsSettings) -> Session:
    """Add a session and start its runner; return it as soon as it is known whether it starts or waits.

    The runner inherits this process's environment: credentials are never written to disk. Sessions that
    ended too long ago are removed. Raise ``UserError`` if the request cannot be done yet, and no other
    session of the project is going to do what is missing.
    """
    refuse_agents("start a session")
    with Registry() as registry:
        settle(registry, settings)
        if settings.keep_days:
            remove_old(registry, timedelta(days=settings.keep_days))
        project = request.project.resolve()
        if request.not_yet:
            others = [row for row in registry.all(("idle", *ACTIVE)) if row.session.project == project]
            if not will_be_possible(request.arguments, others, phases_of(project)):
                raise UserError(request.not_yet, hint=request.hint)
        session = registry.add(project=project, folder=request.folder.absolute(), command=request.arguments)
        _start_runner(registry, session.id, settings)
        latest = time.monotonic() + START_SECONDS
        while True:
            found = registry.get(session.id).session
            # The runner says whether it starts or waits.
            if found.state != "idle" or found.reason or time.monotonic() > latest:
                return found
            time.sleep(POLL_SECONDS)


def settle(registry: Registry, settings: SessionsSettings) -> None:
    """Mark the sessions whose processes are gone as failed; those in the queue survive a restart.

    Their new runners inherit this process's environment, so an agent that only looks gives them none.
    """
    settle_lost(registry)
    for row in registry.all(("idle", *ACTIVE)):
        if row.is_from_before_restart:
            with suppress(UserError):
                refuse_agents("start a session")
                _start_runner(registry, row.session.id, settings)


def _start_runner(registry: Registry, session: str, settings: SessionsSettings) -> None:
    """Start the process that owns the session; raise ``UserError`` if it does not start."""
    folder = output_folder(session)
    command = [sys.executable, "-P", "-m", "gsd_plugins.sessions.runner", session]
    command.append(json.dumps(attrs.asdict(settings)))
    said = ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / RUNNER_LOG).open("w+b") as log:
            # The runner continues in a child of this process, which is nobody's child then.
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # A relative path would be another folder there.
                env={**os.environ, "GSD_STATE_DIR": str(state_folder().absolute())},
                start_new_session=True,
            )
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        if done.returncode == 0:
            return
    except OSError as error:
        said = error.strerror or str(error)
    reason = f"cannot start its process: {said}"
    with suppress(RegistryError):
        registry.end(session, "failed", exit_code=None, reason=reason)
    raise UserError(f"session {session}: {reason}")


def list_sessions(*, everything: bool = True) -> list[Session]:
    """Return the sessions, oldest first; those whose processes are gone are marked as failed before."""
    with Registry() as registry:
        settle(registry, settings_of(SessionsSettings))
        return [row.session for row in registry.all() if everything or row.session.state not in ENDED]


def find_session(session: str) -> Session:
    """Return one session; raise ``NotFound`` if there is none."""
    with Registry() as registry:
        settle_lost(registry)
        return registry.get(session).session


def stop_session(session: str) -> Session:
    """Ask a session to stop; it first finishes what it is writing. One in the queue does not start."""
    refuse_agents("stop a session")
    with Registry() as registry:
        settle_lost(registry)
        with registry.transaction():
            row = registry.get(session)
            if row.session.has_ended:
                raise Conflict(f"session {row.session.id} has already ended ({row.session.state})")
            registry.update(row.session.id, stop=1)
        # By its runner, which knows its child. A process that survived its runner is signaled itself; in
        # both cases only if it is the one that was recorded, and not a later one with its id.
        target = (row.runner, row.runner_started)
        if not is_process(*target, row.boot):
            target = (row.session.pid, row.pid_started)
        if is_process(*target, row.boot):
            signal_process(*target, signal.SIGTERM)
        return registry.get(session).session


def remove_session(session: str) -> None:
    """Forget an ended session and what it printed; its project is not touched."""
    refuse_agents("remove a session")
    with Registry() as registry:
        settle_lost(registry)
        with registry.transaction():
            row = registry.get(session)
            if not row.session.has_ended:
                hint = f"stop it first: gsd stop {row.session.id}"
                raise Conflict(f"session {row.session.id} has not ended", hint=hint)
            registry.remove(session)
    shutil.rmtree(output_folder(row.session.id), ignore_errors=True)


def remove_old(registry: Registry, age: timedelta) -> None:
    """Remove the sessions that ended longer than *age* ago, and output that belongs to none."""
    settle_lost(registry)
    with registry.transaction():
        rows = registry.all()
        limit = datetime.now(UTC) - age
        old = [row.session.id for row in rows if row.session.ended and row.session.ended < limit]
        for session in old:
            registry.remove(session)
    known = {row.session.id for row in rows}
    for session in (*old, *(name for name in registry.stored() if name not in known)):
        folder = output_folder(session)
        with suppress(OSError):
            latest = max(entry.stat().st_mtime for entry in (folder, *folder.iterdir()))
            if latest < limit.timestamp():
                shutil.rmtree(folder, ignore_errors=True)


def output_of(session: str, cursor: int = 0, limit: int = 1 << 20) -> Chunk:
    """Return what a session printed from *cursor* on, at most *limit* bytes."""
    with Registry() as registry:
        folder = output_folder(registry.get(session).session.id)
    return read_output(folder, cursor, limit)


class Control:
    """A connection to a session's terminal: input and window size. Use it as a context manager."""

    def __init__(self, session: str) -> None:
        refuse_agents("type into a session")
        with Registry() as registry:
            row = registry.get(session)
        nothing = f"session {row.session.id} has no terminal now ({row.session.state})"
        if not row.control or not Path(row.control).exists():
            raise Conflict(nothing)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(5)
        try:
            self._socket.connect(row.control)
        except OSError as error:
            self._socket.close()
            raise Conflict(nothing) from error

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send keys to the session's terminal; raise ``Conflict`` if it has none any more."""
        self._order({"input": base64.b64encode(data).decode()})

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the session's terminal; raise ``Conflict`` if it has none any more."""
        self._order({"size": [columns, rows]})

    def _order(self, order: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(order).encode() + b"\n")
        except OSError as error:
            raise Conflict("the session's terminal is gone", hint="see how it ended: gsd ps --all") from error
