"""Workstreams of gsd-core: ``.planning/workstreams/NAME/`` has its own roadmap, state and phases.

``.planning/active-workstream`` names the one in use. gsd-core then takes that folder for ``.planning``. We
do not: a run, its commits and its trailers are about ``.planning`` itself, so a project with an active
workstream is refused and never taken for the wrong one.
"""

from __future__ import annotations

import re
from pathlib import Path

from gsd_core.errors import PlanningError
from gsd_core.files import kind_below, list_below, read_start

POINTER = ".planning/active-workstream"
FOLDER = ".planning/workstreams"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def workstreams(root: Path) -> tuple[str, ...]:
    """Return the names of the workstreams."""
    return tuple(entry.name for entry in list_below(root, FOLDER) if entry.kind == "folder")


def active_workstream(root: Path) -> str:
    """Return the workstream that gsd-core uses in the project; empty if none.

    As in gsd-core, a name without a folder does not count.
    """
    try:
        name = read_start(root, POINTER, 200).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    is_name = _NAME.fullmatch(name) is not None and ".." not in name
    return name if is_name and kind_below(root, f"{FOLDER}/{name}") == "folder" else ""


def refuse_workstream(root: Path) -> None:
    """Raise :class:`PlanningError` if a workstream is active: ``.planning`` is not what is worked on."""
    if name := active_workstream(root):
        raise PlanningError(
            f"the workstream {name!r} is active, and only .planning itself can be worked on here",
            path=POINTER,
            line=1,
            hint=f"complete it, or remove {POINTER} to work on .planning itself",
        )
