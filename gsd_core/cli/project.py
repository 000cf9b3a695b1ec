"""The project's folder: one that is there and a repository, or a new one that becomes one.

What reading commands know: the project's journal, folded; nothing is written, nothing imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from gsd_core.errors import ProjectError
from gsd_core.git import Git, git_common_dir
from gsd_core.journal.codec import structure
from gsd_core.journal.lock import owner
from gsd_core.journal.schema import Record
from gsd_core.journal.store import Journal
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State
from gsd_core.views.status import History, Holder, tell

from .global_options import GlobalOptions


def check_folder(root: Path) -> bool:
    """Return whether *root* has yet to be made; raise ``ProjectError`` if it can be no project."""
    if not root.exists():
        return True
    if not root.is_dir():
        raise ProjectError(f"{str(root)!r} is not a folder", hint="name the project's folder after -C")
    if git_common_dir(root):
        return False
    if any(root.iterdir()):
        hint = "look at what is in it; if it is the project, run `git init` there first"
        raise ProjectError(f"{str(root)!r} is not empty and no git repository", hint=hint)
    return True


REHEARSED = ("rehearsal",)
REHEARSER = ("GSD rehearsal", "rehearsal@localhost")
"""Who commits in a repository that is made for a rehearsal, where git knows nobody: it is nobody's work."""


def make_folder(root: Path, agents: Sequence[str]) -> None:
    """Make *root* a repository for *agents* to work in; refuse first if nobody could commit there."""
    asyncio.run(_make(root, rehearsed=tuple(agents) == REHEARSED))


async def _make(root: Path, *, rehearsed: bool) -> None:
    nearest = next(parent for parent in (root, *root.parents) if parent.is_dir())
    unknown = await Git(nearest).identity() is None
    if unknown and not rehearsed:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know who you are, so it cannot commit", hint=hint)
    await asyncio.to_thread(root.mkdir, parents=True, exist_ok=True)
    await Git(root).init()
    if unknown:
        await Git(root).identify(*REHEARSER)


JOURNAL = "journal.db"


def now() -> datetime:
    """Return the time, aware, in UTC."""
    return datetime.now(UTC)


def project_root(where: GlobalOptions) -> Path:
    """Return the project's folder; raise ``ProjectError`` if there is none."""
    root = where.directory.resolve()
    if not root.is_dir():
        raise ProjectError(f"no folder {str(where.directory)!r}", hint="name the project's folder after -C")
    return root


def core_folder(root: Path) -> Path | None:
    """Return where the journal and the lock of the project in *root* lie; ``None`` without a repository."""
    common = git_common_dir(root)
    return common / "gsd" if common else None


def open_journal(root: Path) -> Journal:
    """Open the project's journal for reading; an empty one if nothing has been run."""
    return Journal.open(journal_path(root), clock=now, writable=False)


def journal_path(root: Path) -> Path:
    """Return where the journal of the project in *root* lies, or would lie."""
    return (core_folder(root) or root / ".git" / "gsd") / JOURNAL


@frozen(kw_only=True)
class ProjectState:
    """A project as its journal tells it: the latest run, who holds the lock, and which questions
    have an answer that no run has taken yet (*given*).

    *facts* are the run's facts, *seq* was the journal's newest record when it was read.
    """

    root: Path
    state: State
    history: History
    holder: Holder | None
    given: frozenset[str] = frozenset()
    facts: tuple[Record, ...] = ()
    seq: int = 0


def load(where: GlobalOptions) -> ProjectState:
    """Fold the latest run of the project."""
    root = project_root(where)
    with open_journal(root) as journal:
        seq = journal.last_seq()
        run = latest_run(journal)
        facts = tuple(journal.events(run=run, facts_only=True)) if run else ()
        given = frozenset(str(i.data.get("question")) for i in journal.take_inbox() if i.kind == "answer")
    state = fold(State(), facts, structure)
    history = tell(History(), facts, structure)
    return ProjectState(
        root=root,
        state=state,
        history=history,
        holder=holder_of(root),
        given=given,
        facts=facts,
        seq=seq,
    )


def latest_run(journal: Journal) -> str:
    """Return the id of the run that was opened last; empty if there is none."""
    runs = [record.run for record in journal.events(kinds=("run.started", "run.opened"))]
    return runs[-1] if runs else ""


def holder_of(root: Path) -> Holder | None:
    """Return the process that runs on the project now."""
    folder = core_folder(root)
    held = owner(folder) if folder else None
    return Holder(pid=held.pid, host=held.host, since=held.since) if held else None
