"""The inbox: how another process (``gsd answer``, ``gsd stop``) reaches a run, now or later."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gsd_core.errors import JournalError

from .schema import Database, open_to_write, to_json

InboxKind: TypeAlias = Literal["answer", "stop", "pause", "resume"]

_PUT = "INSERT INTO inbox(key, at, kind, data, by) VALUES(?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING"


def _utc_now() -> datetime:
    return datetime.now(UTC)


def put(
    path: Path,
    kind: InboxKind,
    data: Mapping[str, Any],
    by: str,
    *,
    key: str = "",
    clock: Callable[[], datetime] = _utc_now,
) -> int:
    """Put an item into the inbox of the journal at *path* and return its id; it is on disk then.

    Putting the same *key* again has no effect and returns the first one's id.
    Raise ``JournalError`` if there is no journal: nothing has been run, so nothing waits.
    """
    if not path.exists():
        raise JournalError(f"no journal at {path}", hint="nothing has been run in this project yet")
    row = (key or secrets.token_hex(16), clock().isoformat(), kind, to_json(data), by)
    database = open_to_write(path, created_by="gsd")
    try:
        return _put(database, row)
    finally:
        database.close()


def _put(database: Database, row: tuple[str, str, str, str, str]) -> int:
    with database.transaction():
        database.rows(_PUT, row)
        return int(database.rows("SELECT id FROM inbox WHERE key = ?", row[:1])[0][0])
