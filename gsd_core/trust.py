"""Trust by content: what a project wants, what its user has trusted, and which journals are theirs.

A cloned repository can carry plugins, settings and commands. Each of them is a :class:`Want` with a digest of
its content. What a user trusts is stored in their own state folder, never in the project: a list that came
with a copied repository would trust itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.machine.facts import RunOpened

from .errors import ConfigError
from .files import write_below
from .journal.store import Journal
from .processes import boot_id
from .serializer import Serializer

WantKind: TypeAlias = Literal["plugin", "file", "setting", "command", "program", "journal"]
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


WANT = Serializer(Want, "kind name shown sha256=digest")


@attrs.frozen(kw_only=True)
class TrustRecord:
    """What a user has trusted in the *project* at a path."""

    project: str
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
        if _is_inside(self.folder, root):
            return frozenset()
        own = self._read(self._path(root))
        here = own.digests if own and own.project == str(root.resolve()) else frozenset[str]()
        records = map(self._read, self._files())
        if wanted <= here or any(record and record.digests == wanted for record in records):
            return wanted
        return wanted & here

    def add(self, root: Path, wants: Sequence[Want], at: datetime) -> None:
        """Trust *wants*, and nothing else any more, for the project at *root*.

        Raises ``ConfigError`` if the folder is in the project, where an agent and the repository could change
        it, and ``OSError`` if it cannot be written.
        """
        _refuse_inside(self.folder, root)
        data = {
            "schema": SCHEMA,
            "project": str(root.resolve()),
            "at": at.isoformat(timespec="seconds"),
            "wants": [{"kind": want.kind, "name": want.name, "sha256": want.digest} for want in wants],
        }
        _write(self._path(root), data)

    def revoke(self, root: Path, wants: Sequence[Want]) -> int:
        """Forget what was trusted at *root*, and every record of the same *wants*; return their number."""
        wanted = frozenset(want.digest for want in wants)
        same = {path for path in self._files() if (record := self._read(path)) and record.digests == wanted}
        existing = [path for path in {self._path(root), *same} if path.exists()]
        for path in existing:
            path.unlink()
        return len(existing)

    def _files(self) -> Iterable[Path]:
        return sorted(self.folder.glob("*.json"))

    def _path(self, root: Path) -> Path:
        name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:32]
        return self.folder / f"{name}.json"

    def _read(self, path: Path) -> TrustRecord | None:
        """Return a record; ``None`` if it does not exist or is damaged, which trusts nothing."""
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            schema, project = data["schema"], data["project"]
            digests = frozenset(want["sha256"] for want in data["wants"])
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            return None
        is_valid = schema == SCHEMA and all(isinstance(text, str) for text in (project, *digests))
        # An empty set would equal that of every project which wants nothing, and be of no use.
        return TrustRecord(project=project, digests=digests) if is_valid and digests else None


@attrs.frozen
class KnownJournals:
    """The journals that this user's runs have written on this machine: a file in *folder* for each.

    ``.git`` comes with a copied or unpacked folder, and the journal in it has options and answers. So each
    journal has a random token, and counts only where the user's own folder has the same one. The name of its
    file is the token's digest. A project that is moved on this machine keeps its journal.
    """

    folder: Path

    def has(self, journal: Journal, root: Path) -> bool:
        """Whether the journal of the project at *root* is one of them; an empty one counts as one."""
        if journal.is_empty():
            return True
        token = journal.origin()
        if not token and any(fact.data.boot == boot_id() for fact in journal.facts(RunOpened)):
            # Earlier versions gave no token. Nobody elsewhere knows the random id of this machine's boot.
            return not _is_inside(self.folder, root)
        return bool(token) and not _is_inside(self.folder, root) and self._path(token).is_file()

    def add(self, journal: Journal, root: Path, at: datetime) -> None:
        """Give *journal* a new token, and remember it.

        Raises ``ConfigError`` if the folder is in the project, ``OSError`` if it cannot be written, and
        ``JournalError`` if the journal cannot be.
        """
        _refuse_inside(self.folder, root)
        token = secrets.token_hex(16)
        about = {"schema": SCHEMA, "project": str(root.resolve()), "at": at.isoformat(timespec="seconds")}
        about["journal"] = str(journal.path.resolve())
        _write(self._path(token), about)
        journal.mark(token)

    def paths(self) -> frozenset[Path]:
        """Return where the journals are, or were: one may have been removed since."""
        return frozenset(path for file in self.folder.glob("*.json") if (path := _journal_in(file)))

    def is_at(self, journal: Journal) -> bool:
        """Whether the journal is where its file says: if not, the project was moved or copied."""
        return _journal_in(self._path(journal.origin())) == journal.path.resolve()

    def _path(self, token: str) -> Path:
        return self.folder / f"{hashlib.sha256(token.encode()).hexdigest()[:32]}.json"


def _journal_in(file: Path) -> Path | None:
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        # Older versions did not write where the journal is.
        return Path(about.get("journal") or Path(about["project"], ".git", "gsd", "journal.db"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _is_inside(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _refuse_inside(folder: Path, root: Path) -> None:
    """Raise ``ConfigError`` if an agent or the repository could change what is stored in *folder*."""
    if _is_inside(folder, root):
        message = f"what you trust is stored in {str(folder)!r}, which is in this project"
        raise ConfigError(message, hint="set GSD_STATE_DIR to a folder outside of it")


def _write(path: Path, data: dict[str, Any]) -> None:
    """Replace a file of the user's own folder as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(data, indent=2) + "\n"
    write_below(path.parent, path.name, text.encode(), mode=0o600)


def labels(wants: Collection[Want]) -> dict[str, str]:
    """Return the wants as the journal keeps them: kind and name by digest."""
    return {want.digest: f"{want.kind} {want.name}" for want in wants}
