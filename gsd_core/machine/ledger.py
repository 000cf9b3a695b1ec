"""The ledger of a run: what its agent calls have used, and what those in progress may still use.

A call is reserved when ``agent.opened`` is recorded, grows with each turn that its agent reports, and is
settled by ``agent.closed``. All of it comes from facts, so a process that resumes the run counts alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias

import attrs

from gsd_core.model.ids import StepId
from gsd_core.model.usage import Amount, Scope, Spend, Unit, Usage

from .fold import Structure
from .state import Fact

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
    *structure* makes values of JSON data; it is the journal's codec.
    """

    structure: Structure
    calls: dict[CallId, Call] = attrs.field(factory=dict[CallId, Call])
    turn: Amount = Amount(turns=1)
    unknown: frozenset[Unit] = frozenset()
    unknown_calls: int = 0
    open_ids: dict[tuple[str, str, str], CallId] = attrs.field(
        factory=dict[tuple[str, str, str], CallId], init=False
    )

    def add(self, facts: Iterable[Fact]) -> Ledger:
        """Count what *facts* say about agent calls: begins, turns and ends; return the ledger."""
        for fact in facts:
            if fact.kind not in (*CALL_KINDS, "agent.activity"):
                continue
            data, id_ = fact.data, (fact.run, fact.seq, fact.at)
            place = fact.run, fact.step, str(data.get("key") or "")
            if fact.kind == "agent.opened":
                self.open_ids[place] = id_
                model, limit = str(data.get("model") or "") or UNKNOWN_MODEL, data.get("reserved")
                reserved = Decimal(limit) if limit else None
                call = Call(run=fact.run, at=fact.at, step=fact.step, key=place[2], model=model, is_open=True)
                self.calls[id_] = attrs.evolve(call, reserved=reserved)
                continue
            used: Usage = self.structure(data.get("usage") or {}, Usage)
            id_ = self.open_ids.get(place, id_)
            call = self.calls.get(id_) or Call(run=fact.run, at=fact.at, step=fact.step, key=place[2])
            if fact.kind == "agent.closed":
                self.open_ids.pop(place, None)
                model = str((data.get("value") or {}).get("model") or "") or call.model
                call = attrs.evolve(call, at=fact.at, usage=used, model=model, is_open=False)
                # One that failed before its first turn need not have cost anything.
                if used != Usage() or data.get("ended") not in ("failed", "lost"):
                    self.unknown_calls += used.basis == "unknown"
                    self._learn(used, used)
            elif call.is_open and used != Usage():
                call = attrs.evolve(call, at=fact.at, usage=call.usage + used)
                self._learn(call.usage, used)
            else:
                continue
            self.calls[id_] = call
        return self

    def _learn(self, so_far: Usage, turn: Usage) -> None:
        """Remember the dearest turn, and what *turn* does not say."""
        turns = max(so_far.turns, 1)
        dollars = (so_far.amount.dollars / turns).quantize(Decimal("0.0001"))
        tokens = max(self.turn.tokens, so_far.tokens // turns)
        self.turn = Amount(dollars=max(self.turn.dollars, dollars), tokens=tokens, turns=1)
        self.unknown |= {"dollars"} if turn.basis == "unknown" else set()
        self.unknown |= set() if turn.tokens else {"tokens"}

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
        return Ledger(self.structure, calls, self.turn, unknown_calls=self.unknown_calls)

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
