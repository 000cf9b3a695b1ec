"""Events: the public, documented part of what a run records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

import attrs

EventName: TypeAlias = Literal[
    "run.started",
    "run.opened",
    "run.closed",
    "phase.started",
    "phase.completed",
    "phase.skipped",
    "step.started",
    "step.returned",
    "step.completed",
    "step.failed",
    "step.waiting",
    "step.queued",
    "step.skipped",
    "attempt.failed",
    "question.asked",
    "question.answered",
    "question.withdrawn",
    "gap.found",
    "gap.escalated",
    "error.escalated",
    "task.committed",
    "files.kept",
    "files.left",
    "merge.failed",
    "cost.changed",
    "agent.activity",
    "notice.failed",
    "plugin.failed",
    "recovered",
]
EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened in a run; *seq* orders events and is a position in the journal.

    *data* is JSON data; the reference of events lists its fields for each *name*.
    """

    seq: int
    name: EventName
    at: datetime
    run: str
    step: str = ""
    data: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
