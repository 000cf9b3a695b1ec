"""Commands that edit planning files: with the project's lock, finished after a kill, and never done twice.

See :mod:`gsd_core.run.edits`. An edit counts as finished when its command has said so: only then is it
forgotten. The same command typed again before that finishes the first one.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import secrets
import shlex
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import attrs
import click

from gsd_core.errors import JournalError, Locked, ProjectError
from gsd_core.files import read_below, write_below
from gsd_core.git import Git
from gsd_core.journal.inbox import put
from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.schema import check_version
from gsd_core.planning.config import read_config
from gsd_core.planning.edits import Edit
from gsd_core.run.edits import StoredEdit, do_edit, finish_edit, forget, stored_edit
from gsd_core.run.recovery import remove_remains
from gsd_core.settings import RunSettings
from gsd_core.views.next import Next

from .commands import with_global_options
from .global_options import GlobalOptions
from .output import print_json, print_line, warn
from .project import core_folder, holder_of, journal_path, open_journal
from .project_settings import run_settings

REQUEST = "request.json"
"""What a command has asked the active run for, until it has said so."""


@attrs.frozen(kw_only=True)
class Editor:
    """Edits the planning files of the project at *root* for one *command*, in its words without flags.

    *directory* is that of the journal. *finished* is the edit of the same command that was interrupted, and
    *request* the item of the inbox with which it has asked a run that is not active any more.
    """

    root: Path
    directory: Path
    command: tuple[str, ...]
    finished: StoredEdit | None = None
    request: int = 0

    def carry_out(self, plan: Callable[[], Edit], *, commit: bool = True) -> StoredEdit:
        """Carry out what *plan* returns, once, and return it with its commit."""
        if self.finished:
            warn(["an earlier try was interrupted, and is finished now"])
            return self.finished
        docs = commit and run_settings(self.root, read_config(self.root)).of(RunSettings).commit_docs
        # Git processes are marked: one that outlives this process is ended before its commit is made again.
        owner = f"{secrets.token_hex(8)} {self.directory}"
        git = Git(self.root, environment={"GSD_RUN": owner})
        edit = plan()
        if not edit.operations:
            warn(["done already: nothing is changed"])
        elif docs:
            asyncio.run(git.check_identity())
        about: dict[str, Any] = {"command": self.command, "request": self.request}
        return asyncio.run(do_edit(self.root, self.directory, edit, git=git, docs=docs, **about))


@contextmanager
def editing(root: Path, command: tuple[str, ...]) -> Generator[Editor]:
    """Hold the project's lock for *command*, and finish first what an earlier one has left undone.

    Leave the block when the user has been told the result. Raises ``Locked``, ``ProjectError``,
    ``PlanningError``, and ``JournalError`` if the project has a journal of a newer gsd.
    """
    directory = core_folder(root)
    if directory is None:
        raise ProjectError(f"{str(root)!r} is in no git repository", hint="make one: git init")
    check_version(journal_path(root))
    with ProjectLock(directory):
        asyncio.run(remove_remains(Git(root), directory))
        stored = _finish_first(root, directory, command)
        request = stored.request if stored else _asked_before(root, directory, command)
        yield Editor(root=root, directory=directory, command=command, finished=stored, request=request)
        if request:
            with open_journal(root, writable=True) as journal:
                journal.consumed([request])
            (directory / REQUEST).unlink(missing_ok=True)
        forget(directory)


def _asked_before(root: Path, directory: Path, command: tuple[str, ...]) -> int:
    """Return the request that *command* has made of a run, if none has taken it; end here if one has."""
    if not (key := _request_of(directory, command)):
        return 0
    with open_journal(root, writable=True) as journal:
        item, is_done = journal.find_item(key) or (0, False)
    if is_done:
        (directory / REQUEST).unlink(missing_ok=True)
        warn(["done already: an earlier try has asked the run that was active, and that has done it"])
        raise click.exceptions.Exit(0)
    return item


def _request_of(directory: Path, command: tuple[str, ...]) -> str:
    """Return the key with which *command* has asked a run, and has not said so."""
    with suppress(OSError, ValueError):
        stored = json.loads(read_below(directory, REQUEST))
        return str(stored["key"]) if stored["command"] == list(command) else ""
    return ""


def _finish_first(root: Path, directory: Path, command: tuple[str, ...]) -> StoredEdit | None:
    """Finish what is stored; return it if *command* had asked for it, else say so."""
    stored = asyncio.run(finish_edit(root, directory))
    if stored is None or (command and stored.command == command):
        return stored
    if stored.request:
        with open_journal(root, writable=True) as journal:
            journal.consumed([stored.request])
    warn([f"finished first: {stored.label}, which was interrupted"])
    forget(directory)
    return None


def finish_interrupted(options: GlobalOptions) -> None:
    """Finish what an earlier command has left undone, unless a process is active in the project."""
    root = options.directory.resolve()
    if root.is_dir() and (directory := core_folder(root)) and (directory / "edit.json").exists():
        with suppress(Locked, JournalError), editing(root, ()):
            pass


def interrupted(root: Path, gsd: str) -> Next | None:
    """Return what an earlier command has left undone, if anything, and the command that finishes it.

    It comes before anything else: the files may be half changed. Before that comes a journal of a newer gsd,
    with which no command of this one can continue.
    """
    directory = core_folder(root)
    if directory is None or holder_of(root):
        return None
    try:
        check_version(journal_path(root))
        stored = stored_edit(directory)
    except (JournalError, ProjectError) as error:
        return Next(reason=f"{error}: {error.hint}")
    if stored is None:
        return None
    words = shlex.join(stored.command) if stored.command else "resume"
    return Next(reason=f"a command was interrupted: {stored.label}", command=f"{gsd} {words}")


def ask_run(
    options: GlobalOptions,
    root: Path,
    kind: Literal["phase", "todo"],
    asked: Mapping[str, str],
    command: tuple[str, ...],
    *,
    what: str,
    as_json: bool,
) -> None:
    """Ask the active run for an edit, and say so; raise ``Locked`` again if it is no run.

    While an agent works, a change in ``.planning`` could be taken for the agent's own.
    """
    holder, path = holder_of(root), journal_path(root)
    if holder is None or not path.exists():
        raise
    # The same key after a kill: the request is made once.
    key = _request_of(path.parent, command) or secrets.token_hex(16)
    text = json.dumps({"command": command, "key": key})
    write_below(path.parent, REQUEST, text.encode(), mode=0o600)
    put(path, kind, asked, by=getpass.getuser(), key=key)
    if as_json:
        print_json({"asked": True, "pid": holder.pid})
    else:
        print_line(f"the active run (pid {holder.pid}) {what} after its current step")
        print_line(with_global_options("follow it with: gsd log --follow", options))
    (path.parent / REQUEST).unlink(missing_ok=True)
