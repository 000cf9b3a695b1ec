"""The inbox: how another process (``gsd answer``, ``stop``, ``phase``) reaches a run, now or later."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from gsd_core.codec import structure
from gsd_core.errors import JournalError
from gsd_core.model.question import Answer

from .confidential import without_secrets
from .schema import InboxItem, open_to_write, to_json


def put(
    path: Path,
    kind: Literal["answer", "stop", "phase", "todo"],
    data: Mapping[str, Any],
    by: str,
    *,
    key: str = "",
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> int:
    """Put an item into the inbox of the journal at *path* and return its id; it is on disk then.

    Putting the same *key* again has no effect and returns the id of the first item.
    Raise ``JournalError`` without a journal, because then there is no run that could take the item.
    """
    if not path.exists():
        raise JournalError(f"no journal at {path}", hint="nothing has been run in this project yet")
    text = to_json(without_secrets(kind, data), kind)
    row = (key or secrets.token_hex(16), clock().isoformat(), kind, text, by)
    insert = "INSERT INTO inbox(key, at, kind, data, by) VALUES(?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING"
    with closing(open_to_write(path)) as database, database.transaction():
        database.rows(insert, row)
        return int(database.rows("SELECT id FROM inbox WHERE key = ?", row[:1])[0][0])


def answers_in(items: Iterable[InboxItem]) -> dict[str, str]:
    """Return the answers among *items* in words, by question; the last one counts, as for the run."""
    found: dict[str, str] = {}
    for item in items:
        if item.kind == "answer":
            question = str(item.data.get("question"))
            try:
                found[question] = structure(item.data, Answer).words
            except JournalError:  # the run refuses it
                found[question] = ""
    return found
