"""Budgets: stop a run before it costs more than ``--max-budget-usd``.

What comes next counts as well: the limit of the next call, or what a turn has cost at most so far. So a run
ends below its budget, unless a turn costs more than all before it. What is left of the budget is also the
limit of each call, so that the agent itself ends one whose turns are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import attrs

from gsd_core import Cap, Spend, Stop, counted, dollars_text, implements, lower_only, setting, settings_of
from gsd_core.hookspecs import gsd_check_budget, gsd_settings


@attrs.frozen(kw_only=True)
class BudgetSettings:
    """The most a run may cost, in US dollars; ``None`` means no limit."""

    max_usd: Decimal | None = setting(
        None,
        flag="--max-budget-usd",
        help="stop before the run costs more than this",
        harmless=lower_only,
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the budget."""
    yield BudgetSettings


@implements(gsd_check_budget)
async def check_budget(spend: Spend) -> Stop | Cap | None:
    """Stop if the budget is spent, or if the next call could exceed it; else the call gets what is left."""
    limit = settings_of(BudgetSettings).max_usd
    if limit is None:
        return None
    reason = f"{dollars_text(spend.spent)} of the {dollars_text(limit)} budget is spent"
    if spend.spent < limit:
        if spend.reserved is None or spend.spent + spend.reserved <= limit:
            return Cap(dollars=limit - spend.spent)
        reason += f", and what comes next may cost {dollars_text(spend.reserved)}"
    if spend.unknown_calls:
        reason += f"; this does not include {counted(spend.unknown_calls, 'call')} of unknown cost"
    return Stop(reason=reason)
