"""The project's folder and the state in its journal; nothing here writes to the journal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import attrs
import click

from gsd_core.errors import PlanningError, ProjectError
from gsd_core.git import Git, data_directory, git_common_dir
from gsd_core.journal.inbox import answers_in
from gsd_core.journal.lock import Owner, owner
from gsd_core.journal.store import Journal
from gsd_core.machine.history import History
from gsd_core.machine.state import State
from gsd_core.model.question import Asked
from gsd_core.planning.survey import survey
from gsd_core.planning.workstreams import active_workstream, planning_folder
from gsd_core.processes import refuse_agents
from gsd_core.run.last_run import LastRun, read_last_run
from gsd_core.sanitize import first_line
from gsd_core.settings import REHEARSAL_AGENTS as REHEARSAL_AGENTS
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals
from gsd_core.views.status import open_questions

from .commands import with_global_options
from .global_options import GlobalOptions

JOURNAL = "journal.db"
MAX_NOTE = 300
OWN_FILES = frozenset({".gsd", "gsd.toml", ".planning"})
"""What gsd itself reads or writes in a project's folder."""
IGNORED_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", ".idea", ".vscode", ".directory"})
"""What file managers and editors create on their own."""
REHEARSAL_IDENTITY = ("GSD rehearsal", "rehearsal@localhost")
"""The author of commits in a repository made for a rehearsal, if git does not know the user."""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def needs_repository(root: Path) -> bool:
    """Whether *root* is in no repository; raise ``ProjectError`` if it cannot be a project.

    A new or empty folder inside a repository belongs to that repository, unless git ignores it there: then
    nothing in it could be committed.
    """
    if root.exists() and not root.is_dir():
        raise ProjectError(f"{str(root)!r} is not a folder", hint="pass the project's folder to -C")
    above = nearest_folder(root)
    if git_common_dir(above) is None:
        return True
    if root.exists() and any(root.iterdir()):
        return False
    # The slash: a pattern such as "build/" is for folders only, and this one may not exist yet.
    return asyncio.run(Git(above).is_ignored(f"{root.relative_to(above).as_posix()}/"))


def nearest_folder(root: Path) -> Path:
    """Return *root*, or the folder above it that exists."""
    return next(folder for folder in (root, *root.parents) if folder.is_dir())


def foreign_files(root: Path, idea: Path | None) -> list[str]:
    """Return the files and folders in *root* that do not belong to a new project with this *idea*."""
    if not root.exists():
        return []
    kept = OWN_FILES | IGNORED_FILES
    return sorted(
        path.name
        for path in root.iterdir()
        if path.name not in kept
        and not path.name.endswith(("~", ".swp"))
        and not (idea and idea.exists() and path.exists() and path.samefile(idea))
    )


def make_folder(root: Path) -> None:
    """Create *root*, a folder inside a repository; raise ``ProjectError`` if git could not commit there."""
    asyncio.run(Git(nearest_folder(root)).check_identity())
    root.mkdir(parents=True, exist_ok=True)


def make_repository(root: Path, agents: Sequence[str]) -> None:
    """Create *root* as a repository for *agents*; raise ``ProjectError`` if git could not commit there."""
    rehearsal = tuple(agents) == REHEARSAL_AGENTS
    if not rehearsal:
        asyncio.run(Git(nearest_folder(root)).check_identity())
    root.mkdir(parents=True, exist_ok=True)
    asyncio.run(Git(root).init())
    if rehearsal:
        asyncio.run(lend_identity(root))


async def lend_identity(root: Path) -> None:
    """Let git commit for a rehearsal at *root*, if it knows no identity there.

    In this process and those that it starts: the user's own later commits must not have it.
    """
    if await Git(root).identity() is None:
        name, email = REHEARSAL_IDENTITY
        lent = {f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")}
        lent |= {f"GIT_{role}_EMAIL": email for role in ("AUTHOR", "COMMITTER")}
        os.environ.update(lent)
        ctx = click.get_current_context().find_root()
        ctx.call_on_close(lambda: [os.environ.pop(name, None) for name in lent])


SYSTEM_FOLDERS = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin"),
    *("/sys", "/usr", "/System", "/Library", "/private/etc"),
)
"""The folders of the system on Linux (the Filesystem Hierarchy Standard) and macOS."""
USERS_FOLDERS = ("/dev/shm", "/run/user")
"""Folders below them that are for the files of users."""


def refuse_system_folder(root: Path) -> None:
    """Raise ``ProjectError`` if *root* is the top folder or below one of the system's folders."""
    users = (os.path.expanduser("~"), *USERS_FOLDERS)  # noqa: PTH111 - without a home it stays as it is
    is_system = root == Path("/") or any(map(root.is_relative_to, SYSTEM_FOLDERS))
    if is_system and not any(map(root.is_relative_to, users)):
        raise ProjectError(f"{str(root)!r} belongs to the system", hint="use a folder of your own, with -C")


def project_root(options: GlobalOptions) -> Path:
    """Return the project's folder; raise ``ProjectError`` if it does not exist."""
    try:
        root = options.directory.resolve()
    except FileNotFoundError as error:
        hint = "cd to a folder that exists, or name the project's folder with -C"
        raise ProjectError("the current folder was removed", hint=hint) from error
    if not root.is_dir():
        raise ProjectError(f"no folder {str(root)!r}", hint="pass the project's folder to -C")
    return root


def planned_root(options: GlobalOptions, *, run: str = "") -> Path:
    """Return the folder of a project with planning files, or with a *run*; raise ``ProjectError`` if none."""
    root = project_root(options)
    if not run and not (root / ".planning").is_dir():
        message = f"no project here: {str(root)!r} has no .planning folder"
        raise ProjectError(message, hint="start one with: gsd run IDEA")
    return root


def core_folder(root: Path) -> Path | None:
    """Return the folder with the journal and the lock; ``None`` if *root* is in no repository."""
    return data_directory(root)


def journal_path(root: Path) -> Path:
    """Return the path of the journal, which need not exist."""
    return (core_folder(root) or root / ".git" / "gsd") / JOURNAL


def open_journal(root: Path, *, writable: bool = False) -> Journal:
    """Open the journal, for reading by default; without a run so far it is empty."""
    return Journal.open(journal_path(root), clock=now, writable=writable)


@attrs.frozen(kw_only=True)
class ProjectState:
    """The latest run according to the journal, and the process that runs now.

    *pending_answers* are the answers that no run has taken yet, in words, by
    question. *is_own*: a run of this user wrote the journal on this machine.
    """

    root: Path
    last_run: LastRun
    holder: Owner | None
    pending_answers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    is_own: bool = True

    @property
    def state(self) -> State:
        """The latest run's state, empty if nothing has run yet."""
        return self.last_run.state

    @property
    def history(self) -> History:
        """What the latest run has done."""
        return self.last_run.history

    @property
    def unanswered(self) -> list[Asked]:
        """The open questions that nobody has answered yet."""
        asked = open_questions(self.state)
        return [one for one in asked if one.question.id not in self.pending_answers]


def load(options: GlobalOptions) -> ProjectState:
    """Read the state of the project's latest run."""
    root = project_root(options)
    with open_journal(root) as journal:
        last_run = read_last_run(journal, root)
        answers = answers_in(journal.take_inbox())
        is_own = is_own_journal(journal, root)
    return ProjectState(
        root=root,
        last_run=last_run,
        holder=holder_of(root),
        pending_answers=answers,
        is_own=is_own,
    )


def is_own_journal(journal: Journal, root: Path) -> bool:
    """Whether a run of this user wrote the journal of the project at *root* on this machine."""
    return KnownJournals(journals_folder()).has(journal, root)


def holder_of(root: Path) -> Owner | None:
    """Return the process that runs in the project now, if any."""
    folder = core_folder(root)
    return owner(folder) if folder else None


def refuse_agents_at(root: Path, what: str) -> Owner | None:
    """Return the process that runs in the project now, if any; raise ``UserError`` for its agents."""
    holder = holder_of(root)
    refuse_agents(what, run_pid=holder.pid if holder else None)
    return holder


def notes_of(options: GlobalOptions, workstream: str = "") -> list[str]:
    """Return what other tools left in the project that its user should know before work continues.

    *workstream* is the one that the command reads; by default the active one.
    """
    from gsd_core.planning.handoff import read_handoff, waiting_for

    root = project_root(options)
    notes: list[str] = []
    with suppress(PlanningError):
        # A roadmap that cannot be read is reported by whatever needs it.
        notes += [note] if (note := survey(root, planning_folder(root, workstream)).note) else []
    if name := workstream or active_workstream(root):
        notes.append(f"this is the workstream {name!r}; a run of gsd works on .planning itself only")
    if question := waiting_for(root, planning_folder(root, name)):
        notes.append(f"another tool waits for an answer: {first_line(question, MAX_NOTE)}")
    if handoff := read_handoff(root):
        where = ", ".join(filter(None, [f"phase {handoff.phase}" if handoff.phase else "", handoff.task]))
        files = ", ".join(handoff.paths)
        notes.append(f"work was paused{f' in {where}' if where else ''} (read it in {files})")
        said = [("before it continues", blocker) for blocker in handoff.blockers]
        said += [("noted", handoff.notes), ("to do next", handoff.next_action)]
        notes += [f"{label}: {first_line(text, MAX_NOTE)}" for label, text in said if text]
        notes += handoff.flaws
    # What `gsd pause` has written names the next command as it is typed anywhere.
    return [with_global_options(note, options) for note in notes]
