"""The data of a run in this process: its request, its state, its effects and its end.

The order is that of a run: :class:`RunRequest` goes in, :class:`Run` is passed to every other module of
this package, :class:`RunEnd` comes out. Below, :class:`Effects` does everything durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import attrs

from gsd_core.codec import unstructure
from gsd_core.files import move_below, read_below, remove_below, write_below
from gsd_core.git import Git
from gsd_core.git.untrusted import LocalProgram
from gsd_core.hookspecs import RunInfo
from gsd_core.journal.confidential import without_secrets
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import KIND_OF, PROMPT, AgentActivity, Record, Recorded
from gsd_core.machine.fold import fold
from gsd_core.machine.history import History, fold_history
from gsd_core.machine.ledger import Ledger
from gsd_core.machine.state import Options, RunOutcome, State, StepRecord
from gsd_core.model.ids import StepId
from gsd_core.model.step import Idea
from gsd_core.planning.model import Planning
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import PluginInfo
from gsd_core.sanitize import safe_file, safe_text
from gsd_core.settings import LimitSettings, RunSettings, Settings, is_rehearsal

from .last_run import KEEP_AFTER, LastRun, keep_run
from .sandbox import Confinement, Sandbox
from .seal import Seal, Sealer
from .spending import Everywhere
from .step_types import StepTypes
from .timeouts import Turns

T = TypeVar("T")
Clock: TypeAlias = Callable[[], datetime]
Observer: TypeAlias = Callable[[State, Record], None]
MakeEffects: TypeAlias = Callable[[Journal, Git], "Effects"]
COMMANDS = "commands"
"""The executor that does steps with the user's own GSD commands."""
IN_PLACE = "inplace"
"""The workspace for the steps that no other one is for."""
WORK_TREES = "worktree"
"""The workspace that gives each plan a work tree, if the project can have some."""


@attrs.frozen(kw_only=True)
class RunRequest:
    """What the user asks for.

    *typed* are the settings given on the command line, as JSON data by section: the processes that resume
    the run use them too. *trusted* is what the project wants and its user trusts: labels by digest.
    *programs* are those in the repository's own settings that git may run. *asked* are steps that the user
    asks for with a *command*, by id, with the user's words. *observers* are called with each fact and
    activity, in order. *effects* makes the :class:`Effects`; a test passes its own. *last_run* is
    the project's last run, if the caller has read it already.
    """

    root: Path
    idea: Idea | None
    settings: Settings
    hooks: Hooks
    plugins: tuple[PluginInfo, ...]
    info: RunInfo
    options: Options
    clock: Clock
    typed: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict[str, Mapping[str, Any]])
    trusted: Mapping[str, str] = attrs.field(factory=dict[str, str])
    programs: frozenset[LocalProgram] = frozenset()
    asked: Mapping[str, str] = attrs.field(factory=dict[str, str])
    command: tuple[str, ...] = ()
    observers: tuple[Observer, ...] = ()
    effects: MakeEffects = lambda journal, git: Effects(journal=journal, git=git)
    last_run: LastRun | None = None


@attrs.frozen(kw_only=True)
class RunEnd:
    """How a run ended, with its exit code; *dollars* is its total cost as far as it is known, else empty.

    *notes* say what the outcome does not cover: see :mod:`gsd_core.run.notes`.
    """

    outcome: RunOutcome
    exit: int
    reason: str
    run: str
    notes: tuple[str, ...] = ()
    dollars: str = ""
    commits: int = 0


@attrs.define(kw_only=True)
class Progress:
    """How far a run is, in all its workspaces.

    *state* and *history* are derived from the journal's facts, one by one, and from nothing else: so a
    process that resumes the run decides as this one would. *unkept* is how many facts came after what the
    journal keeps. *planning* is what was last read from disk, *proposals* what plugins propose for
    ``config.json``.
    """

    state: State
    history: History = attrs.field(factory=History)
    unkept: int = 0
    planning: Planning = attrs.field(factory=Planning)
    proposals: Mapping[str, Any] = attrs.field(factory=dict[str, Any])


def workspaces_of(settings: Settings, *, is_confined: bool) -> tuple[str, ...]:
    """Return the plugins that provide the folder of a step, in order; the last one is for every step.

    Without a sandbox, an agent in a work tree can change the project too, where nothing would guard it: then
    only those count that the user has named. The user's own GSD commands write ``.planning/`` themselves,
    which only the project has.
    """
    run = settings.of(RunSettings)
    chosen = run.workspace if is_confined or "run.workspace" in settings.origins else ()
    if COMMANDS in run.executors:
        chosen = ()
    # What is said for plans need not be said for all other steps.
    return tuple(dict.fromkeys([*chosen, IN_PLACE]))


@attrs.define(kw_only=True)
class Run:
    """A run that this process owns, in one of its workspaces.

    *ledger* is derived from the facts, too. *opening* is held while an agent call is checked against
    the budget and opened, *in_place* while a plan is executed in the project's own folder. *step_types* are
    the kinds of steps that plugins add. *sandbox* is what it starts processes in. *main* is the run in the
    project's own folder, if this is another workspace. *slots* are the numbers of those in use.
    """

    id: str
    request: RunRequest
    journal: Journal
    workspace: Workspace
    effects: Effects
    progress: Progress
    idea: Idea | None
    listeners: list[Observer] = attrs.field(factory=list[Observer])
    ledger: Ledger = attrs.field(factory=lambda: Ledger())
    opening: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    turns: Turns = attrs.field(factory=Turns)
    in_place: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    step_types: StepTypes = attrs.field(factory=StepTypes)
    sandbox: Sandbox
    main: Run | None = None
    slots: set[int] = attrs.field(factory=set[int])

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.request.root

    def at(self, workspace: Workspace) -> Run:
        """Return the same run in another workspace."""
        effects = self.request.effects(self.journal, workspace.git)
        sandbox = attrs.evolve(self.sandbox, slot=workspace.slot)
        return attrs.evolve(self, workspace=workspace, effects=effects, sandbox=sandbox, main=self.in_project)

    @property
    def in_project(self) -> Run:
        """The same run in the project's own folder."""
        return self.main or self

    @property
    def state(self) -> State:
        """What decides what is due."""
        return self.progress.state

    @property
    def planning(self) -> Planning:
        """The planning files, as they were last read."""
        return self.progress.planning

    @property
    def tree(self) -> Path:
        """The folder in which agents work, and the run commits: the project's root, or a copy of it."""
        return self.workspace.git.root

    @property
    def git(self) -> Git:
        """Git in :attr:`tree`."""
        return self.workspace.git

    @property
    def hooks(self) -> Hooks:
        """The plugins' hooks."""
        return self.request.hooks

    @property
    def settings(self) -> RunSettings:
        """The settings of section ``run``."""
        return self.request.settings.of(RunSettings)

    @property
    def limits(self) -> LimitSettings:
        """The settings of section ``limits``."""
        return self.request.settings.of(LimitSettings)

    @property
    def mark(self) -> str:
        """The value of ``GSD_RUN`` in its processes, by which the next start finds them after a crash."""
        return self.journal.mark_of(self.id)

    def git_in(self, tree: Path) -> Git:
        """Return git for another folder of the project, with the run's mark."""
        return self.git.at(tree)

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        return self.request.clock()

    def step(self, step: str) -> StepRecord:
        """Return the record of a step; a step that has not been started has an empty one."""
        return self.state.steps.get(step) or StepRecord(id=StepId.parse(step), status="waiting")

    def facts(self, *kinds: type[T], step: str | None = None, after: int = 0) -> Iterator[Recorded[T]]:
        """Yield the run's facts of these *kinds* with ``seq > after``, in order."""
        return self.journal.facts(*kinds, run=self.id, step=step, after=after)

    def record(
        self, fact: object, *, step: str = "", attempt: int = 0, consumes: Collection[int] = ()
    ) -> Record:
        """Commit a fact to the journal, update the state, and notify the observers."""
        kind, data = KIND_OF[type(fact)], unstructure(fact)
        record = self.effects.append(kind, data, run=self.id, step=step, attempt=attempt, consumes=consumes)
        progress = self.progress
        progress.state = fold(progress.state, [record])
        progress.history = fold_history(progress.history, [record])
        self.ledger.add([record])
        progress.unkept += 1
        if progress.unkept >= KEEP_AFTER:
            keep_run(self.journal, record.seq, progress.state, progress.history)
            progress.unkept = 0
        self._notify(record)
        return record

    def note(self, activity: AgentActivity, *, step: str, attempt: int) -> None:
        """Note an agent's activity: observers see it, but it is not a fact and may be lost in a crash.

        Its prompt is only kept.
        """
        kind = KIND_OF[AgentActivity]
        data = without_secrets(kind, unstructure(activity))
        seq = self.journal.activity(kind, data, run=self.id, step=step, attempt=attempt)
        if activity.kind == PROMPT:
            return
        note = Record(
            seq=seq,
            run=self.id,
            epoch=self.state.epoch,
            at=self.now(),
            kind=kind,
            v=1,
            step=step,
            attempt=attempt,
            data=data,
        )
        self.progress.history = fold_history(self.progress.history, [note])
        self.ledger.add([note])
        self._notify(note)

    @cached_property
    def everywhere(self) -> Everywhere:
        """What all runs of the user have spent."""
        is_free = is_rehearsal(self.settings.agent)
        return Everywhere(
            journal=self.journal, clock=self.request.clock, run=self.id, ledger=self.ledger, rehearsal=is_free
        )

    def _notify(self, record: Record) -> None:
        for observer in (*self.request.observers, *self.listeners):
            observer(self.state, record)


@attrs.frozen(kw_only=True)
class Effects:
    """Everything durable that a run does: the journal's facts, the project's files, its commits.

    In one place so that tests can end the process before and after each effect.
    """

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
        """Commit a fact and return it as the journal stores it."""
        seq = self.journal.append(kind, data, run=run, step=step, attempt=attempt, consumes=consumes)
        return next(self.journal.events(after=seq - 1))

    def write(self, path: Path, text: str) -> None:
        """Replace a file as a whole: a reader, also after a crash, sees the old or the new version.

        What is new in a planning file is sanitized, and its secrets are redacted: it is committed and shown.
        """
        root = self.git.root
        is_of_project = path.is_relative_to(root) and path.relative_to(root).parts[:1] != (".git",)
        below = root if is_of_project else path.parent
        if ".planning" in path.parts:
            before = ""
            # One that cannot be read as text has nothing to compare with.
            with suppress(OSError, UnicodeDecodeError):
                before = read_below(below, path.relative_to(below)).decode("utf-8")
            text = safe_file(text, before)
        try:
            data, mode = text.encode(), None if is_of_project else 0o600
            write_below(below, path.relative_to(below), data, mode=mode)
        except OSError as exc:
            # The name of the draft, or none at all, would tell a reader little.
            exc.filename, exc.filename2 = str(path), None
            raise

    def move(self, path: str, target: str) -> None:
        """Move a file or folder of the project; folders above *target* are made."""
        move_below(self.git.root, path, target)

    def remove(self, path: str) -> None:
        """Remove a file of the project; it may be gone already."""
        remove_below(self.git.root, path)

    async def tag(self, name: str, commit: str, message: str) -> str:
        """Make an annotated tag unless it exists; return the commit that has it."""
        return await self.git.tag(name, commit, safe_text(message))

    async def fast_forward(self, commit: str) -> None:
        """Move the project's branch and files forward to *commit*."""
        await self.git.fast_forward(commit)

    async def as_merge(self, commit: str, theirs: str, is_own: Callable[[str], bool]) -> str:
        """Replace the last *commit*, which resolves a merge with *theirs*, by that merge, and return it."""
        return await self.git.as_merge(commit, theirs, is_own)

    async def undo(self, undo: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Undo what changed without the run; return what could not be undone. It can be repeated."""
        return await self.git.call(undo)

    async def commit(
        self,
        paths: Collection[str],
        subject: str,
        trailers: Mapping[str, str],
        *,
        verify: bool,
        empty: bool = False,
        body: str = "",
        text: str = "",
    ) -> str:
        """Commit exactly *paths* and return the commit; without changes there is none unless *empty*."""
        return await self.git.commit(
            paths,
            safe_text(subject, multiline=False),
            body=safe_text(body),
            trailers=trailers,
            verify=verify,
            allow_empty=empty,
            text=safe_text(text),
        )


@attrs.define(kw_only=True)
class Workspace:
    """Where agents work, and the run commits; *name* is empty for the project itself.

    *branch* is the one that this process works on: empty if HEAD is detached, ``None`` if it is not known.
    *slot* is a number from 1 on that no other workspace in use has; the project itself has 0.
    *sealer* takes and compares *seal*, the record of the protected state before the calls in progress.
    *guards* tell for each of these calls in which sandbox it is, if any, and *owners* is how many of them own
    the planning.
    """

    git: Git
    sealer: Sealer
    name: str = ""
    branch: str | None = None
    slot: int = 0
    seal: Seal | None = None
    guards: list[Callable[[], Confinement | None]] = attrs.field(
        factory=list[Callable[[], "Confinement | None"]]
    )
    owners: int = 0

    @property
    def stored_seal(self) -> Path:
        """The file that has the seal while calls are in progress, and if they were killed."""
        return self.sealer.store / ("-".join(filter(None, ["seal", self.name])) + ".json")
