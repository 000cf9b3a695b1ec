"""Everything durable that a run does, in one place: append, write, commit.

A test gives a run effects that end the process before or after any of them.

What a run has spent: recorded from the journal's facts, call by call.

A run in this process: what it was asked, what it holds, and how it records a fact.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from attrs import Factory, define, field, frozen

from gsd_core.git import Git
from gsd_core.hookspecs import RunInfo
from gsd_core.journal.codec import structure
from gsd_core.journal.schema import Record
from gsd_core.journal.store import Journal
from gsd_core.machine.fold import fold
from gsd_core.machine.state import Options, RunOutcome, State, StepRecord
from gsd_core.model.ids import StepId
from gsd_core.model.step import Idea
from gsd_core.model.usage import Spend, Usage
from gsd_core.planning.model import Planning
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import PluginInfo
from gsd_core.settings import LimitSettings, RunSettings, Settings

from .last_run import LastRun

DRAFT = (".gsd-", ".tmp")
"""How the name of a file begins and ends while it is written."""


@frozen(kw_only=True)
class Effects:
    """The journal's facts, the project's files and its commits."""

    journal: Journal
    git: Git

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        run: str,
        step: str,
        attempt: int,
        consumes: Collection[int] = (),
    ) -> Record:
        """Commit a fact and return it as it lies in the journal."""
        seq = self.journal.append(kind, data, run=run, step=step, attempt=attempt, consumes=consumes)
        return next(self.journal.events(after=seq - 1))

    def write(self, path: Path, text: str) -> None:
        """Write a whole file, so that a reader or a crash sees the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=DRAFT[0], suffix=DRAFT[1])
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o644)  # noqa: PTH101
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    async def commit(
        self,
        paths: Collection[str],
        subject: str,
        trailers: Mapping[str, str],
        *,
        verify: bool,
        empty: bool = False,
    ) -> str:
        """Commit exactly *paths* and return the commit; without a change there is none unless *empty*."""
        return await self.git.commit(paths, subject, trailers=trailers, verify=verify, allow_empty=empty)


@define
class Ledger:
    """Sums of the run's closed agent calls; a reservation stands for a call that is under way."""

    total: Usage = field(factory=Usage)
    calls: int = 0
    unknown_calls: int = 0
    reserved: dict[str, Decimal] = field(factory=dict[str, Decimal])

    def add(self, fact: Record) -> None:
        """Take a fact into account."""
        if fact.kind == "agent.opened" and fact.data.get("reserved"):
            self.reserved[_call(fact)] = Decimal(fact.data["reserved"])
        if fact.kind == "agent.closed":
            self.reserved.pop(_call(fact), None)
            usage = structure(fact.data["usage"], Usage)
            self.calls += 1
            self.unknown_calls += usage.basis == "unknown" and usage != Usage()
            self.total = self.total + usage

    def spend(self, run: str, step: str, reserve: Decimal | None, running: Usage) -> Spend:
        """Return what a budget policy has to know: before the next call, or of the one that is *running*."""
        held = sum(self.reserved.values(), reserve or Decimal(0))
        spent = (self.total + running).dollars or Decimal(0)
        return Spend(
            run=run,
            step=step,
            spent=spent,
            reserved=held or None,
            calls=self.calls,
            unknown_calls=self.unknown_calls,
        )


def _call(fact: Record) -> str:
    return f"{fact.step} {fact.data['key']}"


def read_ledger(records: Iterable[Record]) -> Ledger:
    """Return the ledger of a run's facts."""
    ledger = Ledger()
    for record in records:
        ledger.add(record)
    ledger.reserved.clear()
    return ledger


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
    for readers). *effects* makes what writes; a test gives its own. *last_run* is the project's last
    run if the caller has read it already. *command* is how hints call this program, such as
    ``gsd -C DIR`` if the user named a folder.
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
    last_run: LastRun | None = None
    command: str = "gsd"


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
                seq=seq,
                run=self.id,
                epoch=self.state.epoch,
                at=self.now(),
                kind="agent.activity",
                v=1,
                step=step,
                attempt=attempt,
                data=data,
            )
        )

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
