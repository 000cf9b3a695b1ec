"""Trust by content: what a project wants, and what its user has trusted.

A cloned repository can carry plugins, settings and commands. Each of them is a :class:`Want` with a digest of
its content. What a user trusts is stored in their own state folder, never in the project: a list that came
with a copied repository would trust itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import attrs

from .errors import ConfigError

WantKind: TypeAlias = Literal["plugin", "file", "setting", "command", "program"]
SCHEMA = 1
MAX_BYTES = 10_000_000


@attrs.frozen(kw_only=True)
class Want:
    """One thing that a project wants and that needs trust.

    *name* is a path in the project or the name of a setting, *shown* what to show of its content, without
    secrets. *digest* is a SHA-256 in hex over the kind, the name and the whole content.
    """

    kind: WantKind
    name: str
    shown: str = ""
    digest: str

    @classmethod
    def of(cls, kind: WantKind, name: str, content: str, shown: str = "") -> Want:
        """Return a want with the digest of *content*."""
        canonical = json.dumps([SCHEMA, kind, name, content])
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        return cls(kind=kind, name=name, shown=shown, digest=digest)


@attrs.frozen(kw_only=True)
class TrustRecord:
    """What a user has trusted in the *project* at a path, and when."""

    project: str
    at: str
    digests: frozenset[str]


@attrs.frozen
class TrustStore:
    """The records in *folder*, one file for each project's path.

    The file of a path has the last set that was trusted there, as a whole. Parts of it are trusted at that
    path only; elsewhere exactly the same set is, so that another clone is not asked about. Parts of it are
    not: a harmless want of one project can be harmful in another.
    """

    folder: Path

    def trusted(self, root: Path, wants: Sequence[Want]) -> frozenset[str]:
        """Return the digests of *wants* that are trusted for the project at *root*."""
        wanted = frozenset(want.digest for want in wants)
        if self._is_inside(root):
            return frozenset()
        own = self._read(self._path(root))
        if own and own.project == str(root.resolve()) and wanted <= own.digests:
            return wanted
        if any(record.digests == wanted for record in self.records()):
            return wanted
        return wanted & own.digests if own and own.project == str(root.resolve()) else frozenset()

    def add(self, root: Path, wants: Sequence[Want], at: datetime) -> None:
        """Trust *wants*, and nothing else any more, for the project at *root*.

        Raises ``ConfigError`` if the folder is in the project, where an agent and the repository could change
        it, and ``OSError`` if it cannot be written.
        """
        if self._is_inside(root):
            raise ConfigError(
                f"what you trust is stored in {str(self.folder)!r}, which is in this project",
                hint="set GSD_STATE_DIR to a folder outside of it",
            )
        data = {
            "schema": SCHEMA,
            "project": str(root.resolve()),
            "at": at.isoformat(timespec="seconds"),
            "wants": [{"kind": want.kind, "name": want.name, "sha256": want.digest} for want in wants],
        }
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".trust-")  # with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(data, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self._path(root))
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def revoke(self, root: Path, wants: Sequence[Want]) -> int:
        """Forget what was trusted at *root*, and every record of the same *wants*; return their number."""
        wanted = frozenset(want.digest for want in wants)
        doomed = {self._path(root)}
        doomed |= {
            path for path in self._files() if (record := self._read(path)) and record.digests == wanted
        }
        existing = [path for path in doomed if path.exists()]
        for path in existing:
            path.unlink()
        return len(existing)

    def records(self) -> Iterator[TrustRecord]:
        """Yield what was trusted in any project."""
        for path in self._files():
            if record := self._read(path):
                yield record

    def _files(self) -> Iterable[Path]:
        return sorted(self.folder.glob("*.json"))

    def _path(self, root: Path) -> Path:
        name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:32]
        return self.folder / f"{name}.json"

    def _is_inside(self, root: Path) -> bool:
        return self.folder.resolve().is_relative_to(root.resolve())

    def _read(self, path: Path) -> TrustRecord | None:
        """Return a record; ``None`` if it does not exist or is damaged, which trusts nothing."""
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            data: object = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(data, dict):
            return None
        table = cast("dict[str, Any]", data)
        wants, project = table.get("wants"), table.get("project")
        if table.get("schema") != SCHEMA or not isinstance(project, str) or not isinstance(wants, list):
            return None
        digests: set[str] = set()
        for want in cast("list[object]", wants):
            digest = cast("dict[str, object]", want).get("sha256") if isinstance(want, dict) else None
            if not isinstance(digest, str):
                return None
            digests.add(digest)
        # An empty set would equal that of every project which wants nothing, and be of no use.
        if not digests:
            return None
        return TrustRecord(project=project, at=str(table.get("at", "")), digests=frozenset(digests))


def labels(wants: Collection[Want]) -> dict[str, str]:
    """Return the wants as the journal keeps them: kind and name by digest."""
    return {want.digest: f"{want.kind} {want.name}" for want in wants}
