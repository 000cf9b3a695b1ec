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
from contextlib import suppress
from pathlib import Path
from typing import Any

from gsd_core import Session, SessionRequest, UserError

from .output import Chunk, read_output
from .queue import settle_lost
from .registry import ENDED, Registry, Row, is_process, output_folder

START_SECONDS = 15.0
POLL_SECONDS = 0.02


def start_session(request: SessionRequest, *, slots: int, keep_bytes: int) -> Session:
    """Add a session and start its runner; return it as soon as the runner has taken over.

    The runner inherits this process's environment: credentials are never written to disk.
    """
    with Registry() as registry:
        session = registry.add(project=request.project, folder=request.folder, command=request.arguments)
        folder = output_folder(session.id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [sys.executable, "-m", "gsd_plugins.sessions.runner", session.id]
        command += ["--slots", str(slots), "--keep", str(keep_bytes)]
        with (folder / "runner.log").open("wb") as log:
            try:
                # The runner continues in a child of this process, which is nobody's child then.
                subprocess.run(
                    command,
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    start_new_session=True,
                )
            except (OSError, subprocess.CalledProcessError) as error:
                said = (folder / "runner.log").read_text("utf-8", "replace").strip().splitlines()
                reason = f"cannot start its runner: {said[-1] if said else error}"
                registry.end(session.id, "failed", exit_code=None, reason=reason)
                raise UserError(f"session {session.id}: {reason}") from error
        latest = time.monotonic() + START_SECONDS
        while _is_undecided(registry.get(session.id)) and time.monotonic() < latest:
            time.sleep(POLL_SECONDS)
        return registry.get(session.id).session


def _is_undecided(row: Row) -> bool:
    """Whether the runner has not said yet whether the session starts or waits."""
    return row.session.state == "idle" and not row.session.reason


def list_sessions(*, everything: bool = True) -> list[Session]:
    """Return the sessions, oldest first; those whose processes are gone are marked as failed before."""
    with Registry() as registry:
        settle_lost(registry)
        return [row.session for row in registry.all() if everything or row.session.state not in ENDED]


def find_session(session: str) -> Session:
    """Return one session; raise ``UserError`` if there is none."""
    with Registry() as registry:
        settle_lost(registry)
        return registry.get(session).session


def stop_session(session: str) -> Session:
    """Ask a session to stop; it first finishes what it is writing."""
    with Registry() as registry:
        settle_lost(registry)
        row = registry.get(session)
        if row.session.state in ENDED:
            raise UserError(f"session {row.session.id} has already ended ({row.session.state})")
        registry.update(row.session.id, stop=1)
        # By its runner, which knows its child; never by a stored process id alone.
        if row.session.state != "idle" and is_process(row.runner, row.runner_started, row.boot):
            with suppress(ProcessLookupError):
                os.kill(row.runner, signal.SIGTERM)
        return registry.get(session).session


def remove_session(session: str) -> None:
    """Forget an ended session and what it printed; its project is not touched."""
    with Registry() as registry:
        settle_lost(registry)
        row = registry.get(session)
        if row.session.state not in ENDED:
            raise UserError(
                f"session {row.session.id} has not ended ({row.session.state})",
                hint=f"stop it first: gsd stop {row.session.id}",
            )
        registry.remove(session)
    shutil.rmtree(output_folder(row.session.id), ignore_errors=True)


def output_of(session: str, cursor: int = 0, limit: int = 1 << 20) -> Chunk:
    """Return what a session printed from *cursor* on, at most *limit* bytes."""
    return read_output(output_folder(f"s{find_number(session)}"), cursor, limit)


def find_number(session: str) -> int:
    """Return the number of a session that exists; raise ``UserError`` if it does not."""
    with Registry() as registry:
        return registry.get(session).number


class Control:
    """A connection to a session's terminal: input and window size. Use it as a context manager."""

    def __init__(self, session: str) -> None:
        with Registry() as registry:
            row = registry.get(session)
        if not row.control or not Path(row.control).exists():
            raise UserError(f"session {row.session.id} has no terminal now ({row.session.state})")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(5)
        self._socket.connect(row.control)

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send keys to the session's terminal."""
        self._order({"input": base64.b64encode(data).decode()})

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the session's terminal."""
        self._order({"size": [columns, rows]})

    def _order(self, order: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(order).encode() + b"\n")
