"""Everything durable that a run does, in one place: append, write, commit.

A test gives a run effects that end the process before or after any of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from gsd_core.git import Git
from gsd_core.journal.record import Record
from gsd_core.journal.store import Journal

DRAFT = (".gsd-", ".tmp")
"""How the name of a file begins and ends while it is written."""


@frozen(kw_only=True)
class Effects:
    """The journal's facts, the project's files and its commits."""

    journal: Journal
    git: Git

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        run: str,
        step: str,
        attempt: int,
        consumes: Collection[int] = (),
    ) -> Record:
        """Commit a fact and return it as it lies in the journal."""
        seq = self.journal.append(kind, data, run=run, step=step, attempt=attempt, consumes=consumes)
        return next(self.journal.events(after=seq - 1))

    def write(self, path: Path, text: str) -> None:
        """Write a whole file, so that a reader or a crash sees the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=DRAFT[0], suffix=DRAFT[1])
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o644)  # noqa: PTH101
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    async def commit(
        self,
        paths: Collection[str],
        subject: str,
        trailers: Mapping[str, str],
        *,
        verify: bool,
        empty: bool = False,
    ) -> str:
        """Commit exactly *paths* and return the commit; without a change there is none unless *empty*."""
        return await self.git.commit(paths, subject, trailers=trailers, verify=verify, allow_empty=empty)
