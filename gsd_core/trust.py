"""Which of a project's plugins its user has vouched for, by their content.

The list lies in the repository's git folder, where neither a commit nor an agent reaches, and it
says where it lies: one that came with a copied or unpacked folder vouches for nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs

_SCHEMA = 1


@attrs.frozen
class Trust:
    """The hashes that are remembered at *path*, ``<git common dir>/gsd/trust.json``."""

    path: Path

    def trusted(self) -> frozenset[str]:
        """Return the SHA-256, in hex, of each content that is trusted; none if the list is damaged."""
        return frozenset(self._read())

    def add(self, sha256: str, name: str) -> None:
        """Trust the content with that hash from now on; *name* is for humans who read the file."""
        self._write({**self._read(), sha256: name})

    def _read(self) -> dict[str, str]:
        try:
            data: object = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        plugins = _field(data, "plugins") if _field(data, "path") == str(self.path.resolve()) else None
        if not isinstance(plugins, dict):
            return {}
        known = cast("dict[str, object]", plugins)
        return {sha256: str(name) for sha256, name in known.items()}

    def _write(self, plugins: Mapping[str, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {"schema": _SCHEMA, "path": str(self.path.resolve()), "plugins": dict(plugins)}
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _field(data: object, name: str) -> object:
    return cast("dict[str, object]", data).get(name) if isinstance(data, dict) else None
