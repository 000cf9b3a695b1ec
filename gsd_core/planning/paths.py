"""Paths that a plan may name: files of the project that agents may change."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from gsd_core.protected import protected_part


def refused(path: str) -> str:
    """Return the reason why a plan may not change *path*; empty if it may."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if not path.strip() or not parts:
        return "is not a path"
    if any(not character.isprintable() for character in path):
        return "contains control characters"
    if parts[0] == "/" or parts[0].startswith("~") or re.match(r"[A-Za-z]:", path) or ".." in parts:
        return "is outside the project"
    if protected_part(path):
        return "is protected: agents may not change it"
    return ""
