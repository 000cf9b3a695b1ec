"""Notifications for someone who is not watching the run."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import attrs

Level: TypeAlias = Literal["info", "warning", "error"]
NoticeType: TypeAlias = Literal["question", "progress", "error", "complete", "crash"]
NOTICE_TYPES: tuple[NoticeType, ...] = get_args(NoticeType)


@attrs.frozen(kw_only=True)
class Notice:
    """One notification. The core sends it once for each *key*, even if the run is resumed.

    If it is about a *question* (an id), *answer_with* is a command line that answers it, from any folder of
    the machine. *reminder* counts the reminders of a question that stays open; the first notification has 0.
    *links* are URLs of pages about it.
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
    reminder: int = 0
    links: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Delivery:
    """The result of sending one notification to one *service*; *reason* says why it is not *ok*.

    Both texts are recorded and shown: neither may contain an address or another secret. *tries* is how often
    it was sent.
    """

    service: str
    ok: bool = True
    reason: str = ""
    tries: int = 1
