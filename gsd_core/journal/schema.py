"""The journal's file: the values in it, its tables and versions, and connections to it."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

# Not the sqlite3 of the standard library: it uses the system's SQLite, and in versions up to 3.51.2 a WAL
# file that is reset while several connections write can corrupt the database. apsw contains its
# own SQLite, and since 3.51.3 (the least version in pyproject.toml) one without this bug.
import apsw
import attrs

from gsd_core.errors import JournalError, machine_error
from gsd_core.machine.facts import Record, Recorded

Upcaster: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Turns a payload into one of the next version."""

SCHEMA = 1

FORMAT = 1
"""The newest version of a payload that this gsd understands; it does not work on a journal with others."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""How a payload of ``(kind, v)`` becomes one of ``v + 1``; there is only version 1 so far."""

ACTIVITY: frozenset[str] = frozenset({"agent.activity", "log.line"})
"""The kinds that are committed in groups, without a guarantee, and never folded into a state."""

IS_FACT = f"kind NOT IN ({', '.join(repr(kind) for kind in sorted(ACTIVITY))})"
"""The condition of the partial index. SQLite uses the index only for a query with exactly this text."""

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

COLUMNS = ("seq", "run", "epoch", "at", "kind", "v", "step", "attempt", "data")
COLUMN_TYPES = (int, str, int, str, str, int, str, int, str)

BUSY_MILLISECONDS = 10_000
MAX_VALUE = 16 << 20
"""How many bytes a value in the journal may have.

SQLite computes columns, so a few bytes in a file that somebody else made can stand for a gigabyte.
What a run records itself stays below ``MAX_FACT``.
"""
MAX_FACT = 12 << 20
"""How many bytes of data a run may record at once, as JSON in ASCII: a byte of a text takes at most six.

Below ``MAX_VALUE``, because a row has more columns. Most facts are far smaller: an idea has at most 400 kB, a
planning file 2 MB, a text of a question 4,000 characters. What plugins return is refused above 8 MB
(``validate_storable``), so that the call or the step fails with its cost recorded. What is left are lists of
files, such as those that are not committed; they are recorded before an agent is called.
"""
MAX_BATCH = 8 << 20
"""After how many characters of data a batch of rows ends: many values may be large."""
MOVE_AWAY = (
    "move it away, with the -wal and -shm files beside it; "
    "the next run rebuilds its state from .planning/ and the commits"
)


@attrs.frozen(kw_only=True)
class InboxItem:
    """A message from another process to the run: its *kind* (``answer``, ``stop``, ``phase``) and sender."""

    id: int
    kind: str
    data: Mapping[str, Any]
    by: str
    at: datetime


def read_record(row: tuple[Any, ...]) -> Record:
    """Return a row as a record, its payload in the current version; raise ``ValueError`` if it is damaged."""
    seq, run, epoch, at, kind, v, step, attempt, text = row
    # SQLite stores whatever it is given.
    for name, value, expected in zip(COLUMNS, row, COLUMN_TYPES, strict=True):
        if type(value) is not expected:
            raise ValueError(f"its {name} is {value!r:.80}")
    data: Mapping[str, Any] = from_json(text)
    time = datetime.fromisoformat(at)
    if time.tzinfo is None:
        raise ValueError(f"a time without a time zone: {at!r:.80}")
    while upcast := UPCASTERS.get((kind, v)):
        data, v = upcast(data), v + 1
    return Recorded(
        seq=seq, run=run, epoch=epoch, at=time, kind=kind, v=v, step=step, attempt=attempt, data=data
    )


def from_json(text: object) -> dict[str, Any]:
    """Return an object of JSON *text*; raise ``ValueError`` if it is anything else."""
    try:
        data = json.loads(text) if isinstance(text, str) else text
    except RecursionError as error:
        raise ValueError("its data is nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError(f"its data is not a JSON object: {data!r:.80}")
    return cast("dict[str, Any]", data)


def to_json(data: Mapping[str, Any], kind: str) -> str:
    """Return the *data* of a fact or message as JSON text, in ASCII so that lone surrogates survive.

    Raise ``JournalError`` if it is not JSON data, or more than ``MAX_FACT``.
    """
    try:
        text = json.dumps(dict(data), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        hint = "unstructure values before they are recorded"
        raise JournalError(f"not JSON data: {error}", hint=hint) from error
    if len(text) > MAX_FACT:
        message = f"{kind!r} has {len(text) / 1e6:.1f} MB of data; the journal takes {MAX_FACT / 1e6:.1f} MB"
        hint = "if many files are not committed, commit them or list them in .gitignore, then run gsd resume"
        raise JournalError(message, hint=hint)
    return text


def open_to_write(path: Path) -> Database:
    """Open the journal at *path*, creating it and its folder if necessary."""
    _check_kind(path)
    with _journal_errors(path):
        if path.exists():
            path.chmod(0o600)  # a copy may be open to everybody; the files beside it get the mode of this one
        else:
            _create(path)
    database = Database(path, writable=True)
    try:
        _check_tables(database)
        _check_version(database, path)
        # With NORMAL, which is common in WAL mode, the last facts may be missing after a power failure,
        # although things were done because of them. FULL still allows about 7,000 facts a second. On
        # macOS, only a "full" fsync reaches the disk.
        database.rows("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON")
    except BaseException:
        database.close()
        raise
    return database


def check_version(path: Path) -> None:
    """Raise ``JournalError`` if a newer gsd wrote the journal at *path*: this one can only read it."""
    if database := open_to_read(path):
        with closing(database):
            _check_version(database, path)


def _check_version(database: Database, path: Path) -> None:
    hint = "upgrade gsd-core; reading commands still work"
    for schema, creator in database.rows("SELECT schema, created_by FROM meta"):
        if schema > SCHEMA:
            message = f"{path} has schema {schema}, created by {creator!r}; this version writes {SCHEMA}"
            raise JournalError(message, hint=hint)
    [(newest,)] = database.rows("SELECT coalesce(max(v), 0) FROM event")
    if isinstance(newest, int) and newest > FORMAT:
        message = f"{path} has facts of format {newest}; this version of gsd writes {FORMAT}"
        raise JournalError(message, hint=hint)


def _create(path: Path) -> None:
    """Create the journal under another name first: so an empty file is damage, and not half a creation."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        # SQLite would use the umask; the files that it adds later get the mode of this one. A run's prompts
        # and answers are private.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(Database(draft, writable=True)) as database:
            database.rows("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA journal_mode=WAL")
            with database.transaction():
                database.rows(TABLES)
                database.rows("INSERT INTO meta VALUES(?, 'gsd')", (SCHEMA,))
        # A link, unlike a rename, does not replace the journal of a process that was faster.
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        for left in draft.parent.glob(f"{draft.name}*"):
            left.unlink(missing_ok=True)


def open_to_read(path: Path) -> Database | None:
    """Open the journal at *path* for reading; ``None`` if there is none, and then none is created."""
    if not os.path.lexists(path):
        return None
    _check_kind(path)
    database = Database(path, writable=False)
    try:
        _check_tables(database)
    except BaseException:
        database.close()
        raise
    return database


def _check_kind(path: Path) -> None:
    """Raise ``JournalError`` for a link or a pipe: SQLite would write to what a link leads to."""
    for one in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = one.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise JournalError(f"the journal {one} is a link or no regular file", hint=MOVE_AWAY)


def check_file(path: Path) -> str:
    """Return what is wrong inside the journal's file at *path*; empty if nothing is, or if there is no file.

    Reads the whole file and changes nothing. Raise ``JournalError`` if it cannot be used at all.
    """
    database = open_to_read(path)
    if database is None:
        return ""
    with closing(database):
        found = [str(row[0]) for row in database.rows("PRAGMA quick_check(3)")]
    return "" if found == ["ok"] else "; ".join(found)


def _check_tables(database: Database) -> None:
    """Raise ``JournalError`` unless the journal's tables exist."""
    tables = {row[0] for row in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    needed = {"event", "inbox", "meta", "epoch"}
    if needed <= tables:
        versions = [row[0] for row in database.rows("SELECT schema FROM meta")]
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
            problem = f"schema {', '.join(map(repr, versions)) or 'missing'}"
            raise JournalError(f"the journal {database.path} is damaged: {problem}", hint=MOVE_AWAY)
        return
    if tables and not needed & tables:
        names = ", ".join(sorted(tables))
        message = f"{database.path} is not a journal but another database (tables: {names})"
        raise JournalError(message, hint="move it away; gsd writes nothing into it")
    missing = f"it has no table {', '.join(sorted(needed - tables))}" if tables else "it is empty"
    raise JournalError(f"the journal {database.path} is damaged: {missing}", hint=MOVE_AWAY)


class Database:
    """One connection; every failure raises ``JournalError`` with the file, the reason and a hint."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        with _journal_errors(path):
            self._connection = _waiting(apsw.Connection(str(path))) if writable else _connect_to_read(path)
            self.file = _identity(path)

    def check_file(self) -> None:
        """Raise ``JournalError`` if the file at the path is another one by now, or none, or was cut.

        A file that was removed can still be written, and everything written to it is lost.
        """
        now = _identity(self.path)
        # The last one is its size, which only grows.
        if self.writable and (now[:2] != self.file[:2] or now < self.file):
            hint = "start again: the state is rebuilt from .planning/ and the commits"
            raise JournalError(f"the journal {self.path} was removed or replaced during the run", hint=hint)
        self.file = now

    def rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run *query*, one statement or several, and return all its rows."""
        with _journal_errors(self.path):
            return list(self._connection.execute(query, values or None))

    def batch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run *query* and return its first rows, up to ``MAX_BATCH`` characters of the last column."""
        found: list[tuple[Any, ...]] = []
        size = 0
        with _journal_errors(self.path):
            cursor = self._connection.execute(query, values or None)
            for row in cursor:
                found.append(row)
                size += len(row[-1]) if isinstance(row[-1], str | bytes) else 0
                if size > MAX_BATCH:
                    break
            # A cursor that is still open keeps a transaction.
            cursor.close(True)
        return found

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run *statement* once for each of *rows*."""
        with _journal_errors(self.path):
            self._connection.executemany(statement, rows).fetchall()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Make everything inside one transaction."""
        if not self.writable:
            raise JournalError(f"the journal {self.path} was opened for reading only")
        self.check_file()
        # IMMEDIATE takes the write lock first. A transaction that reads before it takes the lock fails at
        # once, without waiting, if another process has written in between.
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            # After some errors, such as a full disk, SQLite has already rolled back.
            if self._connection.in_transaction:
                self.rows("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        self._connection.close()


def _identity(path: Path) -> tuple[int, int, int]:
    with suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        return status.st_dev, status.st_ino, status.st_size
    return 0, 0, 0


def _connect_to_read(path: Path) -> Any:
    connection = _waiting(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY))
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # A reader in WAL mode creates files beside the database, which fails on a read-only disk.
        connection.close()
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return _waiting(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags))
    except apsw.Error:
        connection.close()
        raise
    return connection


def _waiting(connection: Any) -> Any:
    """Make the connection wait for others from its first statement on, even while they create the tables."""
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    return connection


@contextmanager
def _journal_errors(path: Path) -> Generator[None]:
    """Raise errors of SQLite and of the system as ``JournalError``."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        if path.is_dir():
            raise JournalError(f"the journal {path} is a folder", hint=MOVE_AWAY) from error
        if isinstance(error, OSError) and (trouble := machine_error(error)):
            raise JournalError(f"the journal {path} cannot be used: {trouble}", hint=trouble.hint) from error
        for kinds, problem, hint in _PROBLEMS:
            if isinstance(error, kinds):
                raise JournalError(f"the journal {path} {problem}: {error}", hint=hint) from error
        raise JournalError(f"the journal {path} failed: {error}", hint="check the disk") from error


_PROBLEMS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((apsw.NotADBError, apsw.CorruptError), "is damaged", MOVE_AWAY),
    ((apsw.TooBigError,), f"has a value of more than {MAX_VALUE >> 20} MB", MOVE_AWAY),
    ((apsw.FullError,), "has no space left", "free some disk space, then run gsd resume"),
    (
        (apsw.IOError, apsw.NoMemError),
        "cannot be read or written",
        "check the disk and the limits (ulimit -a), then run gsd resume",
    ),
    ((apsw.BusyError, apsw.LockedError), "is busy", "another process is using it: see gsd status"),
    (
        (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, PermissionError),
        "cannot be opened or written",
        "check that you may write to its folder and that its file system is writable, then run gsd resume",
    ),
)
