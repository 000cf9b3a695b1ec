"""One project as another process sees it: what its runs did and wait for, and how to answer and stop them.

For programs that watch runs or steer them: a dashboard, an MCP server, a bot. A run needs none of them and
does not know of them: everything here is read from the journal, or put into its inbox.

The functions block, for as long as a disk takes; call them in a thread from async code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gsd_core.codec import unstructure
from gsd_core.errors import Conflict, JournalError, NotFound, UserError
from gsd_core.git import data_directory
from gsd_core.journal.inbox import answers_in, put
from gsd_core.journal.lock import Owner, owner
from gsd_core.journal.schema import ACTIVITY
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import AgentClosed, Record, typed
from gsd_core.machine.fold import fold
from gsd_core.machine.history import History, fold_history
from gsd_core.machine.state import State
from gsd_core.model.event import Event
from gsd_core.model.question import Answer, parse_typed_answer
from gsd_core.processes import refuse_agents
from gsd_core.run.publishing import events_of, redacted
from gsd_core.run.spending import with_turns
from gsd_core.sanitize import redact_data
from gsd_core.views.log import parse_since as parse_since
from gsd_core.views.status import find_question, status_json, status_of

if TYPE_CHECKING:
    from gsd_core.project_details import ProjectDetails as ProjectDetails

JOURNAL = "journal.db"


class Project:
    """The project in the folder *root*. Reading it changes nothing; a project without a run is empty."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._directory: Path | None = None
        self._journal: Journal | None = None
        self._inode: int = 0
        self._seq = 0
        self._state = State()
        self._history = History()
        self._spent: dict[date, Decimal] = {}
        self._pending: Mapping[str, str] = {}

    def close(self) -> None:
        """Close the journal."""
        if self._journal:
            self._journal.close()
            self._journal = None

    def poll(self, *, backlog: int | None = None, seconds: float | None = None) -> Sequence[Event]:
        """Return what has happened since the last call, as ``gsd_on_event`` gets it; first, everything.

        With *backlog*, the first call returns the events of at most so many records, the newest; those before
        only count for the status. A journal may have 100,000, and who begins to follow it needs few.

        After about so many *seconds*, the rest is left for the next call: who follows several projects must
        not wait for one whose owner has filled its journal.

        Secrets are redacted. Texts of agents and repositories are as they wrote them: whoever shows them
        sanitizes them for what it shows them in (``safe_text`` for a terminal).

        Raise ``JournalError`` if the journal is damaged, after what is before the damage was returned.
        """
        journal = self._open()
        if journal is None:
            return ()
        found: list[Event] = []
        latest = time.monotonic() + (math.inf if seconds is None else seconds)
        try:
            with damage_reported(journal.path):
                # Before the events: an answer that a run takes now is in one of the two.
                self._pending = self._pending_answers()
                if backlog is not None and not self._seq and (begin := journal.last_seq() - backlog) > 0:
                    self._fold_until(journal, begin)
                for record in journal.events(after=self._seq):
                    state, history = self._folded(record)
                    events = [redacted(event) for event in events_of(state, record)]
                    # Together, so that a record that cannot be read is not counted as read.
                    self._state, self._history, self._seq = state, history, record.seq
                    self._spend(record)
                    found += events
                    if time.monotonic() > latest:
                        break
        except JournalError:
            # The next call begins at the damaged record.
            if not found:
                raise
        return found

    def status(self) -> dict[str, Any]:
        """Return the project's status as ``gsd status --json`` does, as of the last :meth:`poll`.

        Besides, ``dollars_today`` is what all runs of the project have cost on this day, as a text; like the
        cost, it includes the calls in progress.
        """
        # Without those of the last poll, a question whose answer a run has just taken would be open again.
        pending = {**self._pending, **self._pending_answers()}
        with damage_reported(self._path()):
            status = status_of(self._state, self._history, self.holder(), pending)
            data: dict[str, Any] = redact_data(status_json(status))
        spent = self._spent.get(datetime.now().astimezone().date(), Decimal(0))
        spent += sum(used.dollars or 0 for used in self._history.running.values())
        return {**data, "dollars_today": str(spent)}

    def holder(self) -> Owner | None:
        """Return the process that runs in the project now, if any."""
        folder = self._folder()
        return owner(folder) if folder else None

    def details(self) -> ProjectDetails:
        """Return what a page about the project shows: phases, plans, evidence, commits, events, costs."""
        from gsd_core.project_details import ProjectDetails

        return ProjectDetails(self.root)

    def answer(self, question: str, words: str, *, by: str) -> Answer:
        """Answer an open question as a person typed it: numbers, labels, or own words.

        The answer is on disk when this returns; a run takes it at once, or the next one does. An answer
        that no run has taken yet is replaced. Raise ``NotFound`` if there is no such question, ``Conflict``
        if it is answered already (the message says by whom) or no longer open, and ``UserError`` if the
        words are no valid answer.
        """
        self._refuse_agents("answer a question")
        found = find_question(self._state, question)
        if found is None:
            raise NotFound(f"no question {question!r} in this project")
        record, asked = found
        if given := record.answers.get(question):
            raise Conflict(f"{question} is already answered: {given.words} (by {given.who})")
        if record.withdrawn:
            raise Conflict(f"{question} is no longer open")
        try:
            answer = attrs.evolve(parse_typed_answer(asked, words), by=by)
        except UserError as error:
            raise UserError(f"invalid answer to {asked.id}: {error}", hint=error.hint) from error
        put(self._path(), "answer", unstructure(answer), by=by)
        return answer

    def stop(self, *, by: str, after_step: bool = False) -> bool:
        """Ask the active run to stop, now or after its current step, and return whether there is one."""
        self._refuse_agents("stop a run")
        holder = self.holder()
        if holder is None:
            return False
        key = f"{'pause' if after_step else 'stop'} {holder.pid} {holder.host} {holder.since}"
        put(self._path(), "stop", {"after": "step"} if after_step else {}, by=by, key=key)
        return True

    def _refuse_agents(self, what: str) -> None:
        holder = self.holder()
        refuse_agents(what, run_pid=holder.pid if holder else None)

    def _fold_until(self, journal: Journal, last: int) -> None:
        """Take the facts up to number *last* into account."""
        facts = [one for one in journal.events(after=self._seq, facts_only=True) if one.seq <= last]
        for record in with_turns(journal, facts):
            if record.seq > last:
                break
            self._state, self._history = self._folded(record)
            self._seq = record.seq
            self._spend(record)
        self._seq = last

    def _folded(self, record: Record) -> tuple[State, History]:
        state, history = self._state, self._history
        if record.kind == "run.started":
            state, history = State(), History()
        if record.kind not in ACTIVITY:
            state = fold(state, [record])
        return state, fold_history(history, [record])

    def _spend(self, record: Record) -> None:
        for fact in typed([record], AgentClosed):
            day = fact.at.astimezone().date()
            self._spent[day] = self._spent.get(day, Decimal(0)) + (fact.data.usage.dollars or 0)

    def _pending_answers(self) -> Mapping[str, str]:
        return answers_in(self._journal.take_inbox()) if self._journal else {}

    def _open(self) -> Journal | None:
        """Return the journal, opened again if the file was moved away and made anew."""
        folder = self._folder()
        if folder is None:
            return None
        path = folder / JOURNAL
        try:
            inode: int = path.stat().st_ino
        except FileNotFoundError:
            self.close()
            return None
        if self._journal is None or inode != self._inode:
            self.close()
            self._journal = Journal.open(path, clock=lambda: datetime.now(UTC), writable=False)
            self._inode, self._seq = inode, 0
            self._state, self._history, self._spent = State(), History(), {}
        return self._journal

    def _path(self) -> Path:
        return (self._folder() or self.root / ".git" / "gsd") / JOURNAL

    def _folder(self) -> Path | None:
        """Return the folder of the journal; asking git takes many times as long as everything else here."""
        if self._directory is None or not self._directory.is_dir():
            self._directory = data_directory(self.root) if self.root.is_dir() else None
        return self._directory


def output_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of what ``gsd NAME --json`` prints; ``gsd schema`` lists the names."""
    from gsd_core.views.schemas import schema_of

    return schema_of(name)


def detail_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a part of :class:`ProjectDetails`, such as a ``phase`` or a ``commit``."""
    from gsd_core.views.schemas import DETAILS

    return DETAILS[name]
