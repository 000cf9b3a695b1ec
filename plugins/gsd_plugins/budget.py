"""Budgets: stop a run before it uses more than it may, in dollars, tokens or turns.

What comes next counts as well: the limit of the next call, or what a turn has used at most so far. So a run
ends below its budget, unless a turn uses more than all before it. What is left of a budget in dollars or
turns is also the limit of each call, so that the agent itself ends one whose turns are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import attrs

from gsd_core import (
    Cap,
    Scope,
    Spend,
    Stop,
    Unit,
    counted,
    dollars_text,
    implements,
    lower_only,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_check_budget, gsd_settings

SCOPES: dict[Scope, str] = {"run": "max", "phase": "phase", "project": "project", "day": "day"}
"""What the settings of each scope begin with."""
UNITS: dict[Unit, str] = {"dollars": "usd", "tokens": "tokens", "turns": "turns"}
"""What the settings in each unit end with."""


def _limit(**options: Any) -> Any:
    return setting(None, harmless=lower_only, **options)


@attrs.frozen(kw_only=True)
class BudgetSettings:
    """The most that agents may use: dollars, tokens of all kinds, and turns, which are requests to a model.

    *max_usd*, *max_tokens*, *max_turns*: a run, over all its processes. *phase_usd*, *phase_tokens*,
    *phase_turns*: one phase of it, and all together that it does outside of phases, such as the roadmap.
    *project_usd*, *project_tokens*, *project_turns*: all runs of the project.
    *day_usd*, *day_tokens*, *day_turns*: all runs of all your projects on this machine on one day, local
    time; a call counts on the day on which it ends. ``None`` means no limit. Rehearsals cost nothing: they do
    not count for projects and days. At most the turns in progress are overspent, when a limit is reached or
    gsd is killed, because what a turn uses is known only when it is over; with an agent that reports nothing
    before its call ends, that is the whole call.
    """

    max_usd: Decimal | None = _limit(flag="--max-budget-usd", help="stop before the run costs more than this")
    max_tokens: int | None = _limit(
        flag="--max-budget-tokens", help="stop before the run uses more tokens than this"
    )
    max_turns: int | None = _limit(
        flag="--max-budget-turns", help="stop before the run takes more requests to a model than this"
    )
    phase_usd: Decimal | None = _limit()
    phase_tokens: int | None = _limit()
    phase_turns: int | None = _limit()
    project_usd: Decimal | None = _limit()
    project_tokens: int | None = _limit()
    project_turns: int | None = _limit()
    day_usd: Decimal | None = _limit()
    day_tokens: int | None = _limit()
    day_turns: int | None = _limit()

    def __attrs_post_init__(self) -> None:
        """Refuse negative limits."""
        for field in attrs.fields(type(self)):
            if (limit := getattr(self, field.name)) is not None and limit < 0:
                raise ValueError(f"expected a number of at least 0, got {limit}")

    def limits(self) -> Iterator[tuple[Scope, Unit, Decimal | int]]:
        """Yield the limits that are set."""
        for scope, begin in SCOPES.items():
            for unit, end in UNITS.items():
                limit = getattr(self, f"{begin}_{end}")
                if limit is not None:
                    yield scope, unit, limit


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the budget."""
    yield BudgetSettings


@implements(gsd_check_budget)
async def check_budget(spend: Spend) -> Stop | Cap | None:
    """Stop if a budget is spent, or if what comes next could exceed it; else the call gets what is left."""
    left: dict[Unit, Decimal | int] = {}
    for scope, unit, limit in settings_of(BudgetSettings).limits():
        used = getattr(spend.used(scope), unit)
        coming, held = getattr(spend.coming, unit), getattr(spend.held, unit)
        left[unit] = min(left.get(unit, limit), limit - used - held)
        reason = f"{_text(used, unit)} of the {_text(limit, unit)}{_NOUN[unit]} budget{_FOR[scope]} is spent"
        if used < limit and used + held + coming <= limit:
            continue
        if used < limit:
            reason += f", and what comes next may {_VERB[unit]} {_text(held + coming, unit)}"
        if spend.unknown_calls and unit == "dollars":
            reason += f"; this does not include {counted(spend.unknown_calls, 'call')} of unknown cost"
        name = f"{SCOPES[scope]}_{UNITS[unit]}"
        how = f"--max-budget-{UNITS[unit]}" if scope == "run" else f"the setting budget.{name}"
        return Stop(reason=reason, hint=f"raise {how} and resume")
    if left and spend.unknown.issuperset(left):
        units = " or ".join(left)
        reason = f"the agent does not report how many {units} it uses, so a budget in {units} cannot be kept"
        return Stop(reason=reason, hint="limit its turns as well: gsd resume --max-budget-turns N")
    if not left:
        return None
    dollars, turns = left.get("dollars"), left.get("turns")
    return Cap(
        dollars=None if dollars is None else Decimal(dollars), turns=None if turns is None else int(turns)
    )


_NOUN: dict[Unit, str] = {"dollars": "", "tokens": "-token", "turns": "-turn"}
_VERB: dict[Unit, str] = {"dollars": "cost", "tokens": "use", "turns": "take"}
_FOR: dict[Scope, str] = {
    "run": "",
    "phase": " of the phase",
    "project": " of the project",
    "day": " of the day",
}


def _text(amount: Decimal | int, unit: Unit) -> str:
    return dollars_text(Decimal(amount)) if unit == "dollars" else f"{amount:,}"
