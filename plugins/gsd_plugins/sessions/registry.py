"""The registry of sessions: one SQLite database in the user's state folder, for all projects.

Every process that has to do with sessions opens it: the commands, the sessions' own processes, ``gsd serve``.
All of them write, each in short transactions, so it is in WAL mode.

A session's row says what was true when it was written. Whether its process still runs is asked of the system
each time: a process is the session's only if its id *and* its start time are those in the row.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args

import apsw
import attrs

# Not the standard library's sqlite3: many processes write here, and its SQLite may be one with the WAL bug.
from apsw import Connection

from gsd_core import NotFound, Session, SessionState, UserError, boot_id, process_start, state_folder

SCHEMA = 3
BUSY_MILLISECONDS = 10_000
ACTIVE: tuple[SessionState, ...] = ("running", "waiting_checkpoint")
"""The states of a session that has a slot; one that waits for a person without a process has none."""
ENDED: tuple[SessionState, ...] = ("completed", "failed", "stopped")

TABLES = """
CREATE TABLE IF NOT EXISTS session(
    number INTEGER PRIMARY KEY AUTOINCREMENT, slot INTEGER NOT NULL DEFAULT 0, project TEXT NOT NULL,
    folder TEXT NOT NULL, command TEXT NOT NULL, state TEXT NOT NULL, checkpoint TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '', run TEXT NOT NULL DEFAULT '', exit INTEGER,
    runner INTEGER NOT NULL DEFAULT 0, runner_started TEXT NOT NULL DEFAULT '',
    pid INTEGER NOT NULL DEFAULT 0, pid_started TEXT NOT NULL DEFAULT '', boot TEXT NOT NULL DEFAULT '',
    control TEXT NOT NULL DEFAULT '', stop INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL, started TEXT, ended TEXT, updated TEXT NOT NULL, gate TEXT NOT NULL DEFAULT '',
    agents INTEGER NOT NULL DEFAULT 0, asked TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS session_state ON session(state);
"""

COLUMNS = (
    "number, slot, project, folder, command, state, checkpoint, reason, run, exit, runner, runner_started, "
    "pid, pid_started, boot, control, stop, created, started, ended, updated, gate, agents, asked"
)
UPGRADES = {
    1: "ALTER TABLE session ADD COLUMN gate TEXT NOT NULL DEFAULT ''",
    2: "ALTER TABLE session ADD COLUMN agents INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE session ADD COLUMN asked TEXT NOT NULL DEFAULT ''",
}
"""What leads from a schema to the next one."""
NUMBER = re.compile(r"s?([1-9]\d{0,17})", re.ASCII)
STORED = re.compile(r"s[1-9]\d{0,17}", re.ASCII)


@attrs.frozen(kw_only=True)
class Row:
    """One session as it is stored; *session* is what the outside sees of it.

    *runner* is the process that owns the session's terminal, *control* the socket that it listens on. *gate*
    is what an idle session waits for besides its turn; until then others of its project may overtake it.
    *asked* is since when a running one waits for a further slot, in ISO 8601.
    """

    session: Session
    folder: Path
    runner: int
    runner_started: str
    pid_started: str
    boot: str
    control: str
    stop_asked: bool
    gate: str = ""
    asked: str = ""

    @property
    def number(self) -> int:
        """The number in the session's id."""
        return number_of(self.session.id)

    @property
    def runner_lives(self) -> bool:
        """Whether the process that owns the session still runs."""
        return is_process(self.runner, self.runner_started, self.boot)

    @property
    def process_lives(self) -> bool:
        """Whether the session's own process still runs."""
        return is_process(self.session.pid, self.pid_started, self.boot)

    @property
    def is_from_before_restart(self) -> bool:
        """Whether the machine was restarted while it had no slot: it was queued, or waited for an answer."""
        return bool(self.runner) and self.boot != boot_id() and not (self.session.has_ended or self.is_active)

    @property
    def is_active(self) -> bool:
        """Whether it has a slot."""
        return self.session.state in ACTIVE and self.session.slot > 0


def sessions_folder() -> Path:
    """Return the folder of the registry and of the sessions' output."""
    return state_folder() / "sessions"


def output_folder(session: str) -> Path:
    """Return the folder with what *session* printed."""
    return sessions_folder() / session


def number_of(session: str) -> int:
    """Return the number in a session's id, ``s12`` or ``12``; raise ``NotFound`` if it is none."""
    if match := NUMBER.fullmatch(session.strip()):
        return int(match[1])
    raise NotFound(f"not a session: {session!r}", hint="list the sessions with: gsd ps --all")


def is_process(pid: int, started: str, boot: str) -> bool:
    """Whether the process *pid* is the one that was started then, and not a later one with its id."""
    return bool(pid and started) and boot == boot_id() and process_start(pid) == started


class RegistryError(UserError):
    """The registry cannot be read or written now: a full disk, a damaged file, missing rights."""


class Registry:
    """The sessions of this user on this machine. Its methods block for as long as a disk takes."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or sessions_folder()
        self._path = self._folder / "registry.db"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._inode = self._path.stat().st_ino
            self._connection: Any = Connection(str(self._path))
        except (OSError, apsw.Error) as error:
            raise self._unusable(error) from error
        try:
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Create or upgrade the tables; in the normal case this only reads."""
        if (version := self._schema()) == SCHEMA:
            return
        if version > SCHEMA:
            raise UserError(
                f"{self._path} was written by a newer gsd (schema {version}, this one knows {SCHEMA})",
                hint="upgrade gsd-core",
            )
        self._rows("PRAGMA journal_mode=WAL")
        with self.transaction():
            version = self._schema()  # another process may have been quicker
            self._rows(TABLES)
            for step in range(version or SCHEMA, SCHEMA):
                self._rows(UPGRADES[step])
            self._rows(f"PRAGMA user_version={SCHEMA}")

    def _schema(self) -> int:
        [(version,)] = self._rows("PRAGMA user_version")
        return int(version)

    def _unusable(self, error: Exception) -> RegistryError:
        said = error.strerror if isinstance(error, OSError) else str(error)
        damaged = isinstance(error, (apsw.NotADBError, apsw.CorruptError))
        hint = "move it away: sessions that run register again" if damaged else "see its folder and the disk"
        return RegistryError(f"cannot use the registry of sessions, {self._path}: {said}", hint=hint)

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def is_current(self) -> bool:
        """Whether this is still the file that other processes open; it may have been deleted or replaced."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def version(self) -> int:
        """Return a number that changes when another process has changed the registry."""
        [(number,)] = self._rows("PRAGMA data_version")
        return int(number)

    def add(self, *, project: Path, folder: Path, command: Sequence[str]) -> Session:
        """Add an idle session; nothing is started."""
        with self.transaction():
            added = now()
            [(last,)] = self._rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'session'")
            # A registry that was deleted forgets the ids, but not the output that is stored under them.
            number = max([int(last), *(number_of(name) for name in self.stored())]) + 1
            self._rows(
                "INSERT INTO session(number, project, folder, command, state, created, updated) "
                "VALUES(?, ?, ?, ?, ?, ?, ?)",
                (number, str(project), str(folder), json.dumps([*command]), "idle", added, added),
            )
            return self.get(f"s{number}").session

    def stored(self) -> list[str]:
        """Return the ids under which output is stored."""
        try:
            return [entry.name for entry in os.scandir(self._folder) if STORED.fullmatch(entry.name)]
        except OSError:
            return []

    def copy_from(self, other: Registry, session: str) -> None:
        """Add *session* as *other* knows it, if its id is free: the file of *other* has been deleted."""
        query = f"SELECT {COLUMNS} FROM session WHERE number = ?"
        for row in other._rows(query, (number_of(session),)):
            places = ", ".join("?" * len(row))
            self._rows(f"INSERT OR IGNORE INTO session({COLUMNS}) VALUES({places})", row)

    def get(self, session: str) -> Row:
        """Return one session; raise ``NotFound`` if there is none with that id."""
        found = self._rows(f"SELECT {COLUMNS} FROM session WHERE number = ?", (number_of(session),))
        if not found:
            raise NotFound(f"no session {session!r}", hint="list the sessions with: gsd ps --all")
        return _row(found[0])

    def all(self, states: Iterable[SessionState] = get_args(SessionState)) -> list[Row]:
        """Return the sessions in one of *states*, oldest first."""
        marks = tuple(states)
        places = ", ".join("?" * len(marks))
        query = f"SELECT {COLUMNS} FROM session WHERE state IN ({places}) ORDER BY number"
        return [_row(row) for row in self._rows(query, marks)]

    def slots_in_use(self) -> int:
        """Return how many slots are in use."""
        places = ", ".join("?" * len(ACTIVE))
        # Runners of an earlier version do not count agents.
        query = f"SELECT coalesce(sum(max(agents, 1)), 0) FROM session WHERE state IN ({places}) AND slot > 0"
        [(number,)] = self._rows(query, ACTIVE)
        return int(number)

    def update(self, session: str, **values: Any) -> None:
        """Set columns of a session; its ``updated`` is set too."""
        if "state" in values and values["state"] not in get_args(SessionState):
            raise ValueError(f"no state of a session: {values['state']!r}")
        values["updated"] = now()
        sets = ", ".join(f"{name} = ?" for name in values)
        self._rows(f"UPDATE session SET {sets} WHERE number = ?", (*values.values(), number_of(session)))

    def end(self, session: str, state: SessionState, *, exit_code: int | None, reason: str) -> None:
        """Record that a session has ended; its slot is free then."""
        self.update(session, **ended(state, exit_code, reason))

    def remove(self, session: str) -> None:
        """Forget a session; its id is not used again."""
        self._rows("DELETE FROM session WHERE number = ?", (number_of(session),))

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Make everything inside one transaction; it may be nested."""
        if self._connection.in_transaction:
            yield
            return
        self._rows("BEGIN IMMEDIATE")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._rows("ROLLBACK")
            raise

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return cast("list[tuple[Any, ...]]", list(self._connection.execute(query, tuple(values) or None)))
        except apsw.Error as error:
            raise self._unusable(error) from error


def ended(state: SessionState, exit_code: int | None, reason: str) -> dict[str, Any]:
    """Return the columns of a session that ends now."""
    about = {"state": state, "exit": exit_code, "reason": reason, "ended": now()}
    return {**about, "checkpoint": "", "control": "", "gate": "", "agents": 0, "asked": ""}


def now() -> str:
    """Return the current time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _row(row: tuple[Any, ...]) -> Row:
    values: dict[str, Any] = dict(zip(COLUMNS.split(", "), row, strict=True))
    values |= {
        "id": f"s{values['number']}",
        "project": Path(values["project"]),
        "folder": Path(values["folder"]),
        "command": tuple(json.loads(values["command"])),
        "stop_asked": bool(values["stop"]),
    }
    for name in ("created", "started", "ended", "updated"):
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    values["session"] = Session(**{field.name: values[field.name] for field in attrs.fields(Session)})
    return Row(**{field.name: values[field.name] for field in attrs.fields(Row)})
