"""The history: commits found by their trailers, never by position or wording."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from .command import Command
from .repository import entries, head, prefix, within

MAX_ARGUMENTS = 1000
RUN, STEP, TASK, PROJECT = "GSD-Run", "GSD-Step", "GSD-Task", "GSD-Project"
EDIT = "GSD-Edit"


@attrs.frozen(kw_only=True)
class TrailedCommit:
    """A commit of a run, with its trailers; *task* is empty on a step's own commit."""

    sha: str
    run: str
    step: str
    task: str = ""
    subject: str = ""


PATCH_LIMIT = timedelta(seconds=20)
PATHS = ("-z", "--no-renames", "--relative", "--name-only")
"""How git lists the paths that commits changed."""


def find(git: Command, trailers: Mapping[str, str], *, since: str = "") -> str | None:
    """Return the project's latest commit below HEAD whose ``GSD-`` trailers are exactly *trailers*.

    With *since*, only commits that *since* does not reach count.
    """
    patterns = [f"--grep={name}: {value}" for name, value in trailers.items()]
    found = _log(git, *patterns, *([f"^{since}", "HEAD"] if since else []))
    return next((sha for sha, found_trailers, _ in found if found_trailers == dict(trailers)), None)


def trailed(git: Command, run: str | None = None) -> tuple[TrailedCommit, ...]:
    """Return the commits of *run*, or of all the project's runs, that HEAD reaches, oldest first."""
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


def made_by_others(git: Command, runs: Collection[str]) -> TrailedCommit | None:
    """Return the first commit in the project's folder that none of *runs* made, if there is one.

    One that changes nothing but ``.planning`` does not count.
    """
    form = f"%H%x01%(trailers:key={RUN},valueonly,separator=%x2C)%x01%s"
    out = _read_log(git, "-z", f"--format={form}", "--", ".")
    for commit in reversed([*filter(None, out.split("\0"))]):
        sha, run, subject = commit.split("\x01", 2)
        paths = paths_of(git, [sha]) if run.strip() not in runs else ()
        if any(not path.startswith(".planning/") for path in paths):
            return TrailedCommit(sha=sha, run=run.strip(), step="", subject=subject)
    return None


def project_trailer(git: Command) -> dict[str, str]:
    """Return the trailer that distinguishes the commits of a project in a subfolder from those of others.

    Step and task ids repeat in every project: without it, a project whose journal is lost would take
    another one's ``1/execute/01-01`` for its own. Paths cannot decide, because a task may commit none.
    A project at the top of its repository has no such trailer.
    """
    path = unfolded(prefix(git).rstrip("/"))
    return {PROJECT: path} if path else {}


def unfolded(text: str) -> str:
    """Return *text* as git returns the value of a trailer: each run of white space is one space."""
    return " ".join(text.split())


def _log(git: Command, *arguments: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield id, ``GSD-`` trailers and subject of the project's matching commits, newest first.

    ``--grep`` narrows the search only: it also finds messages that merely mention a trailer.
    """
    project = project_trailer(git)
    out = _read_log(
        git,
        *("-z", "--topo-order", "--fixed-strings", "--all-match"),
        "--format=%H%x01%s%x01%(trailers:only=true,unfold=true)",
        *(f"--grep={name}: {value}" for name, value in project.items()),
        *arguments,
    )
    for commit in filter(None, out.split("\0")):
        sha, subject, text = commit.split("\x01", 2)
        pairs = (line.partition(":") for line in text.splitlines())
        trailers = {name.strip(): value.strip() for name, _, value in pairs if name.startswith("GSD-")}
        if trailers.pop(PROJECT, "") == project.get(PROJECT, ""):
            yield sha, trailers, subject


def last_of(git: Command, path: str) -> str:
    """Return the last commit below HEAD that changed *path*; ``""`` if none did."""
    return _read_log(git, "-1", "--format=%H", "--", path)


def before(git: Command, commits: Sequence[str]) -> str:
    """Return the commit on which the first of *commits* was made; ``""`` if they begin the history."""
    code, first = git.run("merge-base", "--octopus", *commits[:MAX_ARGUMENTS], ok=(0, 1, 128))
    if code == 0 and first in commits:
        code, first = git.run("rev-parse", "--verify", "--quiet", f"{first}^", ok=(0, 1, 128))
    return first if code == 0 else ""


def removed_since(git: Command, commit: str, paths: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Return which of *paths* a commit removed that *commit* does not reach: its id, step and subject."""
    if not paths:
        return {}
    form = f"%x01%H%x02%(trailers:key={STEP},valueonly,separator=%x2C)%x02%s%x03"
    options = ("--topo-order", *PATHS, "--diff-filter=D", f"--format={form}", f"{commit}..HEAD")
    out = _read_log(git, *options, "--", *paths[:MAX_ARGUMENTS])
    found: dict[str, tuple[str, str, str]] = {}
    for entry in re.split(r"(?:\A|\0)\x01(?=[0-9a-f]{40,64}\x02)", out)[1:]:
        head, _, names = entry.partition("\x03")
        sha, step, subject = head.split("\x02", 2)
        for path in names.split("\0"):
            found.setdefault(path.strip("\n"), (sha, step.strip(), subject))
    return {path: found[path] for path in paths if path in found}


def _read_log(git: Command, *arguments: str) -> str:
    """Return the output of ``git log``, empty without a commit: then git fails, and says why in many ways."""
    arguments = ("log", "--no-show-signature", *arguments)
    code, out = git.run(*arguments, ok=(0, 128))
    if code == 0 or head(git) is None:
        return out if code == 0 else ""
    return git(*arguments)


def order(git: Command, directory: str) -> dict[str, int]:
    """Return for each file below *directory* when it was last committed: a larger number is later.

    Files that are not committed as they are (new, changed, ignored) all have the largest number.
    The numbers are positions in topological order, because the times of commits may be wrong; they
    are comparable within one result only.
    """
    if git.layout() is None:
        return {}  # no repository
    out = _read_log(git, "--topo-order", *PATHS, "--format=%x01%H", "--", directory)
    # A file name may contain \x01 as well, so the id that follows it is part of the separator.
    changes = re.split(r"(?:\A|\0)\x01[0-9a-f]{40,64}\0?", out)[1:]
    commits = [[path for path in change.removeprefix("\n").split("\0") if path] for change in changes]
    positions: dict[str, int] = {}
    for position, paths in enumerate(commits):
        positions.update({path: len(commits) - position for path in paths if path not in positions})
    here: set[str] = set()
    for folder, folders, names in os.walk(git.root / directory):
        folders[:] = [name for name in folders if name != ".git"]
        here.update((Path(folder) / name).relative_to(git.root).as_posix() for name in names)
    uncommitted = (here - set(positions)) | {entry.path for entry in within(entries(git), [directory])}
    newest = dict.fromkeys(uncommitted, len(commits) + 1)
    return {path: position for path, position in (positions | newest).items() if path in here}


def paths_of(git: Command, commits: Collection[str]) -> tuple[str, ...]:
    """Return the paths that *commits* changed below the project's root."""
    lines = "".join(f"{commit}\n" for commit in commits)
    out = git("diff-tree", "-r", "--root", "--no-commit-id", *PATHS, "--stdin", stdin=lines) if lines else ""
    return tuple(sorted({path for path in out.split("\0") if path}))


def renamed_since(git: Command, commit: str) -> dict[str, str]:
    """Return the files that were renamed between *commit* and HEAD, with their names of today."""
    options = ("--name-status", "--find-renames", "--diff-filter=R", "--relative", "-z")
    found = git("diff", *options, commit, "HEAD").split("\0")
    return dict(zip(found[1::3], found[2::3], strict=True))


def changed_lines(git: Command, base: str, commit: str, path: str) -> frozenset[int]:
    """Return which lines of a file in *commit* are not as in *base*; all, without a base."""
    against = [base, commit] if base else ["--root", commit]
    out = git("diff-tree", "-p", "--unified=0", "--no-renames", "--relative", *against, "--", path)
    hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", out, re.MULTILINE)
    starts = ((int(first), int(count or 1)) for first, count in hunks)
    return frozenset(line for first, count in starts for line in range(first, first + count))


def removes_lines(git: Command, base: str, commit: str, path: str) -> bool:
    """Return whether *commit* lacks lines of a file that *base* has."""
    out = git("diff-tree", "-r", "--numstat", "--no-renames", "--relative", base, commit, "--", path)
    return out.partition("\t")[2].partition("\t")[0] not in ("", "0", "-")


@attrs.frozen(kw_only=True)
class Content:
    """What a commit did: when it was made, in UTC, and the paths that it changed, below the project's root.

    *body* is its message without its first line and without the ``GSD-`` trailers. *created* are the paths
    that are new with it, and *deleted* those that are gone; the old path of a renamed file is one.
    """

    at: datetime
    body: str
    paths: tuple[str, ...]
    created: tuple[str, ...]
    deleted: tuple[str, ...]


def content_of(git: Command, commit: str) -> Content:
    """Return what *commit* did."""
    options = ("-r", "--root", "--always", "-z", "--no-renames", "--relative", "--name-status")
    about, _, listed = git("diff-tree", *options, "--format=%ct%n%b", commit).partition("\0")
    seconds, _, text = about.partition("\n")
    paragraphs = re.split(r"\n\s*\n", text.strip())
    # A hook may have added other trailers to the last paragraph.
    if any(line.startswith(f"{RUN}:") for line in paragraphs[-1].splitlines()):
        paragraphs.pop()
    fields = listed.removeprefix("\n").split("\0")
    letters = dict(sorted(zip(fields[1::2], fields[::2], strict=False)))
    return Content(
        at=datetime.fromtimestamp(int(seconds), UTC),
        body="\n\n".join(paragraphs),
        paths=tuple(letters),
        created=tuple(path for path, letter in letters.items() if letter == "A"),
        deleted=tuple(path for path, letter in letters.items() if letter == "D"),
    )


def existing_commits(git: Command, names: Iterable[str]) -> dict[str, str]:
    """Return the full ids of those *names* (ids, perhaps shortened) that are commits, by name."""
    wanted = [name for name in dict.fromkeys(names) if re.fullmatch(r"[0-9a-f]{4,64}", name)]
    if not wanted:
        return {}
    out = git("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in wanted))
    rows = zip(wanted, (line.split(" ") for line in out.splitlines()), strict=True)
    return {name: row[0] for name, row in rows if len(row) == 3 and row[1] == "commit"}


def patch_of(git: Command, commit: str, size: int) -> str:
    """Return what *commit* changed below the project's root, as a patch; no program formats it.

    It is cut after *size* bytes. A file that is larger than a megabyte is named, but not shown.
    """
    return attrs.evolve(git, limit=PATCH_LIMIT).start_of_output(
        *("-c", "core.bigFileThreshold=1m", "show", "--no-show-signature", "--no-ext-diff", "--no-textconv"),
        *("--no-color", "--relative", "--format=", "--patch", commit, "--"),
        size=size,
    )
