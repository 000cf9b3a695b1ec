"""The project's last run, derived from its facts; the journal keeps that, so that few are read again."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import attrs

import gsd_core.machine
from gsd_core.codec import structure, unstructure
from gsd_core.errors import JournalError
from gsd_core.journal.schema import to_json
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import PluginFailed
from gsd_core.machine.fold import fold
from gsd_core.machine.history import History, call_id, fold_history
from gsd_core.machine.state import State
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals

KEEP_AFTER = 500
"""After how many facts a run keeps what they add up to; to read so many takes some 50 ms."""
AT_ONCE = 1000


@attrs.frozen(kw_only=True)
class LastRun:
    """The state and the history of the project's last run; empty if nothing has run yet.

    *seq* was the journal's newest record then; if it still is, nothing has to be read again. *unkept* is how
    many facts came after what the journal keeps.
    """

    state: State = attrs.field(factory=State)
    history: History = attrs.field(factory=History)
    seq: int = 0
    unkept: int = 0

    @property
    def id(self) -> str:
        """The run's id; empty if nothing has run yet."""
        return self.state.run


def read_last_run(journal: Journal, root: Path | None = None) -> LastRun:
    """Read the facts of the run that was started last, and what its calls in progress have reported.

    If the user's own runs have written the journal of the project at *root*, what it keeps is believed, and
    only later facts are read; without *root*, all of them.
    """
    # First the number, then the facts: a fact that is written in between is read again instead of missed.
    seq = journal.last_seq()
    last = (kept_run(journal, root) if root else None) or LastRun()
    started = [record.run for record in journal.events(last.seq, kinds=["run.started"])]
    last = LastRun() if started else last
    state, history, unkept = last.state, last.history, last.unkept
    # Since when the notes of each call in progress count.
    opened = dict.fromkeys(history.running, last.seq)
    run = started[-1] if started else last.id
    records = journal.events(last.seq, run=run, facts_only=True)
    with damage_reported(journal.path):
        while batch := list(islice(records, AT_ONCE)):
            state, history, unkept = fold(state, batch), fold_history(history, batch), unkept + len(batch)
            for record in batch:
                if record.kind == "agent.opened":
                    opened.setdefault(call_id(record.step, record.data.get("key", "")), record.seq)
                elif record.kind == "agent.closed":
                    opened.pop(call_id(record.step, record.data.get("key", "")), None)
        if opened:
            for note in journal.events(min(opened.values()), run=run, kinds=["agent.activity"]):
                if note.seq > opened.get(call_id(note.step, note.data.get("key", "")), note.seq):
                    history = fold_history(history, [note])
    return LastRun(state=state, history=history, seq=seq, unkept=unkept)


def keep_run(journal: Journal, seq: int, state: State, history: History) -> None:
    """Let *journal* keep the state and the history, which its records up to *seq* add up to."""
    kept = {"state": unstructure(state, brief=True), "history": unstructure(history, brief=True)}
    # A run does not depend on it: the facts are there.
    with suppress(JournalError):
        journal.keep(seq, _made_by(), to_json(kept, "kept"))


def kept_run(journal: Journal, root: Path) -> LastRun | None:
    """Return what the journal of the project at *root* keeps, if this very code made it, for this user.

    A journal that came with the folder could keep something else than its facts say, and those are what a
    person has seen who trusts it.
    """
    if not KnownJournals(journals_folder()).has(journal, root):
        return None
    seq, made_by, text = journal.kept()
    if made_by != _made_by():
        return None
    try:
        kept = json.loads(text)
        state, history = structure(kept["state"], State), structure(kept["history"], History)
        return LastRun(state=state, history=history, seq=seq)
    except (JournalError, ValueError, LookupError, TypeError):
        return None  # it is only a copy of what the facts say


@cache
def _made_by() -> str:
    """Return a digest of the code that derives states: another version may derive others."""
    total = hashlib.sha256()
    for path in sorted(Path(gsd_core.machine.__path__[0]).glob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()


def plugin_failures(journal: Journal) -> tuple[tuple[str, str, str], ...]:
    """Return the plugin, the hook and the last error of each failure in the run that was started last."""
    runs = [record.run for record in journal.events(kinds=["run.started"])]
    failed = (fact.data for fact in journal.facts(PluginFailed, run=runs[-1])) if runs else ()
    errors = {(failure.plugin, failure.hook): failure.error for failure in failed}
    return tuple((plugin, hook, error) for (plugin, hook), error in errors.items())
