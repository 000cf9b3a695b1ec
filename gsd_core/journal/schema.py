"""What the journal holds, as values.

SQLite as the journal needs it: rows, one kind of transaction, and errors that tell the way out.

The file's tables, its versions, and whether a file is a journal at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import apsw
from attrs import frozen

from gsd_core.errors import JournalError

Upcaster: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]

ACTIVITY: frozenset[str] = frozenset({"agent.activity", "log.line"})
"""The kinds that are committed in groups, give no promise and are never folded."""


@frozen(kw_only=True)
class Record:
    """One event; *seq* orders records and is a cursor: ``after=N`` means ``seq > N``.

    *epoch* counts the processes that opened the run; *v* is the version of the payload *data*.
    """

    seq: int
    run: str
    epoch: int
    at: datetime
    kind: str
    v: int
    step: str
    attempt: int
    data: Mapping[str, Any]


@frozen(kw_only=True)
class InboxItem:
    """Something that another process wants of the run: *kind* (``answer``, ``stop`` …), *by* whom, *at*."""

    id: int
    kind: str
    data: Mapping[str, Any]
    by: str
    at: datetime


def read_record(row: tuple[Any, ...], upcasters: Mapping[tuple[str, int], Upcaster]) -> Record:
    """Return a row of the table as a record, its payload made current; ``ValueError`` if it is damaged."""
    seq, run, epoch, at, kind, v, step, attempt, text = row
    data, time = json.loads(text), datetime.fromisoformat(at)
    while upcast := upcasters.get((kind, v)):
        data, v = upcast(data), v + 1
    return Record(
        seq=seq, run=run, epoch=epoch, at=time, kind=kind, v=v, step=step, attempt=attempt, data=data
    )


def to_json(data: Mapping[str, Any]) -> str:
    """Return *data* as JSON text, in ASCII so that lone surrogates survive."""
    try:
        return json.dumps(dict(data), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        hint = "unstructure values before they are recorded"
        raise JournalError(f"not JSON data: {error}", hint=hint) from error


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

SCHEMA = 1

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""How a payload of ``(kind, v)`` becomes one of ``v + 1``; version 1 is the only one so far."""

IS_FACT = f"kind NOT IN ({', '.join(repr(kind) for kind in sorted(ACTIVITY))})"
"""The condition of the partial index; SQLite uses the index only for these very words."""

TABLES = f"""
CREATE TABLE event(
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, epoch INTEGER NOT NULL, at TEXT NOT NULL,
    kind TEXT NOT NULL, v INTEGER NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX fact ON event(seq) WHERE {IS_FACT};
CREATE TABLE epoch(run TEXT PRIMARY KEY, epoch INTEGER NOT NULL);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
    kind TEXT NOT NULL, data TEXT NOT NULL, by TEXT NOT NULL, consumed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE meta(schema INTEGER NOT NULL, created_by TEXT NOT NULL);
"""


def open_to_write(path: Path, *, created_by: str) -> Database:
    """Open the journal at *path*, making it (and its folder) if there is none."""
    database = Database(path, writable=True)
    try:
        if not _is_journal(database):
            _create(database, created_by)
        _refuse_newer(database)
        database.rows("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON")
    except BaseException:
        database.close()
        raise
    return database


def open_to_read(path: Path) -> Database | None:
    """Open the journal at *path*; ``None`` if there is none yet, and then none is made."""
    if not path.exists():
        return None
    database = Database(path, writable=False)
    try:
        if _is_journal(database):
            return database
    except BaseException:
        database.close()
        raise
    database.close()
    return None


def _is_journal(database: Database) -> bool:
    """Whether the tables are there; an empty database is nobody's, somebody else's is an error."""
    tables = {row[0] for row in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return False
    if {"event", "inbox", "meta"} <= tables:
        return True
    raise JournalError(
        f"{database.path} is a database of something else (tables: {', '.join(sorted(tables))})",
        hint="move it away; gsd writes nothing into it",
    )


def _create(database: Database, created_by: str) -> None:
    database.rows("PRAGMA journal_mode=WAL")
    with database.transaction():
        if not _is_journal(database):
            database.rows(TABLES)
            database.rows("INSERT INTO meta VALUES(?, ?)", (SCHEMA, created_by))


def _refuse_newer(database: Database) -> None:
    for schema, created_by in database.rows("SELECT schema, created_by FROM meta"):
        if schema > SCHEMA:
            raise JournalError(
                f"{database.path} has schema {schema}, made by {created_by!r}; this version writes {SCHEMA}",
                hint="upgrade gsd-core; reading commands still work",
            )
