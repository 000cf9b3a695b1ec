"""Numbers with their nouns, and money, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

_CENT, _MAX_DIGITS = Decimal("0.01"), 30


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 commit`` or ``2 commits``; *plural* is for nouns that do not just get an ``s``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def some_of(names: Sequence[str], at_most: int = 5) -> str:
    """Return *names* for a line: ``CORE-01, CORE-02 and 18 more``, if there are more than *at_most*."""
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def dollars_text(dollars: Decimal | str) -> str:
    """Return an amount in cents, as ``$1.40``; a smaller one in full, as ``$0.0042``, and none as ``$0``.

    All texts that people read have amounts in this form; JSON has them in full. *dollars* is an amount, or
    its text in the journal or in JSON.
    """
    amount = Decimal(dollars)
    if not amount:
        return "$0"
    if not amount.is_finite() or abs(amount.adjusted()) > _MAX_DIGITS:
        return f"${amount}"  # no amount that anybody paid, in a journal that somebody else wrote
    if abs(amount) < _CENT:
        return f"${amount.normalize():f}"
    return f"${amount.quantize(_CENT, ROUND_HALF_UP):,f}"
