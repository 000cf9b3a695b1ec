"""Usage of agent calls (tokens, turns, dollars) and what a budget policy decides about it."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

import attrs

Basis: TypeAlias = Literal["reported", "priced", "unknown"]


@attrs.frozen(kw_only=True)
class Usage:
    """What one call used, not the whole conversation.

    *dollars* is ``None`` if unknown. *basis* says where it comes from: ``reported`` by the agent, or
    ``priced`` by the core from the tokens of each turn.
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
    """Return the less reliable basis of the two; a usage of nothing does not count."""
    bases = {usage.basis for usage in (one, other) if usage != Usage(basis=usage.basis)}
    if "unknown" in bases or not bases:
        return "unknown"
    return "priced" if "priced" in bases else "reported"


@attrs.frozen(kw_only=True)
class Spend:
    """What a run has spent so far, in dollars, and what comes next may spend (*reserved*).

    That is the limit of the next call. For a call without one it is what a turn of the agent has cost at most
    so far, so that a budget is not exceeded by the turn whose cost is known only afterwards.
    *unknown_calls* are calls whose cost is unknown; *spent* does not include them.
    """

    run: str
    step: str
    spent: Decimal
    reserved: Decimal | None
    calls: int
    unknown_calls: int = 0


@attrs.frozen(kw_only=True)
class Stop:
    """The decision of a budget policy to spend nothing more in this run."""

    reason: str


@attrs.frozen(kw_only=True)
class Cap:
    """The decision of a budget policy to let the next call spend at most *dollars*.

    The agent ends a call that has reached it. An agent learns what a turn has cost when the turn is over, so
    the last turn can exceed it.
    """

    dollars: Decimal


@attrs.frozen(kw_only=True)
class Pause:
    """The decision of a budget policy to ask a human before spending more."""

    reason: str
