"""Whether an idea starts the next milestone of its project, with a run of its own.

The journal keeps the earlier runs. A new one begins only when the work of the last one is done, because two
runs never share a project's phases.
"""

from __future__ import annotations

from pathlib import Path

from gsd_core.machine.claims import standing
from gsd_core.machine.due import starts_milestone
from gsd_core.machine.state import State
from gsd_core.model.step import Idea
from gsd_core.planning.next_milestone import next_version
from gsd_core.planning.survey import NONE_IN_PROGRESS, read_planning

from .snapshot import snapshot_of


def milestone_to_start(root: Path, idea: Idea | None, state: State, kept: Idea | None) -> str:
    """Return the version of the milestone that *idea* starts in the project at *root*; empty for none.

    *state* is that of the last run, *kept* the idea in the project's IDEA.md. Raises ``PlanningError`` for
    planning files that cannot be read.
    """
    if idea is None or idea.sha256 in (state.idea, kept.sha256 if kept else ""):
        return ""
    if starts_milestone(state) or any(record.status == "result" for record in state.steps.values()):
        return ""  # the last run still writes the planning files
    planning = read_planning(root)
    if planning.idle:
        return next_version(root) if planning.idle.endswith(NONE_IN_PROGRESS) else ""
    if not planning.phases or state.unfinished:
        return ""
    complete = all(standing(state, phase) != "open" for phase in snapshot_of(planning).phases)
    return next_version(root) if complete else ""


def closes_first(root: Path) -> str:
    """Return the milestone that has to be closed before the next one starts; empty if it is closed."""
    planning = read_planning(root)
    return planning.milestone if planning.phases else ""
