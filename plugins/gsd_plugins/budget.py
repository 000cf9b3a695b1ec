"""Budgets: stop a run before it spends more than ``--max-budget-usd``.

The next call counts with all that it may spend, so a run ends below its budget, never above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from attrs import frozen

from gsd_core import Pause, Spend, Stop, implements, setting, settings_of
from gsd_core.hookspecs import gsd_check_budget, gsd_settings


@frozen(kw_only=True)
class BudgetSettings:
    """How much a run may cost, in dollars; ``None`` is no limit."""

    max_usd: Decimal | None = setting(
        None, flag="--max-budget-usd", help="stop before the run costs more than this"
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the budget."""
    yield BudgetSettings


@implements(gsd_check_budget)
async def within_budget(spend: Spend) -> Stop | Pause | None:
    """Stop when the money is spent, or when the next call might spend too much."""
    limit = settings_of(BudgetSettings).max_usd
    if limit is None:
        return None
    if spend.spent >= limit:
        return Stop(reason=f"${spend.spent} of ${limit} are spent" + _unknown(spend))
    if spend.reserved is not None and spend.spent + spend.reserved > limit:
        spent = f"${spend.spent} of ${limit} are spent and the next call may cost ${spend.reserved}"
        return Stop(reason=spent + _unknown(spend))
    return None


def _unknown(spend: Spend) -> str:
    if not spend.unknown_calls:
        return ""
    calls = "1 call" if spend.unknown_calls == 1 else f"{spend.unknown_calls} calls"
    return f"; what {calls} cost is unknown and comes on top"
