"""Applies changes to the texts of the shared planning files; what is not meant stays byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from gsd_core.errors import PlanningError

from .changes import AddDecisions, Change, ListPlans, MapRequirement, SetPosition, TickPhase, TickPlan
from .requirements import map_requirement
from .roadmap_edit import list_plans, tick_phase, tick_plan
from .state import add_decisions, set_position

ROADMAP, REQUIREMENTS, STATE = "ROADMAP.md", "REQUIREMENTS.md", "STATE.md"


def apply_changes(texts: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """Return the files (by name) that differ after *changes*; applied again, they change nothing.

    Raises :class:`PlanningError` if a change has no place in its file. STATE.md and the progress
    table are told what they have a place for, and no more.
    """
    edited = dict(texts)
    for change in changes:
        name, edit = _edit(change)
        if name in edited:
            edited[name] = edit(edited[name])
        elif name != STATE:
            raise PlanningError(
                f"is missing, so {type(change).__name__} has no place",
                path=f".planning/{name}",
                hint="restore the file from git, or start with a new project",
            )
    return {name: text for name, text in edited.items() if text != texts[name]}


def _edit(change: Change) -> tuple[str, Callable[[str], str]]:
    match change:
        case ListPlans():
            return ROADMAP, lambda text: list_plans(text, change)
        case TickPlan():
            return ROADMAP, lambda text: tick_plan(text, change)
        case TickPhase():
            return ROADMAP, lambda text: tick_phase(text, change)
        case MapRequirement():
            return REQUIREMENTS, lambda text: map_requirement(text, change)
        case SetPosition():
            return STATE, lambda text: set_position(text, change)
        case AddDecisions():
            return STATE, lambda text: add_decisions(text, change)
        case _:
            assert_never(change)
