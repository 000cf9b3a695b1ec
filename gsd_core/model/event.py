"""Events: the public, documented subset of what a run tells of itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from attrs import field, frozen

EventName: TypeAlias = Literal[
    "run.started",
    "run.opened",
    "run.closed",
    "phase.started",
    "phase.completed",
    "phase.skipped",
    "step.started",
    "step.completed",
    "step.failed",
    "step.skipped",
    "attempt.failed",
    "question.asked",
    "question.answered",
    "gap.found",
    "gap.escalated",
    "error.escalated",
    "task.committed",
    "cost.changed",
    "agent.activity",
    "plugin.failed",
    "recovered",
]
EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)


@frozen(kw_only=True)
class Event:
    """Something that happened; *seq* orders events and is a cursor into the journal.

    *data* is JSON data; its fields for each name are listed in the reference of events.
    """

    seq: int
    name: EventName
    at: datetime
    run: str
    step: str = ""
    data: Mapping[str, Any] = field(factory=dict[str, Any])
