"""What a run has spent: recorded from the journal's facts, call by call."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from attrs import define, field

from gsd_core.journal.codec import structure
from gsd_core.journal.record import Record
from gsd_core.usage import Spend, Usage


@define
class Ledger:
    """Sums of the run's closed agent calls; a reservation stands for a call that is under way."""

    total: Usage = field(factory=Usage)
    calls: int = 0
    unknown_calls: int = 0
    reserved: dict[str, Decimal] = field(factory=dict[str, Decimal])

    def add(self, fact: Record) -> None:
        """Take a fact into account."""
        if fact.kind == "agent.opened" and fact.data.get("reserved"):
            self.reserved[_call(fact)] = Decimal(fact.data["reserved"])
        if fact.kind == "agent.closed":
            self.reserved.pop(_call(fact), None)
            usage = structure(fact.data["usage"], Usage)
            self.calls += 1
            self.unknown_calls += usage.basis == "unknown" and usage != Usage()
            self.total = self.total + usage

    def spend(self, run: str, step: str, reserve: Decimal | None, running: Usage) -> Spend:
        """Return what a budget policy has to know: before the next call, or of the one that is *running*."""
        held = sum(self.reserved.values(), reserve or Decimal(0))
        spent = (self.total + running).dollars or Decimal(0)
        return Spend(
            run=run, step=step, spent=spent, reserved=held or None,
            calls=self.calls, unknown_calls=self.unknown_calls,
        )  # fmt: skip


def _call(fact: Record) -> str:
    return f"{fact.step} {fact.data['key']}"


def read_ledger(records: Iterable[Record]) -> Ledger:
    """Return the ledger of a run's facts."""
    ledger = Ledger()
    for record in records:
        ledger.add(record)
    ledger.reserved.clear()
    return ledger
