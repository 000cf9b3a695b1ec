"""The journal: an append-only sequence of facts in one file that a kill at any moment does not damage."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from gsd_core.codec import UNREADABLE
from gsd_core.errors import Fenced, JournalError
from gsd_core.machine.facts import KIND_OF, Record, Recorded, typed

from .confidential import without_secrets
from .schema import (
    ACTIVITY,
    IS_FACT,
    MOVE_AWAY,
    Database,
    InboxItem,
    from_json,
    open_to_read,
    open_to_write,
    read_record,
    to_json,
)

GROUP_SECONDS = 0.2
"""How long activity waits for more before it is committed.

Each commit is an fsync. An agent reports many things a second, and losing the last of them harms nothing.
"""

MAX_ACTIVITY = 20_000
"""How many notes of activity the journal keeps of one run, about 12 MB; facts are all kept."""

BATCH = 1000
"""How many records are read at once; between batches no transaction is open that would delay writers."""

DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What code raises that reads a fact whose fields are missing, have other types, or are nested too deeply."""

T = TypeVar("T")
Row: TypeAlias = tuple[str, int, str, str, int, str, int, str]


@contextmanager
def damage_reported(path: Path) -> Generator[None]:
    """Raise ``JournalError`` if facts of the journal at *path* cannot be understood."""
    try:
        yield
    except JournalError as error:
        # Others are no damage: a file that is locked, or a disk that cannot be read.
        if error.hint != UNREADABLE:
            raise
        raise JournalError(f"the journal {path} is damaged: {error}", hint=MOVE_AWAY) from error
    except DAMAGE as error:
        message = f"the journal {path} is damaged: a record cannot be read: {type(error).__name__}: {error}"
        raise JournalError(message, hint=MOVE_AWAY) from error


class Journal:
    """One project's journal; one process writes events at a time, any number read.

    *Facts* are on disk before :meth:`append` returns. *Activity* shares their sequence numbers and is
    committed in groups, at most 200 ms later or with the next fact, without a guarantee.
    The methods may be called from several threads.
    """

    def __init__(self, path: Path, database: Database | None, clock: Callable[[], datetime]) -> None:
        self.path = path
        self._database = database
        self._clock = clock
        self._lock = threading.RLock()
        self._epochs: dict[str, int] = {}
        self._noted: dict[str, int] = {}
        self._pending: list[Row] = []
        self._timer: threading.Timer | None = None
        self._last = self.last_seq()

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], datetime], writable: bool = True) -> Journal:
        """Open the journal at *path*, creating it if there is none.

        Raise ``JournalError`` if it cannot be used; a file that is not a journal is not changed.
        With ``writable=False`` nothing is ever created or changed: a missing file is an empty
        journal, and a journal of a newer version can be read.
        """
        database = open_to_write(path) if writable else open_to_read(path)
        return cls(path, database, clock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        run: str,
        step: str = "",
        attempt: int = 0,
        v: int = 1,
        consumes: Collection[int] = (),
    ) -> int:
        """Commit a fact and return its ``seq``; it is on disk when this returns.

        *data* is JSON data. *consumes* are the inbox items that this fact settles; it happens in the
        same transaction, so each is settled once. Raise ``Fenced`` if a newer process owns the run.
        """
        with self._lock:
            row = self._row(kind, data, run, step, attempt, v)
            self._commit([*self._pending, row], consumes)
            return self._last

    def activity(
        self, kind: str, data: Mapping[str, Any], *, run: str, step: str = "", attempt: int = 0
    ) -> int:
        """Record activity, which may be lost, and return the ``seq`` that it will have."""
        if kind not in ACTIVITY:
            raise ValueError(f"{kind!r} is a fact, not one of {', '.join(sorted(ACTIVITY))}: use append")
        with self._lock:
            self._pending.append(self._row(kind, data, run, step, attempt, 1))
            if self._timer is None:
                self._timer = threading.Timer(GROUP_SECONDS, self._flush_quietly)
                self._timer.daemon = True
                self._timer.start()
            return self._last + len(self._pending)

    def flush(self) -> None:
        """Commit the activity that was recorded so far."""
        with self._lock:
            if self._pending:
                self._commit(self._pending, ())

    def raise_epoch(self, run: str) -> int:
        """Take over *run* and return its new epoch: processes with an earlier one can no longer write.

        The project's lock already excludes a second process. The epoch protects the run where the
        lock does not, for example after its file was deleted.
        """
        self.flush()
        with self._lock, self._transaction() as database:
            database.rows(_RAISE, (run,))
            self._epochs[run] = _epoch(database, run)
            return self._epochs[run]

    def close(self) -> None:
        """Commit pending activity and close the file; closing twice is fine."""
        with self._lock:
            if self._database is None:
                return
            try:
                # Activity has no guarantee: a full disk must not hide what went wrong before.
                self._flush_quietly()
            finally:
                self._forget_timer()
                self._database.close()
                self._database = None

    def _row(self, kind: str, data: Mapping[str, Any], run: str, step: str, attempt: int, v: int) -> Row:
        at = self._clock().isoformat()
        text = to_json(without_secrets(kind, data), kind)
        return run, self._epochs.get(run, 0), at, kind, v, step, attempt, text

    def _commit(self, rows: Collection[Row], consumes: Collection[int]) -> None:
        """Commit *rows*; pending activity is dropped even if that fails, because it has no guarantee."""
        try:
            with self._transaction() as database:
                # Within the transaction: no other process can raise the epoch between check and write.
                for run, epoch in {(row[0], row[1]) for row in rows}:
                    if (current := _epoch(database, run)) > epoch:
                        hint = "another gsd process has taken over this run; this one has to stop"
                        message = f"run {run!r} is at epoch {current}, this process at {epoch}"
                        raise Fenced(message, hint=hint)
                database.many(_INSERT, rows)
                database.many(_CONSUME, [(item,) for item in consumes])
                last = int(database.rows("SELECT max(seq) FROM event")[0][0])
                self._drop_old_activity(database, rows)
            self._last = last
        finally:
            self._pending = []
            self._forget_timer()

    def _drop_old_activity(self, database: Database, added: Collection[Row]) -> None:
        """Keep a run's activity bounded, except for the notes that give the usage of a lost call.

        SQLite uses the space again, so the file does not grow any further.
        """
        for run in {row[0] for row in added if row[3] in ACTIVITY}:
            if run not in self._noted:
                # What was just inserted is counted here already.
                self._noted[run] = int(database.rows(_COUNT_ACTIVITY, (run,))[0][0])
            else:
                self._noted[run] += sum(row[0] == run and row[3] in ACTIVITY for row in added)
            # Not one by one: finding the oldest notes reads many rows.
            if self._noted[run] > MAX_ACTIVITY * 1.1:
                database.rows(_DROP_ACTIVITY, (run, run, MAX_ACTIVITY))
                self._noted[run] = MAX_ACTIVITY

    def _flush_quietly(self) -> None:
        with suppress(JournalError):
            self.flush()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def _transaction(self) -> Generator[Database]:
        if self._database is None:
            raise JournalError(f"the journal {self.path} is not open")
        with self._database.transaction():
            yield self._database

    # Reading

    def events(
        self,
        after: int = 0,
        *,
        run: str | None = None,
        step: str | None = None,
        kinds: Collection[str] | None = None,
        facts_only: bool = False,
        since: datetime | None = None,
    ) -> Iterator[Record]:
        """Yield the committed records with ``seq > after``, in order, including unknown kinds."""
        # Times are text, in UTC.
        begin = since.astimezone(UTC).isoformat() if since else None
        asked = {"run = ?": run, "step = ?": step, "at >= ?": begin}
        where = "".join(f" AND {condition}" for condition, value in asked.items() if value is not None)
        values = [value for value in asked.values() if value is not None]
        if kinds is not None:
            where += f" AND kind IN ({', '.join('?' * len(kinds))})"
            values += kinds
        if facts_only:
            where += f" AND {IS_FACT}"
        while rows := self._batch(
            f"{_SELECT} WHERE seq > ?{where} ORDER BY seq LIMIT {BATCH}", (after, *values)
        ):
            for row in rows:
                try:
                    record = read_record(row)
                except ValueError as error:
                    message = f"the journal {self.path} is damaged at seq {row[0]}: {error}"
                    raise JournalError(message, hint=MOVE_AWAY) from error
                yield record
            after = rows[-1][0]

    def facts(
        self, *kinds: type[T], run: str | None = None, step: str | None = None, after: int = 0
    ) -> Iterator[Recorded[T]]:
        """Yield the facts of these *kinds* with ``seq > after``, in order."""
        return typed(self.events(after, run=run, step=step, kinds=[KIND_OF[kind] for kind in kinds]), *kinds)

    def last_seq(self) -> int:
        """Return the last committed ``seq``; 0 if there is none."""
        rows = self._rows("SELECT coalesce(max(seq), 0) FROM event")
        return int(rows[0][0]) if rows else 0

    def _rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.rows(query, values) if self._database else []

    def _batch(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.batch(query, values) if self._database else []

    # Where it comes from

    def mark_of(self, run: str) -> str:
        """Return the mark of *run*'s processes (``GSD_RUN``), which those of a copied project do not have.

        A copy of the project has the same runs in its journal, but that is another file; one that is moved
        stays the same file. ``stat(2)``: the device and the inode identify it.
        """
        device, inode, _ = self._database.file if self._database else (0, 0, 0)
        return f"{run}@{device:x}:{inode:x}"

    def origin(self) -> str:
        """Return the token that :meth:`mark` has set; empty if there is none."""
        if not self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'origin'"):
            return ""
        rows = self._rows("SELECT token FROM origin")
        return str(rows[0][0]) if len(rows) == 1 else ""

    def mark(self, token: str) -> None:
        """Set the journal's token, by which its user recognizes it."""
        with self._lock, self._transaction() as database:
            # Not one of the TABLES: older versions made journals without it.
            database.rows("CREATE TABLE IF NOT EXISTS origin(token TEXT NOT NULL)")
            database.rows("DELETE FROM origin")
            database.rows("INSERT INTO origin VALUES(?)", (token,))
            # Whoever made the journal may have put anything there.
            database.rows("DROP TABLE IF EXISTS kept")

    # What the facts add up to

    def keep(self, seq: int, made_by: str, data: str) -> None:
        """Keep *data*, which the code *made_by* derived from the facts up to *seq*, and nothing else."""
        with self._lock, self._transaction() as database:
            database.rows("CREATE TABLE IF NOT EXISTS kept(seq INTEGER, made_by TEXT, data TEXT)")
            database.rows("DELETE FROM kept")
            database.rows("INSERT INTO kept VALUES(?, ?, ?)", (seq, made_by, data))

    def kept(self) -> tuple[int, str, str]:
        """Return what :meth:`keep` was given last; empty if there is nothing."""
        if self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'kept'"):
            for seq, made_by, data in self._rows("SELECT seq, made_by, data FROM kept"):
                return seq, made_by, data
        return 0, "", ""

    def is_empty(self) -> bool:
        """Whether the journal has neither a record nor an item in the inbox."""
        return not self._rows("SELECT 1 FROM event LIMIT 1") and not self._rows("SELECT 1 FROM inbox LIMIT 1")

    def digest(self) -> str:
        """Return a SHA-256, in hex, over all records and all items of the inbox."""
        total = hashlib.sha256()
        for table, key in (("event", "seq"), ("epoch", "run"), ("inbox", "id")):
            after: Any = None
            while rows := self._rows(
                # Rows without a key come first, and only in the first batch: else it would never end.
                f"SELECT {key}, * FROM {table} WHERE :after IS NULL OR {key} > :after "
                f"ORDER BY {key} LIMIT {BATCH}",
                {"after": after},
            ):
                # Others may have written this file: a value can have any type of SQLite.
                total.update(json.dumps([table, [row[1:] for row in rows]], default=repr).encode())
                after = rows[-1][0]
                if after is None:
                    after = -(1 << 63)  # less than all other keys, of any type
        return total.hexdigest()

    # The inbox

    def take_inbox(self) -> tuple[InboxItem, ...]:
        """Return the items of the inbox that are not consumed yet, oldest first.

        A run looks here again and again, also while it has nothing to record for an hour.
        """
        if self._database:
            self._database.check_file()
        rows = self._rows("SELECT id, kind, data, by, at FROM inbox WHERE NOT consumed ORDER BY id")
        with damage_reported(self.path):
            return tuple(
                InboxItem(id=id_, kind=kind, data=from_json(data), by=by, at=datetime.fromisoformat(at))
                for id_, kind, data, by, at in rows
            )

    def find_item(self, key: str) -> tuple[int, bool] | None:
        """Return the id of the inbox's item with this *key*, and whether it is done."""
        rows = self._rows("SELECT id, consumed FROM inbox WHERE key = ?", (key,))
        return (int(rows[0][0]), bool(rows[0][1])) if rows else None

    def consumed(self, ids: Collection[int]) -> None:
        """Mark items of the inbox as done. If a fact settles them, pass them to :meth:`append` instead."""
        with self._lock, self._transaction() as database:
            database.many(_CONSUME, [(item,) for item in ids])


_INSERT = "INSERT INTO event(run, epoch, at, kind, v, step, attempt, data) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT seq, run, epoch, at, kind, v, step, attempt, data FROM event"
_IS_ACTIVITY = f"kind IN ({', '.join(repr(kind) for kind in sorted(ACTIVITY))})"
_COUNT_ACTIVITY = f"SELECT count(*) FROM event WHERE run = ? AND {_IS_ACTIVITY}"
_DROP_ACTIVITY = (
    f"DELETE FROM event WHERE run = ? AND {_IS_ACTIVITY} AND instr(data, '\"usage\":') = 0 AND seq <= "
    f"(SELECT seq FROM event WHERE run = ? AND {_IS_ACTIVITY} ORDER BY seq DESC LIMIT 1 OFFSET ?)"
)
_RAISE = "INSERT INTO epoch VALUES(?, 1) ON CONFLICT(run) DO UPDATE SET epoch = epoch + 1"
_CONSUME = "UPDATE inbox SET consumed = 1 WHERE id = ?"


def _epoch(database: Database, run: str) -> int:
    rows = database.rows("SELECT epoch FROM epoch WHERE run = ?", (run,))
    return int(rows[0][0]) if rows else 0
