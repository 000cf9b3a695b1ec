"""Workstreams of gsd-core: ``.planning/workstreams/NAME/`` has a roadmap, state, requirements and phases.

``.planning/active-workstream`` names the one in use, and gsd-core then takes that folder for ``.planning``;
the project's description, ``config.json``, milestones, todos and codebase maps are shared. Commands that
only read do the same here. A run does not: its commits and trailers are about ``.planning`` itself, so it
refuses a project with an active workstream and never takes one roadmap for another.

gsd-core 1.14 prefers a pointer in the folder for temporary files that belongs to one session of an agent
or terminal. It is not read here: gsd is not part of that session.
"""

from __future__ import annotations

import re
from pathlib import Path

from gsd_core.errors import PlanningError, ProjectError
from gsd_core.files import kind_below, list_below, start_as_text

PLANNING = ".planning"
POINTER = ".planning/active-workstream"
FOLDER = ".planning/workstreams"
MAX_SHOWN = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def workstreams(root: Path) -> tuple[str, ...]:
    """Return the names of the workstreams."""
    found = (entry.name for entry in list_below(root, FOLDER) if entry.kind == "folder")
    return tuple(name for name in found if _is_name(name))


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and ".." not in name


def active_workstream(root: Path) -> str:
    """Return the workstream that gsd-core uses in the project; empty if none.

    As in gsd-core, a name without a folder does not count.
    """
    name = start_as_text(root, POINTER, 200).strip()
    return name if _is_name(name) and kind_below(root, f"{FOLDER}/{name}") == "folder" else ""


def planning_folder(root: Path, workstream: str) -> str:
    """Return the folder with the roadmap and the phases of *workstream*; ``.planning`` if it is empty.

    Raises :class:`ProjectError` if there is no such workstream.
    """
    if not workstream:
        return PLANNING
    if _is_name(workstream) and kind_below(root, f"{FOLDER}/{workstream}") == "folder":
        return f"{FOLDER}/{workstream}"
    known = ", ".join(workstreams(root)[:MAX_SHOWN])
    has = f"the project has {known}" if known else "the project has none"
    raise ProjectError(f"no workstream {workstream!r}; {has}", hint="see them with: gsd status")


def resume_command(workstream: str) -> str:
    """Return the command that continues a workstream: one of GSD's own, in Claude Code."""
    return f'claude "/gsd:workstreams resume {workstream}"'


def refuse_workstream(root: Path) -> None:
    """Raise :class:`PlanningError` if a workstream is active: ``.planning`` is not what is worked on."""
    if name := active_workstream(root):
        message = f"the workstream {name!r} is active, and only .planning itself can be worked on here"
        hint = f"continue it with: {resume_command(name)}; or remove {POINTER} to work on .planning itself"
        raise PlanningError(message, path=POINTER, line=1, hint=hint)
