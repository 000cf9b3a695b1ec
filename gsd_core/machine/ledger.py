"""The ledger of a run: what its agent calls have used, and what those in progress may still use.

A call is reserved when ``agent.opened`` is recorded, grows with each turn that its agent reports, and is
settled by ``agent.closed``. All of it comes from facts, so a process that resumes the run counts alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias, cast

import attrs

from gsd_core.machine.facts import AgentActivity, AgentClosed, AgentOpened, Record, typed
from gsd_core.model.ids import StepId
from gsd_core.model.usage import Amount, Scope, Spend, Unit, Usage

CallId: TypeAlias = tuple[str, int, datetime]
"""A call's run, and the number and time of its first fact: the same in a copy of its journal."""

CALL_KINDS = ("agent.opened", "agent.closed")
UNKNOWN_MODEL = "unknown model"


@attrs.frozen(kw_only=True)
class Call:
    """An agent call.

    *model* is its full name if the agent reported it, else the one asked for. *at* is the time of its last
    fact, *usage* what it has used so far, *reserved* its own limit, if it has one.
    """

    run: str
    at: datetime
    step: str
    key: str = ""
    model: str = UNKNOWN_MODEL
    usage: Usage = Usage()
    reserved: Decimal | None = None
    is_open: bool = False

    @property
    def amount(self) -> Amount:
        """What counts against budgets: a call that has ended took a turn, even if its agent reports none."""
        used = self.usage.amount
        return used if self.is_open else attrs.evolve(used, turns=max(used.turns, 1))


@attrs.define
class Ledger:
    """The agent calls of a run, or of a journal, oldest first.

    *turn* is what a turn has used at most so far, on average over a call: what a call without a limit of its
    own may use before that is known the next time. *unknown* are the units that a call has not reported.
    """

    calls: dict[CallId, Call] = attrs.field(factory=dict[CallId, Call])
    turn: Amount = Amount(turns=1)
    unknown: frozenset[Unit] = frozenset()
    unknown_calls: int = 0
    open_ids: dict[tuple[str, str, str], CallId] = attrs.field(
        factory=dict[tuple[str, str, str], CallId], init=False
    )

    def add(self, facts: Iterable[Record]) -> Ledger:
        """Count what *facts* say about agent calls: begins, turns and ends; return the ledger."""
        for fact in typed(facts, AgentOpened, AgentActivity, AgentClosed):
            data: AgentOpened | AgentActivity | AgentClosed = cast("Any", fact.data)
            place = fact.run, fact.step, data.key
            id_ = self.open_ids.get(place, (fact.run, fact.seq, fact.at))
            call = self.calls.get(id_) or Call(run=fact.run, at=fact.at, step=fact.step, key=data.key)
            match data:
                case AgentOpened(model=model, reserved=reserved):
                    id_ = self.open_ids[place] = fact.run, fact.seq, fact.at
                    call = Call(run=fact.run, at=fact.at, step=fact.step, key=data.key, is_open=True)
                    call = attrs.evolve(call, model=model or UNKNOWN_MODEL, reserved=reserved or None)
                case AgentClosed(usage=used, value=value, ended=ended):
                    self.open_ids.pop(place, None)
                    model = str((value or {}).get("model") or "") or call.model
                    call = attrs.evolve(call, at=fact.at, usage=used, model=model, is_open=False)
                    # One that failed before its first turn need not have cost anything.
                    if used != Usage() or ended not in ("failed", "lost"):
                        self.unknown_calls += used.basis == "unknown" or used.dollars is None
                        self._learn(used, used)
                case AgentActivity(usage=Usage() as used) if call.is_open and used != Usage():
                    call = attrs.evolve(call, at=fact.at, usage=call.usage + used)
                    self._learn(call.usage, used)
                case _:
                    continue
            self.calls[id_] = call
        return self

    def _learn(self, so_far: Usage, turn: Usage) -> None:
        """Remember the dearest turn, and what *turn* does not say."""
        turns = max(so_far.turns, 1)
        dollars = (so_far.amount.dollars / turns).quantize(Decimal("0.0001"))
        tokens = max(self.turn.tokens, so_far.tokens // turns)
        self.turn = Amount(dollars=max(self.turn.dollars, dollars), tokens=tokens, turns=1)
        silent: dict[Unit, bool] = {
            "dollars": turn.basis == "unknown" or turn.dollars is None,
            "tokens": not turn.tokens,
        }
        self.unknown = self.unknown.union(unit for unit, is_silent in silent.items() if is_silent)

    @property
    def open_calls(self) -> list[Call]:
        """The calls in progress."""
        return [self.calls[id_] for id_ in self.open_ids.values()]

    def resumed(self) -> Ledger:
        """Return the ledger for another process of the run, in which none of the calls is open any more.

        What earlier processes did not report is history: only what this one does not report makes its budget
        impossible to keep. A call that was lost counts as soon as the run has recorded what it used.
        """
        calls = {id_: call for id_, call in self.calls.items() if not call.is_open}
        return Ledger(calls, self.turn, unknown_calls=self.unknown_calls)

    def used(self, scope: Scope = "run", step: str = "") -> Amount:
        """Return what the calls have used, those in progress too; for ``phase``, in the phase of *step*."""
        calls = self.calls.values()
        if scope == "phase":
            phase = StepId.parse(step).phase
            return total_of(call for call in calls if StepId.parse(call.step).phase == phase)
        return total_of(calls)

    def spend(
        self,
        run: str,
        step: str,
        used: Callable[[Scope], Amount],
        *,
        key: str = "",
        limit: Decimal | None = None,
    ) -> Spend:
        """Return what budget policies need to know before a call that may cost *limit*, or after a turn.

        *key* is that of the call whose turn ended. Another one without a limit holds its next turn against a
        new call, but not against a turn: else calls that began together would all stop as soon as they learn
        what a turn costs.
        """
        own = self.open_ids.get((run, step, key)) if key else None
        held = Amount()
        for id_ in self.open_ids.values():
            call = self.calls[id_]
            rest = None if call.reserved is None else max(call.reserved - call.amount.dollars, Decimal(0))
            if id_ == own:
                limit = rest
            else:
                held += Amount(dollars=rest or Decimal(0)) if key else self._next_turn(rest)
        coming = self._next_turn(limit)
        return Spend(
            run=run,
            step=step,
            spent=self.used().dollars,
            reserved=held.dollars + coming.dollars or None,
            calls=len(self.calls) - len(self.open_ids),
            unknown_calls=self.unknown_calls,
            used=used,
            held=held,
            coming=coming,
            unknown=self.unknown,
        )

    def _next_turn(self, limit: Decimal | None) -> Amount:
        return self.turn if limit is None else attrs.evolve(self.turn, dollars=limit)


def total_of(calls: Iterable[Call]) -> Amount:
    """Return what *calls* count against budgets."""
    return sum((call.amount for call in calls), Amount())
