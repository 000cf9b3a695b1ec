"""The ledger of a run under any interleaving of calls: nothing is lost, and reservations hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import attrs
from hypothesis import given
from hypothesis import strategies as st

from gsd_core import Cap, Stop, Usage, bind_settings
from gsd_core.codec import unstructure
from gsd_core.machine.facts import Record
from gsd_core.machine.ledger import Ledger
from gsd_core.model.usage import Amount
from gsd_plugins.budget import BudgetSettings, check_budget

CENT = Decimal("0.01")
RUN, STEP = "r-1", "1/execute/01-01"


@attrs.define
class Run:
    """Several calls at once, as the core does them: check and open, report a turn and check, close."""

    limits: BudgetSettings
    ledger: Ledger = attrs.field(factory=lambda: Ledger())
    facts: list[Record] = attrs.field(factory=list[Record])
    caps: dict[str, Cap] = attrs.field(factory=dict[str, Cap])
    spent: dict[str, Decimal] = attrs.field(factory=dict[str, Decimal])
    stopped: bool = False

    def fact(self, kind: str, **data: Any) -> None:
        at = datetime(2026, 1, 2, tzinfo=UTC)
        seq = len(self.facts) + 1
        fact = Record(seq=seq, run=RUN, epoch=1, at=at, kind=kind, v=1, step=STEP, attempt=1, data=data)
        self.facts.append(fact)
        self.ledger.add([fact])

    def decide(self, key: str = "", limit: Decimal | None = None) -> Cap | Stop | None:
        spend = self.ledger.spend(RUN, STEP, lambda s: self.ledger.used(s, STEP), key=key, limit=limit)
        with bind_settings({BudgetSettings: self.limits}):
            decision = asyncio.run(check_budget(spend))
        self.stopped |= isinstance(decision, Stop)
        assert isinstance(decision, Cap | Stop)
        return decision

    def open(self, key: str, limit: Decimal | None) -> None:
        decision = self.decide(limit=limit)
        if isinstance(decision, Cap):
            self.fact("agent.opened", key=key, reserved=str(limit) if limit else None)
            self.caps[key], self.spent[key] = decision, Decimal(0)

    def turn(self, key: str, cost: Decimal) -> None:
        usage = Usage(turns=1, output_tokens=int(cost * 1000), dollars=cost, basis="reported")
        self.fact("agent.activity", key=key, usage=unstructure(usage))
        self.spent[key] += cost
        self.decide(key=key)

    def close(self, key: str) -> None:
        usage = Usage(turns=1, dollars=self.spent[key], basis="reported")
        self.fact("agent.closed", key=key, ended="done", usage=unstructure(usage))
        del self.caps[key]

    @property
    def total(self) -> Decimal:
        return sum(self.spent.values(), Decimal(0))


costs = st.integers(1, 40).map(lambda cents: cents * CENT)
steps = st.sampled_from(["open", "turn", "turn", "close"])
moves = st.lists(st.tuples(steps, st.integers(0, 9), costs), max_size=60)
Script: TypeAlias = list[tuple[str, int, Decimal]]


def play(run: Run, script: Script, limit: Decimal | None) -> Iterator[Decimal]:
    """Do what *script* says as far as it is possible; yield the cost of each turn, after it."""
    for number, (move, choice, cost) in enumerate(script):
        if run.stopped:
            return
        keys = sorted(run.caps)
        if move == "open":
            run.open(f"call-{number}", limit)
        elif keys:
            key = keys[choice % len(keys)]
            left = limit - run.spent[key] if limit else cost
            if move == "turn" and min(cost, left) > 0:
                run.turn(key, min(cost, left))
                yield min(cost, left)
            elif move == "close":
                run.close(key)
        assert run.ledger.used().dollars == run.total


@given(moves)
def test_calls_that_keep_their_own_limits_never_exceed_the_budget(
    script: Script,
) -> None:
    run = Run(BudgetSettings(max_usd=Decimal(1)))

    for _ in play(run, script, limit=Decimal("0.30")):
        held = sum((Decimal("0.30") - run.spent[key] for key in run.caps), Decimal(0))
        assert run.total + held <= 1


@given(moves)
def test_a_budget_is_exceeded_by_less_than_the_turn_that_ends_the_run(
    script: Script,
) -> None:
    run = Run(BudgetSettings(max_usd=Decimal(1)))

    for cost in play(run, script, limit=None):
        assert run.total < 1 + cost
        assert run.stopped or run.total <= 1


@given(moves)
def test_a_ledger_that_is_read_again_is_the_same(script: Script) -> None:
    run = Run(BudgetSettings(max_usd=Decimal(5)))

    for _ in play(run, script, limit=None):
        assert Ledger().add(run.facts) == run.ledger

    for key in sorted(run.caps):
        run.close(key)
    resumed = Ledger().add(run.facts).resumed()
    assert (resumed.used(), resumed.turn, resumed.open_calls) == (run.ledger.used(), run.ledger.turn, [])
    assert resumed.spend(RUN, STEP, lambda _: Amount()).held == Amount()


def test_a_call_in_progress_holds_its_next_turn_against_a_new_call() -> None:
    run = Run(BudgetSettings(max_usd=Decimal("1.00")))
    run.open("one", None)
    run.turn("one", Decimal("0.40"))

    # 0.40 are spent, and each of the two may need as much again.
    assert isinstance(run.decide(), Stop)


def test_what_a_lost_call_used_counts_once_it_is_recorded() -> None:
    run = Run(BudgetSettings(max_usd=Decimal(1)))
    run.open("one", None)
    run.turn("one", Decimal("0.40"))
    resumed = Ledger().add(run.facts).resumed()
    assert resumed.used() == Amount()

    run.fact(
        "agent.closed", key="one", ended="lost", usage=unstructure(Usage(turns=1, dollars=Decimal("0.40")))
    )

    assert resumed.add(run.facts[-1:]).used().dollars == Decimal("0.40")
