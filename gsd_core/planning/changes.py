"""Changes to the shared planning files (ROADMAP, REQUIREMENTS, STATE), as data.

A step returns them; only the core's lander applies them, one writer for one file.
Each can be applied again without effect. Dates are ISO text (``2026-01-31``), given by the step
so that a change is the same whenever it is applied.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen


@frozen(kw_only=True)
class ListPlans:
    """ROADMAP: the phase has these plans (id, what it does), added to those listed before."""

    phase: str
    plans: tuple[tuple[str, str], ...]


@frozen(kw_only=True)
class TickPlan:
    """ROADMAP: this plan is done; ticks its line and counts it in the progress table."""

    phase: str
    plan: str


@frozen(kw_only=True)
class TickPhase:
    """ROADMAP: this phase is complete since *date*: its checkbox and its row of the progress table."""

    phase: str
    date: str


@frozen(kw_only=True)
class MapRequirement:
    """REQUIREMENTS: *status* of a requirement in the traceability table; ``Complete`` ticks it too."""

    requirement: str
    phase: str
    status: Literal["Pending", "In Progress", "Complete", "Blocked"]


@frozen(kw_only=True)
class SetPosition:
    """STATE: where the project stands.

    *plan* is the number of plans done of *plans* in the phase; *percent* is of all plans, and
    *done* is how many of all plans are, if that is known.
    """

    phase: str
    phases: int
    name: str
    plan: int
    plans: int
    status: str
    percent: int
    date: str
    activity: str
    done: int | None = None


@frozen(kw_only=True)
class AddDecisions:
    """STATE: decisions made in a phase, under Accumulated Context; known ones are not added again."""

    phase: str
    decisions: tuple[str, ...]


Change: TypeAlias = ListPlans | TickPlan | TickPhase | MapRequirement | SetPosition | AddDecisions
