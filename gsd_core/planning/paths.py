"""Paths that a plan may name: files of the project, and nothing that is not its business."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from gsd_core.protected import protected_part


def refused(path: str) -> str:
    """Say why a plan may not touch *path*; empty if it may."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if not path.strip() or not parts:
        return "is no path"
    if any(not character.isprintable() for character in path):
        return "holds control characters"
    if parts[0] == "/" or parts[0].startswith("~") or re.match(r"[A-Za-z]:", path) or ".." in parts:
        return "leaves the project"
    if protected_part(path):
        return "is not for agents to change"
    return ""
