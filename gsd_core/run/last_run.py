"""The project's last run, read from the journal once and then passed on."""

from __future__ import annotations

import attrs

from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import (
    BranchChosen,
    BranchSwitched,
    PluginFailed,
    Record,
    RunOpened,
    typed,
)
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State


@attrs.frozen(kw_only=True)
class LastRun:
    """The state and the facts of the project's last run; empty if nothing has run yet.

    *seq* was the journal's newest record then; if it still is, nothing has to be read again.
    """

    state: State = attrs.field(factory=State)
    facts: tuple[Record, ...] = ()
    seq: int = 0

    @property
    def id(self) -> str:
        """The run's id; empty if nothing has run yet."""
        return self.state.run

    @property
    def branch(self) -> str | None:
        """The branch that the run works on; empty if HEAD was detached, ``None`` if it is not recorded."""
        for fact in typed(reversed(self.facts), RunOpened, BranchSwitched):
            match fact.data:
                case RunOpened(branch=str() as branch) | BranchSwitched(branch=branch):
                    return branch
                case _:
                    pass
        return None

    @property
    def branch_chosen(self) -> str:
        """The branch that a process was about to switch to when it ended; empty if there is none."""
        last = next(typed(reversed(self.facts), RunOpened, BranchChosen, BranchSwitched), None)
        # One that was switched to is a class of its own.
        return last.data.branch if last and type(last.data) is BranchChosen else ""


def read_last_run(journal: Journal) -> LastRun:
    """Read the facts of the run that was started last, and fold them."""
    # First the number, then the facts: a fact that is written in between is read again instead of missed.
    seq = journal.last_seq()
    runs = [record.run for record in journal.events(kinds=["run.started"])]
    facts = tuple(journal.events(run=runs[-1], facts_only=True)) if runs else ()
    with damage_reported(journal.path):
        return LastRun(state=fold(State(), facts), facts=facts, seq=seq)


def plugin_failures(journal: Journal) -> tuple[tuple[str, str, str], ...]:
    """Return the plugin, the hook and the last error of each failure in the run that was started last."""
    runs = [record.run for record in journal.events(kinds=["run.started"])]
    failed = (fact.data for fact in journal.facts(PluginFailed, run=runs[-1])) if runs else ()
    errors = {(failure.plugin, failure.hook): failure.error for failure in failed}
    return tuple((plugin, hook, error) for (plugin, hook), error in errors.items())
