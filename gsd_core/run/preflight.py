"""Checks before a run writes anything: the idea, the repository, the identity, the tree, the range of phases.

Every check raises a ``UserError``, so that a refused run leaves no trace in the project.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from gsd_core.errors import ConfigError, IdeaError, ProjectError
from gsd_core.git import Git
from gsd_core.machine.state import State
from gsd_core.model.ids import normal_phase
from gsd_core.model.step import Idea
from gsd_core.planning.survey import read_planning
from gsd_core.settings import RunSettings

from .last_run import LastRun
from .runtime import RunRequest

LIMIT_BYTES = 400_000
SHOWN_PATHS = 5
_BOM = b"\xef\xbb\xbf"
_DESCRIBE = "describe what to build, for whom, and when it is done"


def load_idea(path: Path, stdin: BinaryIO) -> Idea:
    """Return the idea document at *path*; ``-`` reads *stdin*.

    The idea is identified by the SHA-256 of its text without BOM, with ``\\n`` line endings and no
    surrounding whitespace, so that it stays the same idea when another editor saves it.
    """
    name = "stdin" if str(path) == "-" else path.name
    raw = _read(path, stdin)
    if len(raw) > LIMIT_BYTES:
        message = f"{name!r} is larger than {LIMIT_BYTES // 1000} kB"
        raise IdeaError(message, hint=f"an idea takes a few pages: {_DESCRIBE}")
    if (at := raw.find(b"\0")) >= 0:
        message = f"{name!r} is binary: NUL at byte {at}"
        raise IdeaError(message, hint="save it as plain text or Markdown, in UTF-8")
    try:
        text = raw.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (len(_BOM) if raw.startswith(_BOM) else 0)
        message = f"{name!r} is not UTF-8: byte {raw[at]:#04x} at {at}"
        raise IdeaError(message, hint="save it in UTF-8") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise IdeaError(f"{name!r} is empty", hint=_DESCRIBE)
    text += "\n"
    return Idea(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def _read(path: Path, stdin: BinaryIO) -> bytes:
    # One byte more than allowed shows that a file is too large, without reading all of it.
    if str(path) == "-":
        return stdin.read(LIMIT_BYTES + 1)
    try:
        with path.open("rb") as file:
            return file.read(LIMIT_BYTES + 1)
    except FileNotFoundError as error:
        hint = "give a text file, or - for stdin"
        raise IdeaError(f"no idea document at {str(path)!r}", hint=hint) from error
    except IsADirectoryError as error:
        message = f"{str(path)!r} is a folder, not an idea document"
        raise IdeaError(message, hint="give a text file") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise IdeaError(f"cannot read {str(path)!r}: {why}", hint="give a readable text file") from error


async def check_repository(request: RunRequest, git: Git) -> Path:
    """Return the folder of the journal and the lock; raise ``ProjectError`` if git cannot commit here."""
    root = request.root
    if not await git.is_repository():
        raise ProjectError(f"{root} is not a git repository", hint="run `git init` there first")
    if await git.is_ignored("."):
        raise ProjectError(
            f"{root} is ignored by the git repository {await git.top()}, so it cannot be committed",
            hint="run `git init` there to make it a repository of its own",
        )
    if await git.identity() is None:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know your name and email, so it cannot commit", hint=hint)
    return await git.data_directory()


async def check_project(request: RunRequest, git: Git, last: LastRun) -> None:
    """Raise ``UserError`` if the run cannot start, or resume *last*, as requested."""
    _check_idea(request, last.state)
    _check_phases(request, last.state)
    settings: RunSettings = request.settings.of(RunSettings)
    # After an interruption, the uncommitted changes are an agent's work. The run continues with them.
    unfinished = ("running", "waiting", "parked", "failed", "result")
    interrupted = any(record.status in unfinished for record in last.state.steps.values())
    if settings.allow_dirty or interrupted:
        return
    if dirty := await git.dirty():
        more = f" and {len(dirty) - SHOWN_PATHS} more" if len(dirty) > SHOWN_PATHS else ""
        raise ProjectError(
            f"uncommitted changes to tracked files: {', '.join(dirty[:SHOWN_PATHS])}{more}",
            hint="commit or stash them, or use --allow-dirty to leave them out of every commit",
        )


def _check_idea(request: RunRequest, state: State) -> None:
    idea, gsd = request.idea, request.info.command
    planned = (request.root / ".planning" / "ROADMAP.md").exists()
    if idea is None:
        if not state.run and not planned:
            raise IdeaError("no project here and no idea given", hint=f"start with: {gsd} run IDEA")
        return
    if state.run and idea.sha256 == state.idea:
        return
    complete = state.seen is not None and all(phase.ticked for phase in state.seen.phases)
    if state.closed == "done" and complete:
        raise IdeaError(
            f"this project is complete for {state.idea_name!r}; {idea.name!r} is a different idea",
            hint="gsd cannot add another milestone yet; use a new folder",
        )
    if state.run and state.idea:
        raise IdeaError(
            f"a run for {state.idea_name!r} is in progress here; {idea.name!r} is a different idea",
            hint=f"continue with `{gsd} resume`, or use a new folder for the other idea",
        )
    if planned:
        raise IdeaError(
            f"this project already has a roadmap, which does not come from {idea.name!r}",
            hint=f"continue without an idea: {gsd} run",
        )


def _check_phases(request: RunRequest, state: State) -> None:
    """Refuse phases that do not exist; in a finished project this keeps the run from being reopened.

    A range such as ``2-99`` may go beyond the last phase, but has to include one that exists. The
    phases that the run already has are not refused one by one: the roadmap may have lost some since.
    """
    known = [phase.number for phase in read_planning(request.root).phases]
    wanted = request.options.phases
    if wanted is None or not known:
        return
    missing: list[str] = []
    if wanted != state.options.phases:
        settings: RunSettings = request.settings.of(RunSettings)
        typed = [part.strip() for part in (settings.only or settings.phases).split(",")]
        single = [normal_phase(part) for part in typed if part and "-" not in part]
        missing = [number for number in single if number not in known]
    if not missing and not set(wanted) & set(known):
        missing = [*wanted]
    if missing:
        noun, verb = ("phase", "does") if len(missing) == 1 else ("phases", "do")
        raise ConfigError(
            f"{noun} {', '.join(missing)} {verb} not exist; the roadmap has {', '.join(known)}",
            hint=f"list the phases with: {request.info.command} phases",
        )
