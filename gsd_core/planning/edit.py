"""Applies changes to the texts of ROADMAP.md, REQUIREMENTS.md and STATE.md.

The changes themselves are values in :mod:`gsd_core.planning.changes`, which steps return and the journal
stores. They have a separate module to avoid circular imports: the modules of the files import the changes
that they apply, and this module imports the modules of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import assert_never

from gsd_core.errors import PlanningError

from .changes import (
    AddDecisions,
    AddPhase,
    AddQuickTask,
    Change,
    ListPlans,
    MapRequirement,
    SetPosition,
    TickPhase,
    TickPlan,
)
from .requirements import map_requirement
from .roadmap_edit import Count, list_plans, tick_phase, tick_plan
from .roadmap_phases import extend_milestone
from .state import add_decisions, add_quick_task, set_position

ROADMAP, REQUIREMENTS, STATE = "ROADMAP.md", "REQUIREMENTS.md", "STATE.md"


def apply_changes(
    texts: Mapping[str, str], changes: Sequence[Change], counts: Mapping[str, Count] | None = None
) -> dict[str, str]:
    """Return the texts, by file name, that differ after *changes*; all other bytes stay as they are.

    *counts* are the executed and the written plans of each phase that has some on disk. Without them, those
    in ROADMAP.md's own lists are counted.
    Applying the same changes again has no effect. Raises :class:`PlanningError` if ROADMAP.md or
    REQUIREMENTS.md lacks the phase or the requirement of a change. STATE.md and the progress table only
    repeat information from other files, so fields that they do not have are skipped.
    """
    edited = dict(texts)
    for change in changes:
        name, edit = edit_of(change, counts)
        if name in edited:
            edited[name] = edit(edited[name])
        elif name != STATE:
            message = f"is missing, so {type(change).__name__} cannot be applied"
            raise PlanningError(message, path=f".planning/{name}", hint="restore the file from git")
    return {name: text for name, text in edited.items() if text != texts[name]}


def edit_of(change: Change, counts: Mapping[str, Count] | None = None) -> tuple[str, Callable[[str], str]]:
    """Return the name of the file that *change* belongs to, and the function that applies it to its text."""
    match change:
        case ListPlans():
            return ROADMAP, partial(list_plans, change=change, counts=counts)
        case TickPlan():
            return ROADMAP, partial(tick_plan, change=change, counts=counts)
        case TickPhase():
            return ROADMAP, partial(tick_phase, change=change, counts=counts)
        case MapRequirement():
            return REQUIREMENTS, partial(map_requirement, change=change)
        case SetPosition():
            return STATE, partial(set_position, change=change)
        case AddDecisions():
            return STATE, partial(add_decisions, change=change)
        case AddPhase():
            return ROADMAP, partial(extend_milestone, change=change)
        case AddQuickTask():
            return STATE, partial(add_quick_task, change=change)
        case _:
            assert_never(change)
