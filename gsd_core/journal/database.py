"""SQLite as the journal needs it: rows, one kind of transaction, and errors that tell the way out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from gsd_core.errors import JournalError

BUSY_MILLISECONDS = 10_000
REBUILT = "move it away; the next run rebuilds its state from .planning/ and the commits"


class Database:
    """One connection; everything that fails raises ``JournalError`` naming the file."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        with telling(path):
            self._connection = _connect_to_write(path) if writable else _connect_to_read(path)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run *query* (one statement or several) and return all its rows."""
        with telling(self.path):
            return list(self._connection.execute(query, values or None))

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run *statement* once for each of *rows*."""
        with telling(self.path):
            self._connection.executemany(statement, rows).fetchall()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Write within one transaction that holds the write lock from its start."""
        if not self.writable:
            raise JournalError(f"the journal {self.path} was opened for reading only")
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if self._connection.in_transaction:
            self.rows("ROLLBACK")

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        self._connection.close()


def _connect_to_write(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return _patient(apsw.Connection(str(path)))


def _connect_to_read(path: Path) -> Any:
    """Open for reading, also where SQLite cannot make its side files (a read-only disk)."""
    connection = _patient(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY))
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return _patient(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags))
    except apsw.Error:
        connection.close()
        raise
    return connection


def _patient(connection: Any) -> Any:
    """Wait for others from the first statement on: a journal that is just being made is locked."""
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


@contextmanager
def telling(path: Path) -> Generator[None]:
    """Turn what SQLite and the system say into a ``JournalError``: what, where, what to do."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        said, hint = next(
            (told[1:] for told in _TOLD if isinstance(error, told[0])), ("failed", "check the disk")
        )
        raise JournalError(f"the journal {path} {said}: {error}", hint=hint) from error


_TOLD: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((apsw.NotADBError, apsw.CorruptError), "is damaged", REBUILT),
    ((apsw.FullError,), "has no space left", "free some disk space; gsd resume goes on"),
    ((apsw.BusyError, apsw.LockedError), "is busy", "another process holds it: see gsd status"),
    (
        (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, PermissionError),
        "cannot be opened or written",
        "its folder must be writable by you",
    ),
)
