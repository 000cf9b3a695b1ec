"""Reservations hold under any interleaving of workers, retries, kills and resumes."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gsd_core import Cap, Stop, Usage, bind_settings
from gsd_core.codec import unstructure
from gsd_core.machine.facts import Record
from gsd_core.machine.ledger import Ledger
from gsd_core.model.usage import Amount
from gsd_plugins.budget import BudgetSettings, check_budget

CENT = Decimal("0.01")
BUDGET = Decimal(1)
RUN, KEY = "r-1", "execute"
WORKERS = tuple(f"1/execute/01-0{number}" for number in range(1, 5))
numbers = st.integers(0, 3)
costs = st.sampled_from([1, 10, 25, 40, 60]).map(lambda cents: cents * CENT)


def result_of(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


@attrs.define
class Call:
    """A call in progress: its own limit, what the agent was told to use at most, and its turns."""

    limit: Decimal | None
    cap: Decimal
    turns: list[Decimal] = attrs.field(factory=list[Decimal])

    @property
    def spent(self) -> Decimal:
        return sum(self.turns, Decimal(0))


class Spending(RuleBasedStateMachine):
    """A run with several workers, as the core does it.

    A worker's call is checked against the budget, then opened; only one does that at a time, but turns of
    others come in between. After each turn comes a check, and when one says stop, each worker may be in its
    next turn. *paid* is what was spent and reported, *excess* what may be over the budget.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ledger, self.facts = Ledger(), list[Record]()
        self.calls: dict[str, Call] = {}
        self.opening: tuple[str, Call] | None = None
        self.paid, self.stopped = Decimal(0), False
        self.excess = Decimal(0)
        self.limited = False

    @initialize(limited=st.booleans())
    def begin(self, limited: bool) -> None:
        self.limited = limited

    def fact(self, kind: str, step: str, **data: Any) -> None:
        at, seq = datetime(2026, 1, 2, tzinfo=UTC), len(self.facts) + 1
        fact = Record(
            seq=seq, run=RUN, epoch=1, at=at, kind=kind, v=1, step=step, attempt=1, data={"key": KEY, **data}
        )
        self.facts.append(fact)
        self.ledger.add([fact])

    def check(self, step: str, *, key: str = "", limit: Decimal | None = None) -> Cap | Stop:
        spend = self.ledger.spend(RUN, step, lambda s: self.ledger.used(s, step), key=key, limit=limit)
        with bind_settings({BudgetSettings: BudgetSettings(max_usd=BUDGET)}):
            decision = result_of(check_budget(spend))
        assert isinstance(decision, Cap | Stop)
        return decision

    @precondition(lambda self: not (self.opening or self.stopped) and len(self.calls) < len(WORKERS))
    @rule(limit=costs)
    def ask_for_a_call(self, limit: Decimal) -> None:
        step = next(step for step in WORKERS if step not in self.calls)
        own = limit if self.limited else None
        match self.check(step, limit=own):
            case Cap(dollars=cap):
                assert cap is not None
                assert cap > 0
                self.opening = step, Call(own, min(cap, own or cap))
            case Stop():
                self.stopped = True

    @precondition(lambda self: self.opening)
    @rule()
    def open_it(self) -> None:
        assert self.opening
        step, call = self.opening
        self.calls[step], self.opening = call, None
        self.fact("agent.opened", step, reserved=str(call.limit) if call.limit else None)

    @precondition(lambda self: self.calls and not self.stopped)
    @rule(worker=numbers, cost=costs)
    def take_a_turn(self, worker: int, cost: Decimal) -> None:
        step = sorted(self.calls)[worker % len(self.calls)]
        call = self.calls[step]
        self._pay(step, call, cost)
        if isinstance(self.check(step, key=KEY), Stop):
            self.stopped, self.excess = True, max(self.excess, cost)
        if call.spent >= call.cap:
            # The agent ends a call that has reached its limit, and the run with it if that is the budget's.
            self.stopped |= call.cap != call.limit
            self._close(step, "dollars")

    def _pay(self, step: str, call: Call, cost: Decimal) -> None:
        if self.limited:
            # An agent that keeps its limit to the cent: what is reserved has to be enough.
            cost = min(cost, call.cap - call.spent)
        if cost > 0:
            call.turns.append(cost)
            self.paid += cost
            usage = Usage(turns=1, dollars=cost, basis="reported")
            self.fact("agent.activity", step, usage=unstructure(usage))

    def _close(self, step: str, ended: str) -> None:
        call = self.calls.pop(step)
        usage = Usage(turns=len(call.turns), dollars=call.spent, basis="reported")
        self.fact("agent.closed", step, ended=ended, usage=unstructure(usage))

    @precondition(lambda self: self.calls and not self.stopped)
    @rule(worker=numbers, ended=st.sampled_from(["done", "failed", "lost"]))
    def end_a_call(self, worker: int, ended: str) -> None:
        """The worker may begin again under the same key: a retry, or the next exchange."""
        self._close(sorted(self.calls)[worker % len(self.calls)], ended)

    @precondition(lambda self: self.stopped)
    @rule(last=st.fixed_dictionaries(dict.fromkeys(WORKERS, costs)))
    def stop_and_resume(self, last: dict[str, Decimal]) -> None:
        """What was in progress when the run stopped costs at most a turn each."""
        for step, call in sorted(self.calls.items()):
            self.excess += last[step]
            self._pay(step, call, last[step])
            self._close(step, "lost")
        self._resume()

    @rule(unwritten=st.booleans())
    def kill_and_resume(self, unwritten: bool) -> None:
        """The turns of the last moment may not be in the journal yet."""
        while unwritten and self.facts and self.facts[-1].kind == "agent.activity":
            fact = self.facts.pop()
            self.paid -= Decimal(fact.data["usage"]["dollars"])
        self._resume()

    def _resume(self) -> None:
        """Begin as a new process does: lost attempts are settled before anything is started."""
        self.ledger = Ledger().add(self.facts).resumed()
        assert self.ledger.open_calls == []
        for call in Ledger().add(self.facts).open_calls:
            self.fact("agent.closed", call.step, ended="lost", usage=unstructure(call.usage))
        self.calls.clear()
        self.opening, self.stopped = None, False
        assert self.ledger.spend(RUN, "", lambda _: Amount()).held == Amount()

    @invariant()
    def what_is_paid_is_counted_once(self) -> None:
        assert self.ledger.used().dollars == self.paid
        assert {call.step for call in self.ledger.open_calls} == set(self.calls)

    @invariant()
    def the_budget_holds(self) -> None:
        if self.limited:
            rest = sum((call.cap - call.spent for call in self.calls.values()), Decimal(0))
            assert self.paid + rest <= BUDGET
        else:
            assert self.paid <= BUDGET + self.excess


Spending.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSpending = Spending.TestCase
