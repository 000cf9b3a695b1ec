"""What all runs of the user have used: of a project in any run, and everywhere on one day.

A call counts on the day of its last fact, in the local time zone, as ``gsd cost --by day`` shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import date, datetime, time, timedelta
from pathlib import Path

import attrs

from gsd_core.errors import JournalError
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import Record, RunOpened
from gsd_core.machine.ledger import CALL_KINDS, Ledger, total_of
from gsd_core.model.usage import Amount, Scope
from gsd_core.settings import is_rehearsal, journals_folder
from gsd_core.trust import KnownJournals

log = logging.getLogger(__name__)


def with_turns(journal: Journal, facts: Collection[Record]) -> list[Record]:
    """Return *facts* with the turns of the agent calls that they leave open, which are not facts.

    A run that is at work has such calls, and so has one that was killed and not resumed.
    """
    opened = [seq for _, seq, _ in Ledger().add(facts).open_ids.values()]
    notes = journal.events(after=min(opened), kinds=["agent.activity"]) if opened else ()
    turns = (note for note in notes if note.data.get("usage"))
    return sorted((*facts, *turns), key=lambda record: record.seq)


@attrs.define(kw_only=True)
class Everywhere:
    """What was used in a scope, by all runs of the user that count.

    *ledger* is that of this process's *run* in *journal*; a *rehearsal* has no part in the others. For a day,
    the projects count whose journals the user's runs have written on this machine (``KnownJournals``), read
    when a budget asks for it: other sessions may be at work there.
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
        if scope in ("run", "phase") or self.rehearsal:
            return self.ledger.used(scope, step)
        if self._earlier is None:
            # Nothing else writes to this journal while the run does.
            self._earlier = paid_calls(self.journal, without=self.run)
        calls = {**self._earlier.calls, **self.ledger.calls}
        if scope == "project":
            return total_of(calls.values())
        today = _day(self.clock())
        for path in KnownJournals(journals_folder()).paths() - {self.journal.path.resolve()}:
            calls = {**self._read_other(path, today).calls, **calls}
        # Not only of the same day: a clock that was set back must not hide what was spent.
        return total_of(call for call in calls.values() if _day(call.at) >= today)

    def _read_other(self, path: Path, today: date) -> Ledger:
        # From the day before, because a call that ended today may have begun then.
        since = datetime.combine(today, time()).astimezone() - timedelta(days=1)
        try:
            with Journal.open(path, clock=self.clock, writable=False) as journal:
                seq, found = self._others.get(path, (0, Ledger()))
                if (last := journal.last_seq()) != seq:
                    found = paid_calls(journal, since=since)
                    self._others[path] = last, found
                return found
        except (JournalError, OSError) as error:
            # The budget of this run must not depend on the state of another project.
            log.warning("what was spent in the project of %s does not count: %s", path, error)
            return Ledger()


def _day(at: datetime) -> date:
    return at.astimezone().date()


def paid_calls(journal: Journal, *, without: str = "", since: datetime | None = None) -> Ledger:
    """Return the calls of all runs in *journal* but those of rehearsals, and those of the run *without*."""
    with damage_reported(journal.path):
        free = {without, *(one.run for one in journal.facts(RunOpened) if is_rehearsal(one.data.agent))}
        facts = [fact for fact in journal.events(kinds=CALL_KINDS, since=since) if fact.run not in free]
        return Ledger().add(with_turns(journal, facts))
