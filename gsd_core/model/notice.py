"""Notifications for someone who is not watching the run."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

Level: TypeAlias = Literal["info", "warning", "error"]
NoticeType: TypeAlias = Literal["question", "progress", "error", "complete", "crash"]


@attrs.frozen(kw_only=True)
class Notice:
    """One notification. The core sends it once for each *key*, even if the run is resumed.

    If it is about a *question* (an id), *answer_with* is a command line that answers it.
    """

    key: str
    type: NoticeType
    title: str
    body: str = ""
    level: Level = "info"
    run: str = ""
    step: str = ""
    question: str = ""
    answer_with: str = ""
