"""Read the idea document; whatever is wrong with it is said before anything is written.

What plugins propose for GSD's ``config.json``; the user's own values win over it.

What has to hold before a run writes anything: repository, identity, clean tree, one idea.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from attrs import frozen

from gsd_core.errors import IdeaError, ProjectError
from gsd_core.git import Git
from gsd_core.hookspecs import ConfigValue, ProjectInfo, gsd_write_config
from gsd_core.journal.codec import structure
from gsd_core.journal.schema import Record
from gsd_core.journal.store import Journal
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State
from gsd_core.model.ids import new_run_id
from gsd_core.model.step import Idea
from gsd_core.plugins.calling import Hooks
from gsd_core.settings import RunSettings

from .runtime import RunRequest

LIMIT_BYTES = 400_000
BOM = b"\xef\xbb\xbf"


def load_idea(path: Path, stdin: BinaryIO) -> Idea:
    """Return the idea at *path*; ``-`` is *stdin*.

    Its identity is the SHA-256 of its text without BOM, with ``\\n`` as the only line end and
    without blank space around it: the same words saved by another editor are the same idea.
    """
    name = "stdin" if str(path) == "-" else path.name
    raw = _read(path, stdin)
    text = _text(raw, name)
    return Idea(name=name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def _read(path: Path, stdin: BinaryIO) -> bytes:
    if str(path) == "-":
        return stdin.read(LIMIT_BYTES + 1)
    try:
        with path.open("rb") as file:
            return file.read(LIMIT_BYTES + 1)
    except FileNotFoundError as error:
        raise IdeaError(
            f"no idea document at {str(path)!r}", hint="name a text file, or - for stdin"
        ) from error
    except IsADirectoryError as error:
        raise IdeaError(
            f"{str(path)!r} is a folder, not an idea document", hint="name a text file"
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise IdeaError(
            f"cannot read {str(path)!r}: {why}", hint="name a text file that you may read"
        ) from error


def _text(raw: bytes, name: str) -> str:
    if len(raw) > LIMIT_BYTES:
        hint = "an idea is a few pages: what to build, for whom, and what done means"
        raise IdeaError(f"{name!r} is larger than {LIMIT_BYTES // 1000} kB", hint=hint)
    if (at := raw.find(b"\0")) >= 0:
        raise IdeaError(
            f"{name!r} is binary: a NUL at byte {at}", hint="save it as plain text or Markdown, in UTF-8"
        )
    try:
        text = raw.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (len(BOM) if raw.startswith(BOM) else 0)
        raise IdeaError(
            f"{name!r} is not UTF-8: byte {raw[at]:#04x} at {at}", hint="save it in UTF-8"
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise IdeaError(f"{name!r} is empty", hint="write down what to build, for whom, and what done means")
    return text + "\n"


def proposed(hooks: Hooks, project: ProjectInfo) -> dict[str, Any]:
    """Return what the plugins propose, as a nested table; the same key twice is an error."""
    found = hooks.collect(gsd_write_config, _key, project)
    config: dict[str, Any] = {}
    for _, value in found.items:
        table = config
        *parents, last = value.key.split(".")
        for name in parents:
            table = table.setdefault(name, {})
        table[last] = value.value
    return config


def _key(value: ConfigValue) -> str:
    return value.key


def merged(proposals: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return *own* with what it does not speak of taken from *proposals*."""
    result = dict(proposals)
    for key, value in own.items():
        below = result.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            result[key] = merged(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            result[key] = value
    return result


SHOWN = 5


@frozen(kw_only=True)
class Found:
    """The run to go on with, or a new one's id (then *state* is empty)."""

    run: str
    state: State


async def place(request: RunRequest, git: Git) -> Path:
    """Return the folder of the journal and the lock; raise ``ProjectError`` if git cannot be used."""
    if not await git.is_repository():
        raise ProjectError(f"{request.root} is no git repository", hint="run `git init` there first")
    if await git.is_ignored("."):
        raise ProjectError(
            f"{request.root} is ignored by the git repository {await git.top()}, so it cannot be committed",
            hint="run `git init` there to make it a repository of its own",
        )
    if await git.identity() is None:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know who you are, so it cannot commit", hint=hint)
    return await git.data_directory()


def last_run(directory: Path, request: RunRequest) -> Found:
    """Return the project's last run, unless it is done or there is none: then a new one."""
    with Journal.open(directory / "journal.db", clock=request.clock, writable=False) as journal:
        runs = [record.run for record in journal.events(kinds=["run.started"])]
        if runs:
            state = fold(State(), journal.events(run=runs[-1], facts_only=True), structure)
            return Found(run=runs[-1], state=state)
    return Found(run=new_run_id(request.clock()), state=State())


async def check_project(request: RunRequest, git: Git, found: Found) -> None:
    """Raise ``UserError`` if the run cannot begin as asked."""
    _check_idea(request, found)
    settings: RunSettings = request.settings.of(RunSettings)
    if settings.allow_dirty or _interrupted(found.state):
        return
    if dirty := await git.dirty():
        shown = ", ".join(dirty[:SHOWN]) + (f" and {len(dirty) - SHOWN} more" if len(dirty) > SHOWN else "")
        raise ProjectError(
            f"tracked files are changed: {shown}",
            hint="commit or stash them, or start with --allow-dirty to leave them out of every commit",
        )


def _interrupted(state: State) -> bool:
    """An agent's work lies uncommitted in the tree, from an execution that did not end."""
    unfinished = ("running", "waiting", "parked", "failed", "result")
    return any(r.status in unfinished for r in state.steps.values())


def _check_idea(request: RunRequest, found: Found) -> None:
    idea, state = request.idea, found.state
    planned = (request.root / ".planning" / "ROADMAP.md").exists()
    if idea is None and not state.run and not planned:
        raise IdeaError("there is nothing to go on with, and no idea", hint="gsd run IDEA.md")
    if idea is None or (state.run and idea.sha256 == state.idea):
        return
    if state.closed == "done" and _is_complete(state):
        raise IdeaError(
            f"this project is complete for {state.idea_name!r}; {idea.name!r} is another idea",
            hint="a further milestone for another idea is not there yet; use a new folder",
        )
    if state.run and state.idea:
        raise IdeaError(
            f"{state.idea_name!r} is under way here; {idea.name!r} is another idea",
            hint="go on with `gsd resume`, or use a new folder for the other idea",
        )
    if planned:
        raise IdeaError(
            f"this project has a roadmap already, and {idea.name!r} is not in it",
            hint="go on without an idea: gsd run",
        )


def _is_complete(state: State) -> bool:
    return state.seen is not None and all(phase.ticked for phase in state.seen.phases)


def idea_of(request: RunRequest, facts: Sequence[Record]) -> Idea | None:
    """Return the idea that the run began with, else the one that is given now."""
    for fact in facts:
        if fact.kind == "run.started" and fact.data.get("idea"):
            return structure(fact.data["idea"], Idea)
    return request.idea
