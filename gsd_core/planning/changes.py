"""Changes to the planning files that all steps share (ROADMAP, REQUIREMENTS, STATE), as values.

A step returns changes instead of new texts, so that steps that run at the same time cannot overwrite one
another; only the core applies them, with :func:`gsd_core.planning.edit.apply_changes`. The journal stores
them, and after a crash they may be applied again: that has no effect. Dates are ISO text (``2026-01-31``)
and part of the change, so that it does not matter when it is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class ListPlans:
    """ROADMAP: add plans to those listed for the phase; each is a pair of an id and a short description."""

    phase: str
    plans: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class TickPlan:
    """ROADMAP: a plan is done; ticks its line and counts it in the progress table."""

    phase: str
    plan: str


@attrs.frozen(kw_only=True)
class TickPhase:
    """ROADMAP: a phase is complete since *date*; sets its checkbox and its row of the progress table.

    The date is empty if it is not known.
    """

    phase: str
    date: str


@attrs.frozen(kw_only=True)
class MapRequirement:
    """REQUIREMENTS: set a requirement's status in the traceability table; ``Complete`` also ticks it."""

    requirement: str
    phase: str
    status: Literal["Pending", "In Progress", "Complete", "Blocked"]


@attrs.frozen(kw_only=True)
class SetPosition:
    """STATE: set the current position.

    A run takes the numbers from the files when it applies the change, so a step leaves them out; those that
    are not known are ``None``, and stay as they are. *plan* of the phase's *plans* are executed.
    *phases_done* of the milestone's *phases* are complete, and *last* is the number of its last one. *done*
    of its *all_plans* are executed, and *percent* is its progress. *names* are those of its phases by number.
    *at* is the time in ISO format, empty if only the *date* is known.
    """

    phase: str
    phases: int | None = None
    name: str
    plan: int | None = None
    plans: int | None = None
    status: str
    percent: int | None = None
    date: str
    activity: str
    last: int | None = None
    done: int | None = None
    all_plans: int | None = None
    phases_done: int | None = None
    names: Mapping[str, str] = attrs.field(factory=dict[str, str])
    at: str = ""


@attrs.frozen(kw_only=True)
class AddDecisions:
    """STATE: add decisions of a phase under Accumulated Context, except those that are there already."""

    phase: str
    decisions: tuple[str, ...]


@attrs.frozen(kw_only=True)
class AddPhase:
    """ROADMAP: add a phase to the milestone in progress, unless it has one of that number and name."""

    number: str
    name: str
    goal: str
    depends_on: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class AddQuickTask:
    """STATE: add a row to "Quick Tasks Completed", unless it has one with that *number*.

    *directory* is the name of the folder in ``.planning/quick``; *status* is empty without a verification.
    """

    number: str
    description: str
    date: str
    commit: str
    directory: str
    status: str = ""


Change: TypeAlias = (
    ListPlans | TickPlan | TickPhase | MapRequirement | SetPosition | AddDecisions | AddPhase | AddQuickTask
)
