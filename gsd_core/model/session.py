"""Sessions: commands of gsd that run in processes of their own, with no terminal waiting for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from gsd_core.serializer import Serializer

SessionState: TypeAlias = Literal["idle", "running", "waiting_checkpoint", "completed", "failed", "stopped"]
"""*idle*: waits for a slot. *waiting_checkpoint*: its run waits for a person. The last three are final."""


@attrs.frozen(kw_only=True)
class SessionRequest:
    """A command to run as a session.

    *arguments* are those after ``gsd``, as typed; *folder* is the working directory that they refer to, and
    *project* the project's root. *not_yet*: why the command would be refused now, because of steps that are
    not done, with a *hint*. A host may queue the command behind another session of the project that will do
    them; one that does not, or knows of no such session, has to raise ``UserError(not_yet, hint=hint)``.
    """

    arguments: tuple[str, ...]
    folder: Path
    project: Path
    not_yet: str = ""
    hint: str = ""


@attrs.frozen(kw_only=True)
class Session:
    """A session: an id such as ``s12``, its project, the arguments after ``gsd``, and how far it is.

    *slot* is 0 until it has started, *agents* how many it may have at a time now. *checkpoint* is the id of
    the question that it waits for. *reason* says what else it waits for, or how it ended. *run* is the run's
    id in the project's journal, empty until it is known. *exit* is the exit code of its command; ``None``
    while it runs, or if nobody knows it.
    """

    id: str
    project: Path
    command: tuple[str, ...]
    state: SessionState
    slot: int = 0
    agents: int = 0
    checkpoint: str = ""
    reason: str = ""
    run: str = ""
    exit: int | None = None
    pid: int = 0
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    updated: datetime

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in ("completed", "failed", "stopped")

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data; times are ISO 8601 in UTC."""
        return SESSION.dump(self)


SESSION = Serializer(
    Session,
    "id slot? agents? project command state checkpoint? reason run? exit pid? created_at=created "
    "started_at=started ended_at=ended updated_at=updated",
)


@runtime_checkable
class SessionHost(Protocol):
    """Where sessions run. Its methods may block for as long as starting a process takes."""

    def start(self, request: SessionRequest) -> Session:
        """Start a session, or queue it."""
        ...

    def stop(self, session: str) -> Session:
        """Ask a session to stop; raise ``UserError`` if there is none, or if it has ended."""
        ...

    def list(self) -> Sequence[Session]:
        """Return all sessions, oldest first."""
        ...
