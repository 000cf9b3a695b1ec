"""Notices: what is worth telling someone who is not watching."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

Level: TypeAlias = Literal["info", "warning", "error"]
NoticeType: TypeAlias = Literal["question", "progress", "error", "complete", "crash"]


@frozen(kw_only=True)
class Notice:
    """One message; *key* is the same for the same occasion, so nobody is told twice.

    *answer_with* is a command line that answers *question*, if it is about one.
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
