"""What agent calls use: the run's ledger with its reservations, and what other runs have used.

A call is reserved when ``agent.opened`` is recorded, grows with each turn that its agent reports, and is settled
by ``agent.closed``. Everything is derived from journals, so that a resumed run and other processes count
alike. A call belongs to the day of its last record, in the local time zone, as ``gsd cost --by day`` has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import attrs

from gsd_core.errors import JournalError
from gsd_core.journal.codec import structure
from gsd_core.journal.schema import Record
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.model.ids import StepId
from gsd_core.model.usage import Amount, Scope, Spend, Unit, Usage
from gsd_core.settings import is_rehearsal, journals_folder
from gsd_core.trust import KnownJournals

CALL_KINDS = ("agent.opened", "agent.closed")
CallId: TypeAlias = tuple[str, int, datetime]
"""A call's run, and the number and time of its first record: the same in a copy of its journal."""

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Call:
    """An agent call: what it has used so far, and its own limit (*reserved*), if it has one."""

    step: str
    key: str
    at: datetime
    used: Usage = Usage()
    reserved: Decimal | None = None
    is_open: bool = True

    @property
    def amount(self) -> Amount:
        """What counts against budgets: a call that has ended took a turn, even if its agent reports none."""
        used = self.used.amount
        return used if self.is_open else attrs.evolve(used, turns=max(used.turns, 1))


@attrs.define
class Ledger:
    """The agent calls of a run, or of a journal.

    *turn* is what a turn has used at most so far, on average over a call: what a call without a limit of its
    own may use before that is known the next time. *unknown* are the units that a call has not reported.
    """

    total: Usage = attrs.field(factory=Usage)
    calls: int = 0
    unknown_calls: int = 0
    turn: Amount = Amount(turns=1)
    unknown: frozenset[Unit] = frozenset()
    entries: dict[CallId, Call] = attrs.field(factory=dict[CallId, Call])
    _open: dict[tuple[str, str, str], CallId] = attrs.field(factory=dict[tuple[str, str, str], CallId])

    @property
    def open_calls(self) -> list[Call]:
        """The calls in progress."""
        return [self.entries[one] for one in self._open.values()]

    def add(self, fact: Record) -> None:
        """Count what *fact* says about an agent call, if anything: its begin, a turn, or its end."""
        key = str(fact.data.get("key"))
        place = fact.run, fact.step, key
        known = self._open.get(place)
        here = fact.run, fact.seq, fact.at
        if fact.kind == "agent.opened":
            reserved = fact.data.get("reserved")
            self._open[place] = known = here
            limit = Decimal(reserved) if reserved else None
            call = Call(step=fact.step, key=key, at=fact.at, reserved=limit)
        elif fact.kind == "agent.activity" and known and fact.data.get("usage"):
            turn: Usage = structure(fact.data["usage"], Usage)
            call = attrs.evolve(self.entries[known], at=fact.at, used=self.entries[known].used + turn)
            self._learn(call.used, turn)
        elif fact.kind == "agent.closed":
            self._open.pop(place, None)
            usage: Usage = structure(fact.data["usage"], Usage)
            call = Call(step=fact.step, key=key, at=fact.at, used=usage, is_open=False)
            self.calls += 1
            self.total += usage
            # One that failed before its first turn need not have cost anything.
            if usage != Usage() or fact.data.get("ended") not in ("failed", "lost"):
                self.unknown_calls += usage.basis == "unknown"
                self._learn(usage, usage)
        else:
            return
        self.entries[known or here] = call

    def _learn(self, used: Usage, turn: Usage) -> None:
        """Remember the dearest turn so far, and what *turn* does not say."""
        turns = max(used.turns, 1)
        dollars = (used.amount.dollars / turns).quantize(Decimal("0.0001"))
        self.turn = Amount(
            dollars=max(self.turn.dollars, dollars),
            tokens=max(self.turn.tokens, used.tokens // turns),
            turns=1,
        )
        silent: dict[Unit, bool] = {
            "dollars": turn.basis == "unknown" or turn.dollars is None,
            "tokens": not turn.tokens,
        }
        self.unknown |= {unit for unit, is_silent in silent.items() if is_silent}

    def used(self, *, phase: str | None = None) -> Amount:
        """Return what the calls have used, those in progress too; of a *phase* if it is named."""
        return _sum(one for one in self.entries.values() if phase in (None, StepId.parse(one.step).phase))

    def spend(
        self,
        run: str,
        step: str,
        *,
        key: str = "",
        limit: Decimal | None = None,
        used: Callable[[Scope], Amount] | None = None,
    ) -> Spend:
        """Return what budget policies need to know before a call that may cost *limit*, or after a turn.

        *key* is that of the call in progress whose turn ended. Another one that is not limited holds its next
        turn against a new call, but not against a turn: else calls that began together would all stop as soon
        as they have learnt what a turn costs.
        """
        own = self._open.get((run, step, key)) if key else None
        held, coming = (
            Amount(),
            attrs.evolve(self.turn, dollars=self.turn.dollars if limit is None else limit),
        )
        for one in self._open.values():
            call, rest = self.entries[one], self.turn
            if call.reserved is not None:
                rest = attrs.evolve(rest, dollars=max(call.reserved - call.amount.dollars, Decimal(0)))
            if one == own:
                coming = rest
            elif not key:
                held += rest
            elif call.reserved is not None:
                held += Amount(dollars=rest.dollars)
        spent = self.used().dollars
        return Spend(
            run=run,
            step=step,
            spent=spent,
            reserved=held.dollars + coming.dollars or None,
            calls=self.calls,
            unknown_calls=self.unknown_calls,
            used=used
            or (lambda scope: self.used(phase=StepId.parse(step).phase if scope == "phase" else None)),
            held=held,
            coming=coming,
            unknown=self.unknown,
        )


def _sum(calls: Iterable[Call]) -> Amount:
    return sum((call.amount for call in calls), Amount())


def read_ledger(records: Iterable[Record]) -> Ledger:
    """Return the ledger of a run that is resumed: none of its calls is open any more.

    What earlier processes did not report is history; only what this one does not report makes its budget
    impossible to keep.
    """
    ledger = Ledger()
    for record in records:
        ledger.add(record)
    for lost in ledger._open.values():
        del ledger.entries[lost]
    ledger._open.clear()
    ledger.unknown = frozenset()
    return ledger


def notes_of_open_calls(journal: Journal, facts: Iterable[Record]) -> tuple[Record, ...]:
    """Return the notes that say what the agent calls in *facts* have used which have not been closed.

    A run that is working has such calls, and so has one that was killed and not resumed.
    """
    opened: dict[tuple[str, str, str], int] = {}
    for fact in facts:
        place = fact.run, fact.step, str(fact.data.get("key"))
        if fact.kind == "agent.opened":
            opened[place] = fact.seq
        elif fact.kind == "agent.closed":
            opened.pop(place, None)
    if not opened:
        return ()
    notes = journal.events(after=min(opened.values()), kinds=["agent.activity"])
    return tuple(
        note
        for note in notes
        if note.data.get("usage")
        and note.seq > opened.get((note.run, note.step, str(note.data.get("key"))), note.seq)
    )


def ledger_of(journal: Journal, facts: Collection[Record]) -> Ledger:
    """Return the ledger of the calls in *facts*, with what those that are still open have used."""
    ledger = Ledger()
    for record in sorted((*facts, *notes_of_open_calls(journal, facts)), key=lambda one: one.seq):
        ledger.add(record)
    return ledger


@attrs.define(kw_only=True)
class Everywhere:
    """What all runs of the user have used, in the project of *journal* and elsewhere.

    *ledger* is that of this process's *run*; a *rehearsal* has no part in the others. Elsewhere are the
    projects whose journals the user's runs have written on this machine (``KnownJournals``). Their journals
    are read when a budget asks for them: other sessions may be at work there.
    """

    journal: Journal
    clock: Callable[[], datetime]
    run: str
    ledger: Ledger
    rehearsal: bool
    _earlier: Ledger | None = attrs.field(default=None, init=False)
    _others: dict[Path, tuple[int, Ledger]] = attrs.field(factory=dict[Path, tuple[int, Ledger]], init=False)

    def used(self, scope: Scope, step: str) -> Amount:
        """Return what was used in a *scope*, as seen from a *step* of the run."""
        if scope == "phase":
            return self.ledger.used(phase=StepId.parse(step).phase)
        if scope == "run" or self.rehearsal:
            return self.ledger.used()
        if self._earlier is None:
            # Nothing else writes to this journal while the run does.
            self._earlier = _paid(self.journal, without=self.run)
        entries = {**self._earlier.entries, **self.ledger.entries}
        if scope == "project":
            return _sum(entries.values())
        today = _day(self.clock())
        for path in KnownJournals(journals_folder()).paths():
            if path != self.journal.path.resolve():
                entries = {**self._read_other(path, today).entries, **entries}
        # Not only of the same day: a clock that was set back must not hide what was spent.
        return _sum(one for one in entries.values() if _day(one.at) >= today)

    def _read_other(self, path: Path, today: date) -> Ledger:
        # From the day before, because a call that ended today may have begun then.
        since = datetime.combine(today, time()).astimezone() - timedelta(days=1)
        try:
            with Journal.open(path, clock=self.clock, writable=False) as journal:
                seq, found = self._others.get(path, (0, Ledger()))
                if (last := journal.last_seq()) != seq:
                    found = _paid(journal, since=since)
                    self._others[path] = last, found
                return found
        except (JournalError, OSError) as error:
            # The budget of this run must not depend on the state of another project.
            log.warning("what was spent in the project of %s does not count: %s", path, error)
            return Ledger()


def _day(at: datetime) -> date:
    return at.astimezone().date()


def _paid(journal: Journal, *, without: str = "", since: datetime | None = None) -> Ledger:
    """Return the calls of all runs in *journal* but those of rehearsals, and those of the run *without*."""
    with damage_reported(journal.path):
        opened = journal.events(kinds=["run.opened"])
        free = {without, *(one.run for one in opened if is_rehearsal(one.data.get("agent") or ()))}
        facts = [fact for fact in journal.events(kinds=CALL_KINDS, since=since) if fact.run not in free]
        return ledger_of(journal, facts)
