"""The file's tables, its versions, and whether a file is a journal at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gsd_core.errors import JournalError

from .database import Database
from .record import ACTIVITY, Upcaster

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
