"""One run of a project at a time: a lock of the operating system, and a file that names its owner.

The lock is ``flock`` by way of filelock. The kernel releases it when the process ends, even by SIGKILL;
a file with a process id would remain, and look like a running process.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from gsd_core.errors import Locked, MachineError, machine_error
from gsd_core.files import read_below, write_below

LOCK = "lock"
OWNER = "owner.json"

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)

WAIT_SECONDS = 0.2
"""How long to wait for the lock, because :func:`owner` holds it very briefly."""


@attrs.frozen(kw_only=True)
class Owner:
    """The process that holds a project's lock: *pid*, *host*, *command* line, and the time (ISO 8601)."""

    pid: int
    host: str
    since: str
    command: str


UNKNOWN = Owner(pid=0, host="unknown", since="unknown", command="unknown")
"""The owner of a lock that is held, if the owner's file is missing or damaged."""


MAX_OWNER = 100_000


class ProjectLock:
    """The lock of the project whose data is in *directory*; child processes do not inherit it.

    Keep the object for as long as the lock is needed: it is released when the object is collected.
    """

    def __init__(
        self, directory: Path, *, command: str = "", clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.directory = directory
        self._command = command or " ".join(sys.argv)
        self._clock = clock
        from filelock import FileLock  # what only looks at a project, and `--help`, need none

        # The lock belongs to the process, not to the thread that took it.
        self._lock = FileLock(directory / LOCK, thread_local=False, mode=0o600)

    def acquire(self) -> None:
        """Take the lock; if another process holds it, raise ``Locked`` at once and name that process."""
        from filelock import Timeout

        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # An earlier version made it for everybody to look into.
            self.directory.chmod(0o700)
            self._lock.acquire(timeout=WAIT_SECONDS, poll_interval=0.02)
            since = self._clock().isoformat(timespec="seconds")
            by = Owner(pid=os.getpid(), host=socket.gethostname(), since=since, command=self._command)
            try:
                text = json.dumps(attrs.asdict(by))
                write_below(self.directory, OWNER, text.encode(), mode=0o600, durable=False)
            except BaseException:
                self._lock.release()
                raise
        except Timeout:
            by = _read_owner(self.directory)
            raise Locked(
                "another gsd is running on this project: "
                f"pid {by.pid} on {by.host!r} since {by.since} ({by.command})",
                hint="wait for it, watch it with gsd status, or stop it with gsd stop",
            ) from None
        except (OSError, NotImplementedError) as error:
            # The latter is how filelock reports ENOSYS.
            if not isinstance(error, OSError) or error.errno in _NO_LOCKS:
                raise MachineError(
                    f"the file system of {str(self.directory)!r} has no file locks (flock)",
                    hint="move the repository to a local disk: without a lock, two runs could change it",
                ) from error
            if (trouble := machine_error(error)) is None:
                raise
            raise MachineError(f"cannot lock the project: {trouble}", hint=trouble.hint) from error

    def release(self) -> None:
        """Release the lock; without it, do nothing."""
        if self._lock.is_locked:
            # The lock is what counts; a file that cannot be removed is only stale.
            with suppress(OSError):
                (self.directory / OWNER).unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> ProjectLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def owner(directory: Path) -> Owner | None:
    """Return the owner of the lock in *directory*; ``None`` if it is free."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if (trouble := machine_error(error)) is None:
            raise
        raise trouble from error
    try:
        # Ask the kernel and not the owner's file, which a killed process leaves behind. A shared lock, so
        # that several readers do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_owner(directory)
    except OSError:
        # A file system without locks: no run can have started on it.
        return None
    finally:
        os.close(descriptor)
    return None


def _read_owner(directory: Path) -> Owner:
    try:
        data: Any = json.loads(read_below(directory, OWNER, limit=MAX_OWNER))
        return Owner(pid=int(data["pid"]), host=data["host"], since=data["since"], command=data["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN
