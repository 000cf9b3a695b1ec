"""Which files a rehearsal made: it never overwrites others, however they came to have the same name.

The script's names are fixed, so a repository may have files of these names already. The list of the files
that rehearsals made in a repository is next to its journal; a copy of the repository does not have it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

import attrs

from gsd_core import Permanent

from .product import FileEdit

MAX_NAMED = 5


@attrs.frozen(kw_only=True)
class OwnFiles:
    """The files that rehearsals made in *project*; *record* keeps their paths.

    Without a record, as in a project that is in no repository, no file that exists is the rehearsal's.
    """

    project: Path
    record: Path | None
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def check(self, edits: Iterable[FileEdit]) -> None:
        """Raise ``Permanent`` if one of the *edits* would replace a file that no rehearsal made."""
        own = self._read()
        others = [edit.path for edit in edits if self._is_in_the_way(edit, own)]
        if others := [*dict.fromkeys(others)]:
            more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
            named = ", ".join(map(repr, others[:MAX_NAMED])) + more
            problem = f"the rehearsal's script writes files that exist and that it did not make: {named}"
            hint = "nothing was overwritten; rehearse in a new folder, with gsd demo or -C DIR"
            raise Permanent(problem, hint=hint)

    def claim(self, edits: Iterable[FileEdit]) -> None:
        """Record the files that these *edits* create as the rehearsal's own, after :meth:`check`."""
        edits = (*edits,)
        # Several plans begin at once, each in a thread.
        with self._lock:
            self.check(edits)
            own = self._read()
            new = {edit.path for edit in edits if not os.path.lexists(self.project / edit.path)}
            if self.record and not new <= own:
                # Before the files: a process that is killed in between must find them again as its own.
                write_json(self.record, sorted(own | new))

    def _read(self) -> set[str]:
        try:
            return set(json.loads(self.record.read_text("utf-8"))) if self.record else set()
        except (OSError, ValueError, TypeError):
            return set()

    def _is_in_the_way(self, edit: FileEdit, own: set[str]) -> bool:
        file = self.project / edit.path
        folders = [one for one in file.parents if self.project in one.parents]
        # A link may lead anywhere, so what is behind it is not the rehearsal's, whatever its name.
        if any(os.path.lexists(one) and (one.is_symlink() or not one.is_dir()) for one in folders):
            return True
        if not os.path.lexists(file):
            return False
        if file.is_symlink() or not file.is_file():
            return True
        # Lines that are added to a file replace nothing in it.
        if edit.path in own or edit.append or edit.changes:
            return False
        try:
            return file.read_bytes() != edit.content.encode()
        except OSError:
            return True


def write_json(path: Path, data: object) -> None:
    """Replace the file at *path* as a whole, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(data), "utf-8")
    unfinished.replace(path)
