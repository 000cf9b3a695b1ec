"""A unit of work: the execution of one plan, which another process or machine can do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import attrs

from .question import Answer


@attrs.frozen(kw_only=True)
class WorkUnit:
    """One plan to execute, from a commit that *remote* has, to a branch of it.

    *id* is the same in every process that continues the run: what it names is done once. *base* is the commit
    to begin with, and *branch* is at it until there is work on it. *folder* is that of the project in its
    repository, empty for its root. *settings* are ``GSD_*`` variables. *version* is that of gsd.
    """

    id: str
    run: str
    step: str
    phase: str
    plan: str
    remote: str
    base: str
    branch: str
    folder: str = ""
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    version: str = ""


@attrs.frozen(kw_only=True)
class UnitFact:
    """A fact or an activity of a unit, as its own journal has it; *seq* orders those of one unit."""

    seq: int
    kind: str
    at: datetime
    attempt: int
    data: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class UnitEnd:
    """How the work on a unit ended; *problem* says why it has no result, with a *hint*; else it is empty."""

    problem: str = ""
    hint: str = ""


@runtime_checkable
class Dispatcher(Protocol):
    """Where units are worked on. A unit outlives the process that submitted it, unless it is cancelled."""

    async def submit(self, unit: WorkUnit) -> None:
        """Have a unit worked on; one that is known already, by its id, is left as it is."""
        ...

    def facts(self, unit: str, after: int = 0) -> AsyncIterator[UnitFact]:
        """Yield the unit's facts with ``seq > after`` as they come, until the work on it ends.

        Before a fact that names a commit is yielded, the unit's branch at the remote has the commit.
        """
        ...

    async def wait(self, unit: str) -> UnitEnd:
        """Wait until the work on the unit ends, and return how."""
        ...

    async def answer(self, unit: str, answer: Answer) -> None:
        """Give the unit an answer; work on one that waits continues."""
        ...

    async def cancel(self, unit: str) -> None:
        """End the work on the unit, with all its processes; what is committed stays on its branch."""
        ...
