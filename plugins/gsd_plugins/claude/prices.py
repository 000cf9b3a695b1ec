"""What tokens cost, for calls whose cost nobody reports: after a resume, and for calls that were lost.

Dollars for a million tokens, as Claude Code 2.1.329 counts them for answers of up to 10,000 tokens
(measured); they are Anthropic's list prices, https://claude.com/pricing. Long contexts may cost more.
"""

from __future__ import annotations

from decimal import Decimal

from attrs import evolve, frozen

from gsd_core import Usage

_MILLION = Decimal(1_000_000)
_HOUR_WRITE = Decimal(2)
_WRITE = Decimal("1.25")


@frozen
class Price:
    """Dollars for a million tokens read, written, and read from the cache."""

    input: Decimal
    output: Decimal
    cache_read: Decimal


def _price(row: str) -> Price:
    return Price(*map(Decimal, row.split()))


PRICES = {
    "claude-opus-5-5": _price("4 20 0.2"),
    "claude-opus-5": _price("5 25 0.5"),
    "claude-opus-4-8": _price("5 25 0.5"),
    "claude-opus-4-6": _price("5 25 0.5"),
    "claude-opus-4-5": _price("5 25 0.5"),
    "claude-fable-5": _price("8 40 0.2"),
    "claude-sonnet-5-5": _price("2 10 0.1"),
    "claude-sonnet-5": _price("2 10 0.2"),
    "claude-sonnet-4": _price("3 15 0.3"),
    "claude-haiku-5-5": _price("0.1 0.5 0.01"),
    "claude-haiku-4-5": _price("1 5 0.1"),
    "claude-3-5-haiku": _price("0.8 4 0.08"),
}


def priced(usage: Usage, model: str, *, hour_writes: int = 0) -> Usage:
    """Return *usage* with its dollars, if the price of *model* is known.

    *hour_writes* of the tokens written to the cache are kept for an hour, which costs more.
    """
    names = [name for name in PRICES if name in model]
    if not names:
        return usage
    price = PRICES[max(names, key=len)]
    short_writes = usage.cache_write_tokens - hour_writes
    dollars = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * price.cache_read
        + (short_writes * _WRITE + hour_writes * _HOUR_WRITE) * price.input
    ) / _MILLION
    return evolve(usage, dollars=dollars, basis="priced")
