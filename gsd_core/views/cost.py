"""What a run's agent calls cost, in total and grouped, as values and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.machine.facts import Record
from gsd_core.machine.history import phase_of
from gsd_core.machine.ledger import Call, Ledger
from gsd_core.model.ids import phase_order
from gsd_core.model.usage import Usage
from gsd_core.serializer import SCHEMA_VERSION, Serializer

from .amounts import counted

Grouping: TypeAlias = Literal["phase", "step", "model", "day"]

NO_PHASE = "no phase"


@attrs.frozen(kw_only=True)
class Costs:
    """The sum of several calls; *unknown* is how many of them have an unknown cost, *estimated* how many
    were priced by the core from their tokens.
    """

    usage: Usage = attrs.field(factory=Usage)
    calls: int = 0
    unknown: int = 0
    estimated: int = 0

    def __add__(self, more: Costs) -> Costs:
        return Costs(
            usage=self.usage + more.usage,
            calls=self.calls + more.calls,
            unknown=self.unknown + more.unknown,
            estimated=self.estimated + more.estimated,
        )


def calls_of(facts: Iterable[Record]) -> tuple[Call, ...]:
    """Return the agent calls in *facts*, oldest first; one in progress with what it has used so far."""
    return tuple(Ledger().add(facts).calls.values())


def sum_of(calls: Iterable[Call]) -> Costs:
    """Return the sum of *calls*; its dollars are those of the calls whose cost is known."""
    usage, count, unknown, estimated = Usage(), 0, 0, 0
    for call in calls:
        count += 1
        usage += call.usage
        unknown += call.usage.dollars is None and not call.is_open
        estimated += call.usage.dollars is not None and call.usage.basis == "priced"
    return Costs(usage=usage, calls=count, unknown=unknown, estimated=estimated)


def remarks(costs: Costs) -> Iterator[str]:
    """Yield what the dollars of *costs* do not say: what is estimated, and what is not included."""
    if costs.estimated and costs.usage.dollars:
        yield f"{counted(costs.estimated, 'call')} estimated from tokens and list prices"
    if costs.unknown:
        yield f"{counted(costs.unknown, 'call')} of unknown cost not included in the dollars"


def grouped(calls: Sequence[Call], by: Grouping) -> tuple[tuple[str, Costs], ...]:
    """Return the sums by phase, step, model or local day: phases in order, models by cost, others by time."""
    groups: dict[str, list[Call]] = {}
    for call in calls:
        groups.setdefault(_group(call, by), []).append(call)
    rows = [(name, sum_of(group)) for name, group in groups.items()]
    if by == "phase":
        rows.sort(key=lambda row: (row[0] != NO_PHASE, phase_order(row[0])))
    elif by == "model":
        rows.sort(key=lambda row: (-(row[1].usage.dollars or Decimal(0)), -row[1].usage.tokens, row[0]))
    return tuple(rows)


def _group(call: Call, by: Grouping) -> str:
    match by:
        case "phase":
            return phase_of(call.step) or NO_PHASE
        case "step":
            return call.step or "no step"
        case "model":
            return call.model
        case "day":
            return f"{call.at.astimezone():%Y-%m-%d}"


COSTS = Serializer(
    Costs,
    "dollars=usage.dollars calls calls_of_unknown_cost=unknown estimated_calls=estimated turns=usage.turns "
    "tokens=usage",
    tokens=Serializer(
        Usage,
        "total=tokens input=input_tokens output=output_tokens cache_read=cache_read_tokens "
        "cache_write=cache_write_tokens",
    ),
)
"""``dollars`` is text, or null if the cost of no call is known."""


def left_of(budget: Decimal, calls: Sequence[Call], runs: Sequence[str]) -> Decimal | None:
    """Return what is left of the *budget* of the last run; ``None`` if the cost of one of its calls is."""
    costs = sum_of(call for call in calls if call.run in runs[-1:])
    return None if costs.unknown else max(budget - (costs.usage.dollars or Decimal(0)), Decimal(0))


def report_json(
    runs: Sequence[str], calls: Sequence[Call], by: Grouping, *, budget: Decimal | None
) -> dict[str, Any]:
    """Return the costs of *runs* as JSON data; *budget* is that of the last of them."""
    left = None if budget is None else left_of(budget, calls, runs)
    about = {"dollars": str(budget), "left": None if left is None else str(left)}
    return {
        "schema_version": SCHEMA_VERSION,
        "runs": list(runs),
        "total": COSTS.dump(sum_of(calls)),
        "budget": None if budget is None else about,
        "by": by,
        "groups": [{by: name, **COSTS.dump(costs)} for name, costs in grouped(calls, by)],
    }
