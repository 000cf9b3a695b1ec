"""Everything about one project that a page shows: phases, plans, evidence, commits, events, costs.

Everything is read from the planning files, the journal and the history when it is asked for. The journal's
facts are folded once, and then only what was added.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

import attrs

from gsd_core.errors import JournalError, NotFound, UserError
from gsd_core.files import FileRefused, read_below, start_as_text
from gsd_core.git import Git, GitError, data_directory
from gsd_core.journal.schema import ACTIVITY
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import Record
from gsd_core.machine.fold import fold
from gsd_core.machine.history import History, fold_history, limits_of
from gsd_core.machine.state import State
from gsd_core.model.event import Event
from gsd_core.model.ids import EXECUTE, StepId
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.survey import read_planning
from gsd_core.planning.verification import read_verification
from gsd_core.protected_paths import is_secret_name
from gsd_core.run.publishing import events_of, redacted
from gsd_core.run.spending import with_turns
from gsd_core.run.tracing import trace_all, traced_phases
from gsd_core.sanitize import safe_text
from gsd_core.views.cost import Grouping, calls_of, report_json
from gsd_core.views.planning import requirements_json
from gsd_core.views.project_details import (
    ANSWERED,
    COMMIT,
    STATEMENT,
    CommitDone,
    Details,
    PhaseTexts,
    commits_of,
    phase_details,
    phases_json,
)
from gsd_core.views.summary import summarize

T = TypeVar("T")
JOURNAL = "journal.db"
CHECKPOINT_FACTS = 200
"""After how many facts a state is kept, from which later pages of events are translated."""
MAX_CHECKPOINTS = 200
"""How many such states are kept; then every second one is dropped, and later ones are further apart."""
MAX_SIZE = 200_000_000
"""How large the facts of a project may be, in about the bytes of memory that they take.

A journal may have come with its folder, and the details of several projects are kept. A run of 500 phases
with ten plans each has about 100,000 facts, a quarter of this.
"""
FACT_SIZE = 500
"""What a fact takes besides its data."""
ENTRY_SIZE = 5_000
"""What a step, a question or a commit counts besides: the tables of them are copied for many facts."""
MAX_FILE = 8 << 20
MAX_LINES = 2000
MAX_PATCH = 1_000_000
"""How many characters of a commit are returned."""
PATCH_BYTES = 2 * MAX_PATCH
"""How much of it is read; a commit may be larger than the memory."""
MAX_SUMMARY = 1 << 20
SHA = re.compile(r"[0-9a-f]{7,64}")


@attrs.frozen(kw_only=True)
class EventPage:
    """Events in order; *next* is the position to continue after, *more* whether there were more then."""

    events: Sequence[Event]
    next: int
    more: bool


@attrs.define
class _Folded:
    """The facts of the last run as of *seq*, states on the way by position, and the commits of all runs."""

    seq: int = 0
    state: State = attrs.field(factory=State)
    history: History = attrs.field(factory=History)
    facts: list[Record] = attrs.field(factory=list[Record])
    states: list[tuple[int, State]] = attrs.field(factory=lambda: [(0, State())])
    commits: dict[str, CommitDone] = attrs.field(factory=dict[str, CommitDone])
    count: int = 0
    data_size: int = 0
    apart: int = attrs.field(factory=lambda: CHECKPOINT_FACTS)
    too_many: int = 0
    """How many facts of the last run there were when they became too large to keep; 0 if they are not."""

    @property
    def size(self) -> int:
        entries = len(self.state.steps) + len(self.state.inquiries) + len(self.commits)
        return self.data_size + FACT_SIZE * len(self.facts) + ENTRY_SIZE * entries

    def add(self, record: Record) -> None:
        if record.kind == "run.started":
            self.state, self.history, self.facts, self.data_size = State(), History(), [], 0
            if self.too_many:
                self.too_many, self.states = 0, [(0, State()), (record.seq - 1, State())]
        self.seq = record.seq
        if self.too_many:
            return
        self.data_size += len(repr(record.data))
        if self.size > MAX_SIZE:
            self.too_many = len(self.facts) + 1
            self.state, self.history, self.facts = State(), History(), []
            self.states, self.commits = [(0, State())], {}
            return
        self.state = fold(self.state, [record])
        self.history = fold_history(self.history, [record])
        self.facts.append(record)
        for commit in commits_of([record]):
            self.commits.setdefault(commit.sha, commit)
        self.count += 1
        if self.count % self.apart == 0:
            self.states.append((record.seq, self.state))
            if len(self.states) > MAX_CHECKPOINTS:
                self.states = self.states[::2]
                self.apart *= 2

    def state_before(self, seq: int) -> tuple[int, State]:
        """Return the last state that is kept at or before *seq*, with its position."""
        return next(kept for kept in reversed(self.states) if kept[0] <= seq)


class ProjectDetails:
    """The project in the folder *root*; :meth:`gsd_core.project.Project.details` returns one.

    Its methods are coroutines, and change nothing. They raise ``NotFound`` for what does not exist, and
    ``PlanningError`` if a planning file cannot be read. Texts are not yet sanitized where nothing else is
    said: whoever shows them knows for what.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lock = threading.Lock()
        self._planning_lock = threading.Lock()
        self._directory: Path | None = None
        self._journal: Journal | None = None
        self._inode: int = 0
        self._folded = _Folded()

    def close(self) -> None:
        """Close the journal."""
        with self._lock:
            if self._journal:
                self._journal.close()
                self._journal = None

    async def phases(self, *, is_running: bool) -> dict[str, Any]:
        """Return the phases with their steps and plans; *is_running*: a process works on the project."""
        return await asyncio.to_thread(lambda: phases_json(self._details(is_running=is_running)))

    async def phase(self, number: str, *, is_running: bool) -> dict[str, Any]:
        """Return one phase with its texts, evidence, history and commits."""
        details = await asyncio.to_thread(lambda: self._details(is_running=is_running))
        view = details.planning.phase(number)
        if view is None:
            known = ", ".join(phase.number for phase in details.planning.phases) or "none"
            raise NotFound(f"no phase {number!r} in the milestone", hint=f"phases: {known}")
        [traced] = await traced_phases(self._root, [view])
        rows = requirements_json(await trace_all(self._root, details.planning))["requirements"]
        texts = await asyncio.to_thread(_texts_of, traced)
        summary = await asyncio.to_thread(self._of_facts, summarize)
        return phase_details(details, traced, texts=texts, summary=summary, requirements=rows)

    async def requirements(self) -> dict[str, Any]:
        """Return the requirements with their evidence, and the statements of the idea that they cite."""
        planning = await asyncio.to_thread(self._planning)
        rows = requirements_json(await trace_all(self._root, planning))
        return {**rows, "statements": [*map(STATEMENT.dump, planning.statements)]}

    async def commits(self, phase: str = "") -> list[dict[str, Any]]:
        """Return the commits of the last run, oldest first; those of one *phase* if it is named."""
        listed = [COMMIT.dump(commit) for commit in await asyncio.to_thread(self._of_facts, commits_of)]
        return [commit for commit in listed if not phase or commit["phase"] == phase]

    async def commit(self, sha: str) -> dict[str, Any]:
        """Return a commit of the project's runs with its patch; *sha* is a full id, or its start.

        The patch is sanitized, without secrets, and has at most ``MAX_PATCH`` characters. Raise ``NotFound``
        if no run has made such a commit: the rest of the repository is not for everybody who may see runs.
        """
        if not SHA.fullmatch(sha):
            raise NotFound(f"no commit {sha!r}", hint="name it by at least seven hexadecimal digits")
        known = await self._commit_of_a_run(sha)
        if known is None:
            raise NotFound(f"no commit {sha!r} in the runs of this project", hint="list them with: gsd log")
        try:
            start = await Git(self._root).patch_of(known.sha, PATCH_BYTES)
        except GitError as error:
            raise NotFound(f"no commit {sha!r} in this project") from error
        is_cut = len(start.encode("utf-8", "surrogateescape")) >= PATCH_BYTES
        # The last line may be cut within a secret, which would no longer be recognized.
        patch = safe_text(start.rpartition("\n")[0] if is_cut else start)
        return {
            **COMMIT.dump(known),
            "patch": patch[:MAX_PATCH],
            "truncated": is_cut or len(patch) > MAX_PATCH,
        }

    async def _commit_of_a_run(self, sha: str) -> CommitDone | None:
        """Return the commit of any run whose id begins with *sha*: by the journal, trailers, or SUMMARYs."""
        made = await asyncio.to_thread(lambda: self._read().commits)
        # A journal can have come with the folder: an id in it need not be one.
        found = (one for one in made.values() if one.sha.startswith(sha) and SHA.fullmatch(one.sha))
        if known := next(found, None):
            return known
        with suppress(GitError):
            for one in await Git(self._root).trailed():
                if one.sha.startswith(sha):
                    return CommitDone(sha=one.sha, subject=one.subject, step=one.step, task=one.task)
            planning = await asyncio.to_thread(self._planning)
            for phase in await traced_phases(self._root, planning.phases):
                for plan, names in phase.commits.items():
                    if name := next((name for name in names if name.startswith(sha)), ""):
                        step = StepId(kind=EXECUTE, phase=phase.number, detail=plan)
                        return CommitDone(sha=name, subject="", step=str(step))
        return None

    async def events(
        self, *, after: int = 0, limit: int = 500, last: int = 0, names: Collection[str] = ()
    ) -> EventPage:
        """Return at most *limit* events after position *after*, or the *last* ones; of these *names* only."""
        return await asyncio.to_thread(self._events, after, limit, last, frozenset(names))

    async def cost(self, by: str) -> dict[str, Any]:
        """Return what the last run cost, as ``gsd cost --json`` does."""
        grouping: Sequence[Grouping] = get_args(Grouping)
        if by not in grouping:
            raise UserError(f"cannot group the costs by {by!r}", hint=f"use one of {', '.join(grouping)}")
        return await asyncio.to_thread(self._cost, next(one for one in grouping if one == by))

    async def answered(self) -> list[dict[str, Any]]:
        """Return the questions of the last run that are answered, and who answered them."""
        summary = await asyncio.to_thread(self._of_facts, summarize)
        return [ANSWERED.dump(one) for one in summary.decisions if one.answer is not None]

    async def lines(self, path: str, first: int, last: int) -> dict[str, Any]:
        """Return lines of a file of the project, sanitized and redacted; the first line is 1."""
        return await asyncio.to_thread(self._lines, path, first, last)

    # Reading

    def _details(self, *, is_running: bool) -> Details:
        folded = self._read()
        planning = self._planning()
        with self._understood():
            commits = commits_of(folded.facts)
        return Details(planning=planning, state=folded.state, commits=commits, interrupted=not is_running)

    def _planning(self) -> Planning:
        # A page asks for several things at once: the plans are parsed for the first, and kept for the others.
        with self._planning_lock:
            return read_planning(self._root)

    def _of_facts(self, read: Callable[[Sequence[Record]], T]) -> T:
        """Return what *read* makes of the facts of the last run."""
        folded = self._read()
        with self._understood():
            return read(folded.facts)

    def _cost(self, by: Grouping) -> dict[str, Any]:
        folded = self._read()
        with self._understood():
            facts = with_turns(self._journal, folded.facts) if self._journal else folded.facts
            calls = calls_of(facts)
            runs = [folded.state.run] if folded.state.run else []
            return report_json(runs, calls, by, budget=limits_of(folded.history).get("--max-budget-usd"))

    def _understood(self) -> AbstractContextManager[None]:
        """Raise ``JournalError`` for facts that can be folded, but say something impossible."""
        return damage_reported((self._directory or self._root / ".git" / "gsd") / JOURNAL)

    def _events(self, after: int, limit: int, last: int, names: frozenset[str]) -> EventPage:
        folded = self._read()
        journal = self._journal
        if journal is None:
            return EventPage(events=(), next=after, more=False)
        with damage_reported(journal.path):
            if last:
                return self._last_events(journal, folded, last, names)
            found: list[Event] = []
            position = after
            for seq, event in _translated(journal, folded, after, names):
                if len(found) >= limit and seq != position:
                    return EventPage(events=found, next=position, more=True)
                position = seq
                if event:
                    found.append(event)
            return EventPage(events=found, next=position, more=False)

    def _last_events(self, journal: Journal, folded: _Folded, last: int, names: frozenset[str]) -> EventPage:
        """Return the last events: read backwards in steps, because few records may have such names."""
        end = journal.last_seq()
        span = 2 * last
        while True:
            begin = max(0, end - span)
            found = [event for _, event in _translated(journal, folded, begin, names) if event]
            if len(found) >= last or begin == 0:
                return EventPage(events=found[-last:], next=max(end, *(e.seq for e in found), 0), more=False)
            span *= 4

    def _read(self) -> _Folded:
        """Return the facts and the state as of now."""
        with self._lock:
            journal = self._open()
            if journal is None:
                return self._folded
            with damage_reported(journal.path):
                for record in journal.events(after=self._folded.seq, facts_only=True):
                    self._folded.add(record)
            folded = self._folded
            if folded.too_many:
                raise JournalError(
                    f"the journal {journal.path} is too large to show: its last run has {folded.too_many:,} "
                    f"facts or more, which take over {MAX_SIZE // 1_000_000:,} MB",
                    hint="gsd log shows it; the next run in the project can be shown again",
                )
            # The list grows; whoever reads it meanwhile has its own.
            return attrs.evolve(
                folded, facts=[*folded.facts], states=[*folded.states], commits={**folded.commits}
            )

    def _open(self) -> Journal | None:
        if self._directory is None or not self._directory.is_dir():
            self._directory = data_directory(self._root) if self._root.is_dir() else None
        path = self._directory / JOURNAL if self._directory else None
        inode: int = 0
        with suppress(FileNotFoundError):
            inode = path.stat().st_ino if path else 0
        if inode != self._inode:
            # It was moved away, and perhaps made anew.
            if self._journal:
                self._journal.close()
            self._journal, self._inode, self._folded = None, inode, _Folded()
        if path and inode and self._journal is None:
            self._journal = Journal.open(path, clock=lambda: datetime.now(UTC), writable=False)
        return self._journal

    def _lines(self, path: str, first: int, last: int) -> dict[str, Any]:
        parts = Path(path).parts
        if not parts or any(is_secret_name(part) for part in parts) or ".git" in parts:
            raise UserError(f"{path!r} is not shown: files of this name usually contain secrets")
        try:
            text = read_below(self._root, path, limit=MAX_FILE).decode("utf-8", "replace")
        except FileRefused as error:
            raise UserError(f"{path!r} is not shown: {error.strerror or error}") from error
        except (OSError, ValueError) as error:
            raise NotFound(f"no file {path!r} in the project") from error
        # All of it, because a secret may span lines that are not asked for.
        lines = safe_text(text).splitlines()
        first = max(1, first)
        last = min(len(lines), last, first + MAX_LINES - 1)
        return {
            "path": path,
            "first": first,
            "last": max(last, first - 1),
            "total": len(lines),
            "lines": lines[first - 1 : last],
        }


def _translated(
    journal: Journal, folded: _Folded, after: int, names: Collection[str]
) -> Iterator[tuple[int, Event | None]]:
    """Yield the position and the public event of each record after *after*, redacted; all, or of *names*."""
    begin, state = folded.state_before(after)
    # The index of the facts finds them among 100,000 notes of activity.
    facts_only = bool(names) and ACTIVITY.isdisjoint(names)
    for record in journal.events(after=begin, facts_only=facts_only):
        if record.kind == "run.started":
            state = State()
        if record.kind not in ACTIVITY:
            state = fold(state, [record])
        if record.seq <= after:
            continue
        yield record.seq, None
        for event in events_of(state, record):
            if names and event.name not in names:
                continue
            yield record.seq, redacted(event)


def _texts_of(phase: PhaseView) -> PhaseTexts:
    done = [plan for plan in phase.plans if plan.summary]
    summaries = {plan.id: start_as_text(phase.project, plan.summary, MAX_SUMMARY) for plan in done}
    return PhaseTexts(verification=read_verification(phase), summaries=summaries)
