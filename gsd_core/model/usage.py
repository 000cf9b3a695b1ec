"""What an agent call used: tokens, turns and money."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

from attrs import frozen

Basis: TypeAlias = Literal["reported", "priced", "unknown"]


@frozen(kw_only=True)
class Usage:
    """The use of one call, never of a whole conversation.

    *dollars* is ``None`` if nobody knows it; *basis* says whether the agent reported it
    or we priced its turns.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    turns: int = 0
    dollars: Decimal | None = None
    basis: Basis = "unknown"

    def __add__(self, other: Usage) -> Usage:
        known = [d for d in (self.dollars, other.dollars) if d is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            turns=self.turns + other.turns,
            dollars=sum(known, Decimal(0)) if known else None,
            basis=_weaker(self, other),
        )


def _weaker(one: Usage, other: Usage) -> Basis:
    """Return the weaker basis of the two; what used nothing has no say."""
    spoken = {usage.basis for usage in (one, other) if usage != Usage(basis=usage.basis)}
    if "unknown" in spoken or not spoken:
        return "unknown"
    return "priced" if "priced" in spoken else "reported"


@frozen(kw_only=True)
class Spend:
    """What a run has spent, and what the next call may spend at most (dollars)."""

    run: str
    step: str
    spent: Decimal
    reserved: Decimal | None
    calls: int
    unknown_calls: int = 0


@frozen(kw_only=True)
class Stop:
    """A budget policy's verdict: spend nothing more in this run."""

    reason: str


@frozen(kw_only=True)
class Pause:
    """A budget policy's verdict: ask a human before spending more."""

    reason: str
