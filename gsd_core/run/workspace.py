"""A folder in which steps change files: its git, its branch, and what guards it while agents work there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from gsd_core.git import Git

from .sandbox import Confinement
from .seal import Seal, Sealer


@attrs.define(kw_only=True)
class Workspace:
    """Where agents work, and the run commits; *name* is empty for the project itself.

    *branch* is the one that this process works on: empty if HEAD is detached, ``None`` if it is not known.
    *slot* is a number from 1 on that no other workspace in use has; the project itself has 0.
    *sealer* takes and compares *seal*, the record of the protected state before the calls in progress.
    *guards* tell for each of these calls in which sandbox it is, if any, and *owners* is how many of them own
    the planning.
    """

    git: Git
    sealer: Sealer
    name: str = ""
    branch: str | None = None
    slot: int = 0
    seal: Seal | None = None
    guards: list[Callable[[], Confinement | None]] = attrs.field(
        factory=list[Callable[[], "Confinement | None"]]
    )
    owners: int = 0

    @property
    def stored_seal(self) -> Path:
        """The file that has the seal while calls are in progress, and if they were killed."""
        return self.sealer.store / ("-".join(filter(None, ["seal", self.name])) + ".json")
