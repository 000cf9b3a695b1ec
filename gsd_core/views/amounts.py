"""Durations, costs, tokens and names in words, the same in every text that people read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gsd_core.model.counts import dollars_text as dollars_text
from gsd_core.model.usage import Usage

MAX_LISTED = 5


def duration_text(duration: timedelta) -> str:
    """Return ``4.2 s``, ``3 min 07 s`` or ``2 h 05 min``; a negative duration (a clock was set) is 0 s."""
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def cost_text(usage: Usage) -> str:
    """Return what *usage* cost; says so if it is an estimate or unknown."""
    if usage.dollars is None:
        return "unknown cost"
    amount = dollars_text(usage.dollars)
    return f"about {amount}" if usage.basis == "priced" and usage.dollars else amount


def tokens_text(usage: Usage) -> str:
    """Return ``1,200 tokens``; empty if no tokens are known, as with an agent that reports only dollars."""
    return counted(usage.tokens, "token") if usage.tokens else ""


def counted(number: int, noun: str) -> str:
    """Return ``1 commit`` or ``1,200 commits``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names_text(names: Sequence[object]) -> str:
    """Return the first *names*, and how many more there are."""
    more = [f"and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return ", ".join([*map(str, names[:MAX_LISTED]), *more])
