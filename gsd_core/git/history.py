"""What is committed: found by trailers, never by position or words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from .command import Command
from .status import entries, within

RUN, STEP, TASK = "GSD-Run", "GSD-Step", "GSD-Task"


@frozen(kw_only=True)
class TrailedCommit:
    """A commit of ours, with what its trailers say; *task* is empty on a step's own commit."""

    sha: str
    run: str
    step: str
    task: str = ""
    subject: str = ""


@frozen(kw_only=True)
class DiffStat:
    """The size of a difference; binary files count as files only."""

    files: int = 0
    insertions: int = 0
    deletions: int = 0


def head(git: Command) -> str | None:
    """Return the id of the last commit; ``None`` if there is none yet."""
    code, out = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=(0, 1))
    return out if code == 0 else None


def find(git: Command, trailers: Mapping[str, str], since: str = "") -> str | None:
    """Return the latest commit below HEAD whose ``GSD-`` trailers are exactly *trailers*.

    With *since*, a commit that *since* does not reach.
    """
    patterns = [f"--grep={name}: {value}" for name, value in trailers.items()]
    found = _log(git, *patterns, *([f"^{since}", "HEAD"] if since else []))
    return next((sha for sha, its_own, _ in found if its_own == dict(trailers)), None)


def trailed(git: Command, run: str | None = None) -> tuple[TrailedCommit, ...]:
    """Return the commits of *run*, or of all runs, that HEAD reaches, oldest first."""
    found = [
        TrailedCommit(
            sha=sha,
            run=trailers[RUN],
            step=trailers.get(STEP, ""),
            task=trailers.get(TASK, ""),
            subject=subject,
        )
        for sha, trailers, subject in _log(git, f"--grep={RUN}: {run or ''}")
        if RUN in trailers and run in (None, trailers[RUN])
    ]
    return tuple(reversed(found))


def last_of(git: Command, path: str) -> str:
    """Return the last commit below HEAD that changed *path*; ``""`` if none did."""
    if head(git) is None:
        return ""
    return git("log", "-1", "--no-show-signature", "--format=%H", "--", path)


def _log(git: Command, *arguments: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield id, ``GSD-`` trailers and subject of the commits that fit *arguments*, newest first."""
    if head(git) is None:
        return
    out = git(
        "log",
        "-z",
        "--topo-order",
        "--no-show-signature",
        "--fixed-strings",
        "--all-match",
        "--format=%H%x01%s%x01%(trailers:only=true,unfold=true)",
        *arguments,
    )
    for commit in filter(None, out.split("\0")):
        sha, subject, trailers = commit.split("\x01", 2)
        yield sha, _trailers(trailers), subject


def _trailers(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs if name.startswith("GSD-")}


def order(git: Command, directory: str) -> dict[str, int]:
    """Return for each file below *directory* when it was last committed: a larger number is later.

    The numbers are positions in topological order and mean something within one answer only.
    Files that are not committed as they are (new, changed, ignored) all have the largest number.
    """
    commits = list(_commits_below(git, directory))
    places: dict[str, int] = {}
    for place, paths in enumerate(commits):
        places.update({path: len(commits) - place for path in paths if path not in places})
    here = set(_files(git.root, directory))
    uncommitted = (here - set(places)) | {entry.path for entry in within(entries(git), [directory])}
    newest = dict.fromkeys(uncommitted, len(commits) + 1)
    return {path: place for path, place in (places | newest).items() if path in here}


def _commits_below(git: Command, directory: str) -> Iterator[list[str]]:
    """Yield the paths that each commit touched below *directory*, newest commit first."""
    if head(git) is None:
        return
    out = git(
        "log",
        "-z",
        "--topo-order",
        "--no-show-signature",
        "--no-renames",
        "--relative",
        "--name-only",
        "--format=%x01%H",
        "--",
        directory,
    )
    for commit in re.split(r"(?:\A|\0)\x01[0-9a-f]{40,64}\0?", out)[1:]:
        yield [path for path in commit.removeprefix("\n").split("\0") if path]


def _files(root: Path, directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root / directory):
        folders[:] = [name for name in folders if name != ".git"]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in names)


def paths_of(git: Command, commit: str) -> tuple[str, ...]:
    """Return the paths that *commit* changed, relative to the project's root."""
    return _diff_tree(git, commit)


def created_by(git: Command, commit: str) -> tuple[str, ...]:
    """Return the paths that are new with *commit*."""
    return _diff_tree(git, commit, "--diff-filter=A")


def _diff_tree(git: Command, commit: str, *arguments: str) -> tuple[str, ...]:
    out = git(
        "diff-tree",
        "-z",
        "-r",
        "--root",
        "--no-commit-id",
        "--no-renames",
        "--relative",
        "--name-only",
        *arguments,
        commit,
    )
    return tuple(sorted(path for path in out.split("\0") if path))


def time_of(git: Command, commit: str) -> datetime:
    """Return when *commit* was made, in UTC."""
    seconds = git("show", "--no-patch", "--no-show-signature", "--format=%ct", commit)
    return datetime.fromtimestamp(int(seconds), UTC)


def diff_stat(git: Command, since: str | None, until: str = "HEAD") -> DiffStat:
    """Return the size of the difference between two commits; *since* ``None`` is an empty tree."""
    if since is None:
        since = git("hash-object", "-t", "tree", "--stdin")
    out = git("diff", "-z", "--no-ext-diff", "--no-renames", "--relative", "--numstat", since, until, "--")
    rows = [line.split("\t", 2) for line in out.split("\0") if line]
    return DiffStat(
        files=len(rows),
        insertions=sum(_count(row[0]) for row in rows),
        deletions=sum(_count(row[1]) for row in rows),
    )


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
