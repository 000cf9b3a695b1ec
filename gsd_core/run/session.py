"""A run in this process: what it was asked, what it holds, and how it records a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from attrs import Factory, define, field, frozen

from gsd_core.git import Git
from gsd_core.hooks import Hooks
from gsd_core.hookspecs import RunInfo
from gsd_core.ids import StepId
from gsd_core.journal.codec import structure
from gsd_core.journal.record import Record
from gsd_core.journal.store import Journal
from gsd_core.machine.fold import fold
from gsd_core.machine.state import Options, RunOutcome, State, StepRecord
from gsd_core.planning.model import Planning
from gsd_core.plugins import PluginInfo
from gsd_core.settings import LimitSettings, RunSettings, Settings
from gsd_core.step import Idea

from .effects import Effects
from .ledger import Ledger

Clock: TypeAlias = Callable[[], datetime]
Observer: TypeAlias = Callable[[State, Record], None]
MakeEffects: TypeAlias = Callable[[Journal, Git], Effects]


def _effects(journal: Journal, git: Git) -> Effects:
    return Effects(journal=journal, git=git)


@frozen(kw_only=True)
class RunRequest:
    """What the user asks for.

    *typed* are the settings of the command line that a later process of the run goes by as well, as
    JSON data by section. *observers* are called with each fact and activity, in order (projections
    for readers). *effects* makes what writes; a test gives its own.
    """

    root: Path
    idea: Idea | None
    resume: bool
    settings: Settings
    hooks: Hooks
    plugins: tuple[PluginInfo, ...]
    info: RunInfo
    options: Options
    clock: Clock
    typed: Mapping[str, Mapping[str, Any]] = field(factory=dict[str, Mapping[str, Any]])
    observers: tuple[Observer, ...] = ()
    effects: MakeEffects = _effects


@frozen(kw_only=True)
class RunEnd:
    """How a run ended, with its exit code; *dollars* is what it spent in all, as far as is known."""

    outcome: RunOutcome
    exit: int
    reason: str
    run: str
    dollars: str = ""
    commits: int = 0


@define(kw_only=True)
class Run:
    """A run that this process owns. Its state is what the journal says, fact by fact."""

    id: str
    request: RunRequest
    journal: Journal
    git: Git
    effects: Effects
    state: State
    idea: Idea | None
    listeners: list[Observer] = field(factory=list[Observer])
    planning: Planning = field(factory=Planning)
    proposals: Mapping[str, Any] = field(factory=dict[str, Any])
    ledger: Ledger = field(factory=Ledger)
    changed: asyncio.Event = Factory(asyncio.Event)

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.request.root

    @property
    def hooks(self) -> Hooks:
        """The plugins."""
        return self.request.hooks

    @property
    def settings(self) -> RunSettings:
        """The core's settings."""
        found: RunSettings = self.request.settings.of(RunSettings)
        return found

    @property
    def limits(self) -> LimitSettings:
        """How long and how much things may take."""
        found: LimitSettings = self.request.settings.of(LimitSettings)
        return found

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return self.request.clock()

    def record(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        step: str = "",
        attempt: int = 0,
        consumes: Collection[int] = (),
    ) -> Record:
        """Commit a fact, fold it into the state, and tell who listens."""
        fact = self.effects.append(kind, data, run=self.id, step=step, attempt=attempt, consumes=consumes)
        self.state = fold(self.state, [fact], structure)
        self.ledger.add(fact)
        self._tell(fact)
        self.changed.set()
        return fact

    def note(self, data: Mapping[str, Any], *, step: str, attempt: int) -> None:
        """Note an agent's activity: no promise, no fact, but part of what is told."""
        seq = self.journal.activity("agent.activity", data, run=self.id, step=step, attempt=attempt)
        self._tell(
            Record(
                seq=seq, run=self.id, epoch=self.state.epoch, at=self.now(), kind="agent.activity", v=1,
                step=step, attempt=attempt, data=data,
            )
        )  # fmt: skip

    def _tell(self, fact: Record) -> None:
        for listen in (*self.request.observers, *self.listeners):
            listen(self.state, fact)

    def step(self, step: str) -> StepRecord:
        """Return what is known of a step."""
        return self.state.steps.get(step) or StepRecord(id=StepId.parse(step), status="waiting")

    async def until_changed(self) -> None:
        """Wait for the next fact."""
        self.changed.clear()
        await self.changed.wait()
