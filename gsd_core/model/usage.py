"""Usage of agent calls (tokens, turns, dollars) and what a budget policy decides about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias, get_args

import attrs

Basis: TypeAlias = Literal["reported", "priced", "unknown"]
"""Where an amount of dollars comes from, the most reliable first."""
Unit: TypeAlias = Literal["dollars", "tokens", "turns"]
"""What a budget is in. A turn is one request to the model."""
Scope: TypeAlias = Literal["run", "phase", "project", "day"]
"""What a budget is for: the run, the phase of the step, all runs of the project, or all of a user's projects
on one local calendar day.
"""


@attrs.frozen(kw_only=True)
class Amount:
    """So many dollars, tokens and turns; tokens of all kinds, read from and written to a cache too."""

    dollars: Decimal = Decimal(0)
    tokens: int = 0
    turns: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            dollars=self.dollars + other.dollars,
            tokens=self.tokens + other.tokens,
            turns=self.turns + other.turns,
        )


_MOST = 10**15
"""More than any call can use: sums of larger numbers could not be shown in cents."""


def _at_least_zero(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Refuse what would lower the sum that a budget limits, or make it useless."""
    kind = Decimal if field.name == "dollars" else int
    number = value if isinstance(value, kind) and not isinstance(value, bool) else -1
    # A comparison with NaN would raise another exception.
    if not (Decimal(number).is_finite() and 0 <= number <= _MOST):
        raise ValueError(f"a usage of {value!r} {field.name} is impossible")


@attrs.frozen(kw_only=True)
class Usage:
    """What one call used, not the whole conversation.

    *dollars* is ``None`` if unknown. *basis* says where it comes from: ``reported`` by the agent, or
    ``priced`` by the core from the tokens of each turn. Raises ``ValueError`` for a negative number, and for
    one that is not a number.
    """

    input_tokens: int = attrs.field(default=0, validator=_at_least_zero)
    output_tokens: int = attrs.field(default=0, validator=_at_least_zero)
    cache_read_tokens: int = attrs.field(default=0, validator=_at_least_zero)
    cache_write_tokens: int = attrs.field(default=0, validator=_at_least_zero)
    turns: int = attrs.field(default=0, validator=_at_least_zero)
    dollars: Decimal | None = attrs.field(default=None, validator=attrs.validators.optional(_at_least_zero))
    basis: Basis = "unknown"

    @property
    def tokens(self) -> int:
        """All tokens, those read from and written to a cache too."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def amount(self) -> Amount:
        """The usage in each unit, as far as it is known."""
        return Amount(dollars=self.dollars or Decimal(0), tokens=self.tokens, turns=self.turns)

    def __add__(self, other: Usage) -> Usage:
        # The less reliable basis of the two; a usage of nothing does not count.
        bases: list[Basis] = [usage.basis for usage in (self, other) if usage != Usage(basis=usage.basis)]
        weaker = max(bases, key=get_args(Basis).index) if bases else "unknown"
        return Usage(**self._combined(other, sum), basis=weaker)

    def at_least(self, other: Usage) -> Usage:
        """Return this usage with the numbers of *other* where those are higher."""
        # A price per token has more digits than what an agent reports.
        mine, others = (round(usage.dollars or Decimal(0), 4) for usage in (self, other))
        is_others = self == Usage() or others > mine
        return Usage(**self._combined(other, max), basis=other.basis if is_others else self.basis)

    def _combined(self, other: Usage, combine: Callable[[Iterable[Any]], Any]) -> dict[str, Any]:
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _AMOUNTS}
        known = {name: [one for one in pair if one is not None] for name, pair in pairs.items()}
        return {name: combine(values) for name, values in known.items() if values}


_AMOUNTS = tuple(field.name for field in attrs.fields(Usage) if field.name != "basis")


def _only_dollars(spend: Spend) -> Callable[[Scope], Amount]:
    return lambda scope: Amount(dollars=spend.spent)


@attrs.frozen(kw_only=True)
class Spend:
    """What was spent so far, and what comes next may spend.

    *spent*, *reserved*, *calls* and *unknown_calls* are those of the run, in dollars: *reserved* is what the
    calls in progress and the next one may still use, *unknown_calls* are calls whose cost is unknown, which
    *spent* does not include.

    *used* returns what was used in a scope, by the calls in progress too: ``spend.used("day").tokens``.
    *held* is what other calls in progress may still use, *coming* what comes next may: the limit of the call,
    or else what a turn has used at most so far, so that a budget is not exceeded by the turn whose usage is
    known only afterwards. *unknown* are the units in which a call of this process has not reported its usage:
    a budget in them cannot be kept. *agents* are the plugins that are asked to do the next call, in order;
    after a turn there is none.

    *wanted* is not 0 if the run asks how many plans it may execute side by side, of so many that could be
    now; *working* are in progress. It asks before it starts a plan beside others, and when it needs fewer.
    """

    run: str
    step: str
    spent: Decimal
    reserved: Decimal | None
    calls: int
    unknown_calls: int = 0
    used: Callable[[Scope], Amount] = attrs.field(
        default=attrs.Factory(_only_dollars, takes_self=True), eq=False, repr=False
    )
    held: Amount = Amount()
    coming: Amount = attrs.field(
        default=attrs.Factory(lambda spend: Amount(dollars=spend.reserved or Decimal(0)), takes_self=True)
    )
    unknown: frozenset[Unit] = frozenset()
    agents: tuple[str, ...] = ()
    working: int = 0
    wanted: int = 0


@attrs.frozen(kw_only=True)
class Stop:
    """The decision of a budget policy to spend nothing more in this run; *hint* is how to continue."""

    reason: str
    hint: str = ""


@attrs.frozen(kw_only=True)
class Cap:
    """The decision of a budget policy to let the next call spend at most *dollars*, and take so many *turns*.

    ``None`` means no limit. The agent ends a call that has reached it. An agent learns what a turn has cost
    when the turn is over, so the last turn can exceed it.

    *agents* is how many plans the run may execute side by side now, if it asks that (``Spend.wanted``). One
    is always allowed, and what is in progress is not ended. *reason* says what the others wait for, and
    *hint* each way out.
    """

    dollars: Decimal | None = None
    turns: int | None = None
    agents: int | None = None
    reason: str = ""
    hint: str = ""


@attrs.frozen(kw_only=True)
class Pause:
    """The decision of a budget policy to ask a human before spending more."""

    reason: str


@attrs.frozen(kw_only=True)
class Postpone:
    """The decision of a budget policy that the next call has to wait until *until* (aware, UTC)."""

    reason: str
    until: datetime
