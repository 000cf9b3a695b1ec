"""One commit: exactly the paths that are meant, with trailers, whatever else is staged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .command import Command
from .history import head
from .status import Entry, entries, within

NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def commit(
    git: Command,
    paths: Collection[str],
    subject: str,
    *,
    body: str = "",
    trailers: Mapping[str, str],
    verify: bool,
    allow_empty: bool = False,
) -> str:
    """Commit what differs at or below *paths* and return the commit's id, or ``""`` if nothing does."""
    found = within(entries(git), paths)
    if not found:
        return _commit_nothing(git, message(subject, body, trailers)) if allow_empty else ""
    with path_file(entry.path for entry in found) as listed:
        _stage(git, found)
        git(
            *(() if verify else NO_HOOKS),
            "commit",
            "--quiet",
            "--only",
            "--allow-empty",
            "--no-edit",
            "--cleanup=whitespace",
            "--file=-",
            *(() if verify else ("--no-verify",)),
            f"--pathspec-from-file={listed}",
            "--pathspec-file-nul",
            stdin=message(subject, body, trailers),
        )
    return git("rev-parse", "--verify", "HEAD^{commit}")


def _commit_nothing(git: Command, text: str) -> str:
    """Commit the last commit's tree once more, past the index: what is staged there is not ours."""
    last = head(git)
    tree = git("rev-parse", f"{last}^{{tree}}") if last else git("mktree")
    made = git("commit-tree", *(("-p", last) if last else ()), tree, stdin=text)
    git("update-ref", "-m", "commit: empty", "HEAD", made, last or "0" * len(made))
    return made


def message(subject: str, body: str, trailers: Mapping[str, str]) -> str:
    """Return a commit's message: one line, the body, and the trailers as its last paragraph."""
    last = "\n".join(f"{name}: {_line(value)}" for name, value in trailers.items())
    return "\n\n".join(part for part in (_line(subject), body.strip(), last) if part) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def _stage(git: Command, found: Collection[Entry]) -> None:
    """Bring the index up to the work tree; what is staged already git would not find there."""
    unstaged = [entry.path for entry in found if entry.unstaged != " "]
    if unstaged:
        add(git, unstaged)


def add(git: Command, paths: Collection[str], environment: Mapping[str, str] | None = None) -> None:
    """Stage *paths*, deletions as well."""
    with path_file(paths) as listed:
        git(
            "add",
            "--all",
            f"--pathspec-from-file={listed}",
            "--pathspec-file-nul",
            environment=environment,
        )


@contextmanager
def path_file(paths: Collection[str] | Generator[str]) -> Generator[Path]:
    """Lend a file that names *paths* for ``--pathspec-from-file``: any number, any character."""
    with tempfile.NamedTemporaryFile(prefix="gsd-paths-") as file:
        file.write(os.fsencode("".join(f"{path}\0" for path in paths)))
        file.flush()
        yield Path(file.name)
