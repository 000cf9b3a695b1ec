"""Checks before a run writes anything: the idea, the repository, the identity, the tree, the range of phases.

Every check raises a ``UserError``, so that a refused run leaves no trace in the project.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gsd_core.codec import structure
from gsd_core.errors import (
    NO_TEMPORARY_HINT,
    ConfigError,
    IdeaError,
    MachineError,
    ProjectError,
    machine_error,
)
from gsd_core.git import Git
from gsd_core.git.repository import how_to_end
from gsd_core.git.untrusted import refuse_filters
from gsd_core.journal.store import Journal
from gsd_core.machine.claims import standing
from gsd_core.machine.due import is_initializing, starts_milestone
from gsd_core.machine.facts import AgentOpened, StepReturned
from gsd_core.machine.state import State
from gsd_core.model.counts import some_of
from gsd_core.model.ids import normal_phase
from gsd_core.model.step import Idea, StepResult
from gsd_core.planning.config import CONFIG, read_config
from gsd_core.planning.config_keys import validate_config
from gsd_core.planning.idea import parse_idea, read_idea
from gsd_core.planning.model import Planning
from gsd_core.planning.next_milestone import next_phase_number, next_version
from gsd_core.planning.roadmap import PATH as ROADMAP
from gsd_core.planning.survey import ARCHIVE, NONE_IN_PROGRESS, joined, read_planning
from gsd_core.settings import RunSettings

from .delivery import is_within
from .last_run import LastRun
from .places import PLANNING
from .snapshot import snapshot_of

if TYPE_CHECKING:
    from .runtime import RunRequest

LIMIT_BYTES = 400_000
SHOWN_PATHS = 5
MOST_PHASES = {"quick": 5, "standard": 8, "comprehensive": 12}
"""How many phases the built-in executor gives a new roadmap at most, by depth."""
UNFINISHED = ("running", "waiting", "parked", "failed", "result")
"""The states of a step that an interruption leaves behind."""
_BOM = b"\xef\xbb\xbf"
_DESCRIBE = "describe what to build, for whom, and when it is done"


def load_idea(path: Path, stdin: BinaryIO) -> Idea:
    """Return the idea document at *path*; ``-`` reads *stdin*.

    The idea is identified by the SHA-256 of its text without BOM, with ``\\n`` line endings and no
    surrounding whitespace, so that it stays the same idea when another editor saves it. Of a project's
    own ``IDEA.md``, it is the idea that the file keeps.
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
    if stored := parse_idea(text):
        # The idea may be kept where init writes it: it is still the same one when the run is resumed.
        name, text = stored.name, stored.text
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise IdeaError(f"{name!r} is empty", hint=_DESCRIBE)
    return _idea(name, text)


def kept_idea(root: Path) -> Idea | None:
    """Return the idea that the project's ``IDEA.md`` keeps, for a run whose journal is lost."""
    stored = read_idea(root)
    text = stored.text.strip() if stored else ""
    return _idea(stored.name, text) if stored and text else None


def _idea(name: str, text: str) -> Idea:
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
        if " " in str(path) and not path.suffix:
            hint = "the idea itself goes into a text file, or to stdin: echo 'YOUR IDEA' | gsd run -"
        # A path has no empty parts, so the second slash after the scheme is lost.
        if address := re.fullmatch(r"(https?):/+(.+)", str(path)):
            url = f"{address[1]}://{address[2]}"
            message = f"an idea is a file, or standard input, and not an address: {url}"
            hint = f"fetch it first: curl -fsSL {shlex.quote(url)} -o idea.md && gsd run idea.md"
            raise IdeaError(message, hint=hint) from error
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
    check_temporary_folder()
    await git.check_version()
    if not await git.is_repository():
        raise ProjectError(f"{root} is not a git repository", hint="run `git init` there first")
    if await git.is_ignored("."):
        message = f"{root} is ignored by the git repository {await git.top()}, so it cannot be committed"
        raise ProjectError(message, hint="run `git init` there to make it a repository of its own")
    await git.check_identity()
    return await git.data_directory()


async def check_project(request: RunRequest, git: Git, journal: Journal, last: LastRun) -> None:
    """Raise ``UserError`` if the run cannot start, or resume *last*, as requested."""
    # The facts of a journal that was copied from another project would be believed here.
    commits = [commit for of_phase in last.history.commits.values() for commit in of_phase]
    if commits and not await git.existing_commits(commits):
        path = await git.data_directory() / "journal.db"
        raise ProjectError(
            f"the journal is not of this repository: none of the commits of run {last.id} is here",
            hint=f"move {path} away to start without it: what the project's files say is then believed",
        )
    # Before the files are read, because those of another branch, or of half a merge, would mislead.
    if name := await git.operation():
        raise ProjectError(f"a git {name} is in progress here", hint=f"finish it first: {how_to_end(name)}")
    if conflicts := [entry.path for entry in await git.entries() if entry.unmerged]:
        raise ProjectError(
            f"files with merge conflicts: {some_of(conflicts)}", hint="resolve them, git add them, and commit"
        )
    # Now rather than at the first commit, after the agent's work was paid for.
    await git.call(refuse_filters, git.command)
    validate_config(read_config(request.root), CONFIG)
    settings = request.settings.of(RunSettings)
    if not settings.accept_branch:
        await _check_branch(request, git, last)
    await _check_planning_files(git, _unwritten(journal, last))
    if not request.options.only_asked:
        check_idea(request.root, request.idea, last.state, request.info.command)
    check_phases(request, last.state)
    # After an interruption, the uncommitted changes are an agent's work. The run continues with them.
    interrupted = any(record.status in UNFINISHED for record in last.state.steps.values())
    if settings.allow_dirty or interrupted:
        return
    if dirty := await git.dirty():
        # What a step adds to a planning file is committed together with what is there already.
        planned = any(path.startswith(".planning/") for path in dirty)
        then = "; those in .planning/ are committed with the next step" if planned else ""
        hint = f"commit or stash them, or use --allow-dirty to leave them out of every commit{then}"
        raise ProjectError(f"uncommitted changes to tracked files: {some_of(dirty)}", hint=hint)


def check_temporary_folder() -> None:
    """Refuse to start if temporary files would be put into the current folder, as Python does in the end."""
    try:
        # It is chosen once for each process, so that later calls do not fail if this one does not.
        folder = tempfile.gettempdir()
    except OSError as error:
        raise (machine_error(error) or error) from error
    named = {os.path.realpath(os.environ[name]) for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)}
    # The user may be in one of them.
    named |= {os.path.realpath(name) for name in ("/tmp", "/var/tmp", "/usr/tmp")}
    if os.path.realpath(folder) == os.path.realpath(os.curdir) and os.path.realpath(folder) not in named:
        message = "no folder for temporary files: TMPDIR, /tmp and /var/tmp cannot be written to"
        raise MachineError(message, hint=NO_TEMPORARY_HINT)


async def _check_branch(request: RunRequest, git: Git, last: LastRun) -> None:
    """Refuse to continue an unfinished run on another branch: its files and its commits are not there."""
    before, now = last.history.branch, await git.branch()
    if before is None or now in (before, last.history.chosen or before) or last.state.closed == "done":
        return
    gsd = request.info.command
    accept = f"`{gsd} resume --accept-branch` continues here"
    exists = bool(before) and await git.has_branch(before)
    hint = f"git switch {before}; or {accept}" if exists else accept
    was = f"on branch {before!r}" if before else "with a detached HEAD"
    here = f"the current branch is {now!r}" if now else "HEAD is detached now"
    raise ProjectError(f"the run works {was}, but {here}", hint=hint)


def _unwritten(journal: Journal, last: LastRun) -> tuple[str, ...]:
    """Return the paths that a recorded result moves or removes: a kill leaves them gone, not committed.

    It is all of the planning if an agent that owns it was at work: a command of the user that archives a
    milestone removes files before it commits that.
    """
    found: list[str] = []
    for name, record in last.state.steps.items():
        if record.status not in UNFINISHED:
            continue
        if any(fact.data.owns_planning for fact in journal.facts(AgentOpened, run=last.id, step=name)):
            return (PLANNING,)
        if record.status == "result":
            returned = next(journal.facts(StepReturned, after=record.result - 1))
            result = structure(returned.data.result, StepResult)
            found += [*result.removed, *(move.path for move in result.moved)]
    return tuple(found)


async def _check_planning_files(git: Git, expected: Sequence[str]) -> None:
    """Refuse to start without planning files that are committed: their work would be done again.

    Those at or below the *expected* paths may be missing.
    """
    gone = [entry.path for entry in await git.entries() if entry.missing]
    missing = [path for path in gone if path.startswith(".planning/") and not is_within(path, expected)]
    if not missing:
        return
    paths = " ".join(shlex.quote(path) for path in missing)
    where = paths if len(missing) <= SHOWN_PATHS else ".planning"
    hint = f"git restore --staged --worktree {where}; or, to have it done again, commit the deletion"
    raise ProjectError(f"planning files are committed, but missing: {some_of(missing)}", hint=hint)


def check_idea(root: Path, idea: Idea | None, state: State, gsd: str) -> None:
    """Raise ``UserError`` if the project at *root* and its last run's *state* have no place for *idea*.

    An existing project is never initialized again: its PROJECT.md would be replaced. If its milestones are
    done, another idea starts the next one. *gsd* is how to call
    gsd for the project.
    """
    if root.is_dir() and milestone_to_start(root, idea, state, kept_idea(root)):
        return
    # A run that was interrupted between two milestones continues.
    between = starts_milestone(state) or bool(state.run and state.closed is None)
    between = between or any(record.status == "result" for record in state.steps.values())
    if root.is_dir() and not is_initializing(state) and not between:
        planning = read_planning(root)
        if idea is None and planning.idle:
            raise ProjectError(f"nothing to do: {planning.idle}", hint=_idle_hint(root, gsd))
        if idea and planning.idle and idea.sha256 == state.idea:
            raise IdeaError(
                f"{idea.name!r} is the idea of the last milestone, which is complete",
                hint=f"give another idea, or change this one: {gsd} run IDEA",
            )
        if planning.idle or (planning.phases and not state.run and idea is not None):
            _refuse_idea(root, idea, planning, gsd)
    if idea is None:
        # A run may have done nothing but single steps, such as a survey.
        if not state.idea and not (root / ROADMAP).exists():
            raise IdeaError("no project here and no idea given", hint=f"start with: {gsd} run IDEA")
        return
    if state.run and idea.sha256 == state.idea:
        return
    if state.run and state.idea:
        message = f"a run for {state.idea_name!r} is in progress here; {idea.name!r} is a different idea"
        hint = f"continue with `{gsd} resume`, or use a new folder for the other idea"
        raise IdeaError(message, hint=hint)
    if state.run and (root / ROADMAP).exists():
        _refuse_idea(root, idea, read_planning(root), gsd)


def _refuse_idea(root: Path, idea: Idea | None, planning: Planning, gsd: str) -> None:
    """Raise ``IdeaError``: the project exists, and its files do not come from *idea*."""
    archives = [f"milestones/{path.name}" for path in sorted((root / ARCHIVE).glob("*-ROADMAP.md"))]
    found = joined([*planning.documents, *archives[:SHOWN_PATHS]])
    name = repr(idea.name) if idea else "an idea"
    state = f" ({planning.idle})" if planning.idle else ""
    hint = _idle_hint(root, gsd) if planning.idle else f"continue it without an idea: {gsd} run"
    message = f"this is already a project, which does not come from {name}; .planning/ has {found}{state}"
    raise IdeaError(message, hint=f"{hint}; or use another folder for the idea: gsd -C NEW_FOLDER run IDEA")


def _idle_hint(root: Path, gsd: str) -> str:
    if not (root / ROADMAP).exists() and not any((root / ARCHIVE).glob("*-ROADMAP.md")):
        return f"restore .planning/ROADMAP.md, or write one, then continue with: {gsd} run"
    return f"start the next milestone with: {gsd} run IDEA"


def check_phases(request: RunRequest, state: State) -> None:
    """Refuse phases that do not exist; in a finished project this keeps the run from being reopened.

    A range such as ``2-99`` may go beyond the last phase, but has to include one that exists. The
    phases that the run already has are not refused one by one: the roadmap may have lost some since.
    A roadmap that is still to be written, and paid for, has as many phases as its depth allows.
    """
    root, wanted = request.root, request.options.phases
    if wanted is None:
        return
    settings = request.settings.of(RunSettings)
    known = [phase.number for phase in read_planning(root).phases]
    has = f"the roadmap has {', '.join(known)}"
    is_new = not known and not (root / ROADMAP).exists() and not any((root / ARCHIVE).glob("*"))
    if is_new or milestone_to_start(root, request.idea, state, kept_idea(root)):
        if settings.executors != ("native",):
            return
        first = int(next_phase_number(root))
        known = [str(number) for number in range(first, first + MOST_PHASES[settings.depth])]
        has = f"at depth {settings.depth}, a new roadmap has at most the phases {known[0]} to {known[-1]}"
    if not known:
        return
    missing: list[str] = []
    if is_new or wanted != state.options.phases:
        typed = [part.strip() for part in (settings.only or settings.phases).split(",")]
        single = [normal_phase(part) for part in typed if part and "-" not in part]
        missing = [number for number in single if number not in known]
    if not missing and not set(wanted) & set(known):
        missing = [*wanted]
    if missing:
        noun, verb = ("phase", "does") if len(missing) == 1 else ("phases", "do")
        hint = "choose others" if is_new else f"list the phases with: {request.info.command} phases"
        raise ConfigError(f"{noun} {', '.join(missing)} {verb} not exist; {has}", hint=hint)


def milestone_to_start(root: Path, idea: Idea | None, state: State, kept: Idea | None) -> str:
    """Return the version of the milestone that *idea* starts in the project at *root*; empty for none.

    The journal keeps the earlier runs. A new one begins only when the work of the last one is done, because
    two runs never share a project's phases.

    *state* is that of the last run, *kept* the idea in the project's IDEA.md. Raises ``PlanningError`` for
    planning files that cannot be read.
    """
    if idea is None or idea.sha256 in (state.idea, kept.sha256 if kept else ""):
        return ""
    if starts_milestone(state) or any(record.status == "result" for record in state.steps.values()):
        return ""  # the last run still writes the planning files
    planning = read_planning(root)
    if planning.idle:
        return next_version(root) if planning.idle.endswith(NONE_IN_PROGRESS) else ""
    if not planning.phases or state.unfinished:
        return ""
    complete = all(standing(state, phase) != "open" for phase in snapshot_of(planning).phases)
    return next_version(root) if complete else ""


def closes_first(root: Path) -> str:
    """Return the milestone that has to be closed before the next one starts; empty if it is closed."""
    planning = read_planning(root)
    return planning.milestone if planning.phases else ""
