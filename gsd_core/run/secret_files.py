"""Secrets in files that a step wants to commit: found, reported to the agent, and left to a person.

A commit spreads: it is pushed, and no later commit takes a secret out of the history. So neither an agent
nor ``--yes`` decides about one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from gsd_core.errors import Parked
from gsd_core.git import digests
from gsd_core.machine.facts import FilesLeft
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.model.step import StepRequest
from gsd_core.protected_paths import is_secret_name, is_suspect_name
from gsd_core.sanitize import find_secrets, safe_text

from .questions import ask, withdraw
from .runtime import Run

SCAN_LIMIT = 2_000_000
"""How many bytes of a file are searched; longer files are data, and hardly written by hand."""
SHOWN = 10
LEAVE, COMMIT = "Leave them uncommitted", "Commit them"
REMOVE = (
    "Take the secrets out: read them from the environment or from a file that git ignores. "
    "If they have to be committed, report the task again; then a person decides."
)


async def find_secret_files(run: Run, paths: Iterable[str]) -> dict[str, str]:
    """Return those of *paths* that contain secrets which are not in the last commit, each with the reason."""
    suspects: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        name = PurePosixPath(path).name
        if is_secret_name(name):
            if (run.tree / path).exists():
                suspects[path] = "files with this name usually contain secrets"
            continue
        named, suspect = next(iter(find_secrets(path)), None), is_suspect_name(name)
        # In a thread: the search in a large file takes up to a second, and would block the loop.
        found = await run.git.call(secrets_in, run.tree / path, suspect=suspect)
        if not found and not named:
            continue
        before = await run.git.text_at(path)
        if named and not before:
            suspects[path] = "its name contains a secret"
            continue
        known = {secret for _, _, secret in find_secrets(before[:SCAN_LIMIT], suspect=suspect)}
        if new := [(kind, line) for kind, line, secret in found if secret not in known]:
            kind, line = new[0]
            suspects[path] = f"{kind} in line {line}"
    return suspects


def secrets_in(file: Path, *, suspect: bool) -> list[tuple[str, int, str]]:
    """Return the secrets in a file: the kind of each, its line, and its value."""
    try:
        # git commits a link as its target's name, and never what is behind it.
        if file.is_symlink() or not file.is_file():
            return []
        with file.open("rb") as stream:
            data = stream.read(SCAN_LIMIT)
    except OSError:
        return []  # git cannot read it either, and says so
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        # Byte by byte if it is binary: a key in DER is recognized by its first bytes.
        text = data.decode("utf-8" if b"\0" not in data else "latin-1", "replace")
    return list(find_secrets(text, suspect=suspect))


async def allowed_secret_files(run: Run, step: StepRequest, suspects: Mapping[str, str]) -> set[str]:
    """Return those of *suspects* that a person allows to be committed; record those that stay uncommitted.

    If nobody can answer now, they stay uncommitted. An answer holds for the content that it was given for.
    """
    if not suspects:
        return set()
    contents = digests(run.tree, sorted(suspects))
    if _were_left(run, step, contents):
        return set()
    digest = hashlib.sha256(repr(contents).encode()).hexdigest()[:12]
    question = Question(
        text=f"Commit files with secrets? They become part of the history.{bullets(suspects)}",
        header="Secrets",
        options=(Option(label=LEAVE, recommended=True), Option(label=COMMIT)),
        free_text=False,
        human_only=True,
    )
    inquiry = Inquiry(kind="permission", questions=(question,), reason=f"{step.id} wants to commit them")
    key = f"secrets {digest}"
    try:
        [answer] = await ask(run, inquiry, step=step.id, key=key, agent_waits=True)
        if answer.chosen == (COMMIT,):
            return set(suspects)
    except Parked:
        withdraw(run, step.id, key)
    left = FilesLeft(paths=tuple(sorted(suspects)), found=contents, why="secrets")
    run.record(left, step=step.id, attempt=step.attempt)
    return set()


def record_left(run: Run, step: StepRequest, paths: Iterable[str]) -> None:
    """Record that *paths*, whose names say that they contain secrets, stay uncommitted; each content once."""
    if (contents := digests(run.tree, sorted(paths))) and not _were_left(run, step, contents):
        left = FilesLeft(paths=tuple(sorted(contents)), found=contents, why="secrets")
        run.record(left, step=step.id, attempt=step.attempt)


def _were_left(run: Run, step: StepRequest, contents: Mapping[str, str]) -> bool:
    """Whether files with these contents stayed uncommitted already: it is asked once."""
    facts = run.facts(FilesLeft, step=step.id)
    return any(contents.items() <= (fact.data.found or {}).items() for fact in facts)


def bullets(suspects: Mapping[str, str]) -> str:
    """Return a line for each file with the reason; a secret itself is never shown."""
    items = sorted(suspects.items())
    more = [f"\n- and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    lines = [f"\n- {safe_text(path, multiline=False)}: {why}" for path, why in items[:SHOWN]]
    return "".join([*lines, *more])
