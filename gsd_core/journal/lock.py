"""One run at a time: an OS lock that the kernel frees, and beside it who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from filelock import FileLock, Timeout

from gsd_core.errors import Locked

LOCK = "lock"
OWNER = "owner.json"
PATIENCE_SECONDS = 0.2
"""How long a start waits for the lock: reading commands hold it shared for an instant."""


@frozen(kw_only=True)
class Owner:
    """The process that holds a project: its *pid*, *host*, *command* line, and *since* when (ISO 8601)."""

    pid: int
    host: str
    since: str
    command: str


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ProjectLock:
    """The lock of one project, in *directory* (``<git common dir>/gsd``); not inherited by children.

    The kernel frees it when the process ends, however it ends. Keep the object as long as the
    lock is needed: it gives the lock back when it is collected.
    """

    def __init__(
        self, directory: Path, *, command: str = "", clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self.directory = directory
        self._command = command or " ".join(sys.argv)
        self._clock = clock
        self._lock = FileLock(directory / LOCK, thread_local=False)

    def acquire(self) -> None:
        """Take the lock; raise ``Locked`` at once, naming the holder, if another process has it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=PATIENCE_SECONDS, poll_interval=0.02)
        except Timeout:
            raise _locked(self.directory) from None
        _write_owner(
            self.directory,
            Owner(
                pid=os.getpid(),
                host=socket.gethostname(),
                since=self._clock().isoformat(timespec="seconds"),
                command=self._command,
            ),
        )

    def release(self) -> None:
        """Give the lock back; without it nothing happens."""
        if self._lock.is_locked:
            (self.directory / OWNER).unlink(missing_ok=True)
            self._lock.release()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock.is_locked

    def __enter__(self) -> ProjectLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def owner(directory: Path) -> Owner | None:
    """Return who holds the project whose lock is in *directory*; ``None`` if nobody does."""
    return _read_owner(directory) or _UNKNOWN if _is_held(directory) else None


def _is_held(directory: Path) -> bool:
    """Ask the kernel, not the owner file: a killed process leaves its file behind."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locked(directory: Path) -> Locked:
    by = _read_owner(directory) or _UNKNOWN
    holder = f"pid {by.pid} on {by.host!r} since {by.since} ({by.command})"
    return Locked(
        f"another gsd is running on this project: {holder}",
        hint="wait for it, watch it with gsd status, or stop it with gsd stop",
    )


_UNKNOWN = Owner(pid=0, host="unknown", since="unknown", command="unknown")


def _read_owner(directory: Path) -> Owner | None:
    try:
        data: Any = json.loads((directory / OWNER).read_text(encoding="utf-8"))
        return Owner(pid=int(data["pid"]), host=data["host"], since=data["since"], command=data["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_owner(directory: Path, by: Owner) -> None:
    draft = directory / f"{OWNER}.{by.pid}"
    draft.write_text(json.dumps(asdict(by)), encoding="utf-8")
    draft.replace(directory / OWNER)
