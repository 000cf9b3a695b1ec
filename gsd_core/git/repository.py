"""The repository: where it is, who commits, what is uncommitted, and one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import posixpath
import re
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from gsd_core.errors import ProjectError

from .command import Command, GitError
from .layout import Layout, read_bytes

# How often to look whether another run still holds the repository, in seconds.
POLL_SECONDS = 0.05


def is_repository(git: Command) -> bool:
    """Whether the project is inside a work tree."""
    try:
        # A dry run may ask about a folder that does not exist yet.
        return git.root.is_dir() and git("rev-parse", "--is-inside-work-tree") == "true"
    except GitError as error:
        if "not a git repository" in error.output:
            return False
        raise


def init(git: Command) -> None:
    """Make the project's root a repository, unless it is the top of one already."""
    if not is_repository(git) or top(git).resolve() != git.root.resolve():
        git("-c", "advice.defaultBranchName=false", "init", "--quiet")


def common_dir(git: Command) -> Path:
    """Return the repository's common directory, which all its worktrees share."""
    if known := _known(git):
        return known.common
    return (git.root / git("rev-parse", "--git-common-dir")).resolve()


def git_dir(git: Command) -> Path:
    """Return git's directory of this worktree: the common directory, or a folder in it."""
    if known := _known(git):
        return known.own
    return (git.root / git("rev-parse", "--git-dir")).resolve()


def top(git: Command) -> Path:
    """Return the top folder of the work tree."""
    known = _known(git)
    return known.top if known else Path(git("rev-parse", "--show-toplevel"))


def worktrees(git: Command) -> tuple[Path, ...]:
    """Return the folders where a git process of this repository may work: all worktrees and git's own."""
    listed = git("worktree", "list", "--porcelain").splitlines()
    folders = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    return (*(folder.resolve() for folder in folders), common_dir(git))


def prefix(git: Command) -> str:
    """Return the project's path in the repository, with a slash at its end; empty at the top."""
    return "" if _known(git) else git("rev-parse", "--show-prefix")


def _known(git: Command) -> Layout | None:
    """Return the repository if the project is the top of one of its worktrees, else git has to be asked.

    Most projects are, and so is each plan's work tree. This is needed dozens of times for each task: do not
    start git for it.
    """
    layout = git.layout()
    return layout if layout and layout.top == Path(os.path.realpath(git.root)) else None


def data_directory(git: Command) -> Path:
    """Return the folder of the project's journal and lock, which need not exist.

    It is inside git's own directory, so that ``git clean`` and agents do not touch it. Each worktree has its
    own, because it has its own branch and files; that of the main worktree is in the common directory,
    and that of a linked worktree goes when the worktree is removed. A project in a subfolder has its own
    folder below ``projects``, named after its path in the repository.
    """
    own = git_dir(git) / "gsd"
    path = prefix(git).rstrip("/")
    if not path:
        return own
    # The digest keeps "a/b" and "a-b" apart.
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", path).strip("-.")[-60:]
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    return own / "projects" / f"{readable}-{digest}".lstrip("-")


@contextmanager
def one_writer(git: Command) -> Generator[None]:
    """Wait until no other run writes to the repository, and make others wait until this one is done.

    The projects of one repository have separate locks but share its index, its HEAD and its lock
    files. Without this, two commits at once fail on index.lock, HEAD may be the other run's commit when
    it is read back, and a starting run would remove the lock of a commit in progress.
    """
    path = common_dir(git) / "gsd" / "commit-lock"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    end = time.monotonic() + git.limit.total_seconds()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    hint = "another run in this repository is committing; look at the repository's hooks"
                    raise GitError(f"git was not free for {git.limit}", hint=hint) from None
                git.sleep(POLL_SECONDS)
        # Closing the file releases the lock, and so does the kernel if this process is killed.
        yield


def paths_file(git: Command) -> Path:
    """Return the file with the paths of a commit, which exists while it is made."""
    return common_dir(git) / "gsd" / "commit-paths"


def identity(git: Command) -> str | None:
    """Return ``Name <email>`` of the committer; ``None`` if git is not configured."""
    # Without this option, git makes up an identity from the user and host names.
    code, out = git.run("-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT", ok=(0, 128))
    return out.rsplit(" ", 2)[0] if code == 0 else None


def check_identity(git: Command) -> None:
    """Raise ``ProjectError`` if git does not know who commits."""
    if identity(git) is None:
        hint = 'git config --global user.name "…" and git config --global user.email "…"'
        raise ProjectError("git does not know your name and email, so it cannot commit", hint=hint)


def is_ignored(git: Command, path: str) -> bool:
    """Whether git ignores *path*; a tracked path is never ignored."""
    return bool(ignoring_rules(git, [path]))


def ignoring_rules(git: Command, paths: Iterable[str]) -> dict[str, str]:
    """Return for each path that git ignores the rule that says so, such as ``.gitignore:3: build/``.

    A tracked path is never ignored.
    """
    listed = "".join(f"./{path}\0" for path in paths)
    if not listed:
        return {}
    # check-ignore does not support literal pathspecs. After "./", no character is special.
    command, environment = ("check-ignore", "--verbose", "-z", "--stdin"), {"GIT_LITERAL_PATHSPECS": "0"}
    _, out = git.run(*command, stdin=listed, ok=(0, 1), environment=environment)
    fields = out.split("\0")
    rules: dict[str, str] = {}
    for source, line, pattern, path in zip(*(fields[i::4] for i in range(4)), strict=False):
        # A pattern with "!" that matches last says that the path is not ignored.
        if not pattern.startswith("!"):
            rules[path.removeprefix("./")] = f"{source}:{line}: {pattern}"
    return rules


def head(git: Command, ok: Collection[int] = (0, 1)) -> str | None:
    """Return the id of the last commit; ``None`` if there is none yet."""
    here = read_head(git)
    if here and here[1] in git.known.commits:
        return here[1]
    code, out = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=ok)
    if code:
        return None
    git.known.commits.add(out)
    return out


def branch(git: Command) -> str:
    """Return the name of the current branch, which may have no commit yet; ``""`` if HEAD is detached."""
    if here := read_head(git):
        return here[0]
    code, out = git.run("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    return out if code == 0 else ""


_BRANCH = re.compile(rb"ref: refs/heads/(?!.*\.lock)([\w-]+(?:[./+][\w-]+)*)\n")
_ID = re.compile(rb"[0-9a-f]{40,64}\n")


def read_head(git: Command) -> tuple[str, str] | None:
    """Return the branch, empty if HEAD is detached, and its commit, which may be missing, as the files say.

    ``None`` if only git can tell. This is needed dozens of times for each task: do not start git for it.
    """
    if (layout := git.layout()) is None or (layout.own / "HEAD").is_symlink():
        return None
    text, name = read_bytes(layout.own / "HEAD"), ""
    if found := _BRANCH.fullmatch(text):
        name = os.fsdecode(found[1])
        text = read_bytes(layout.common / "refs" / "heads" / name)
    return (name, text.decode().strip()) if _ID.fullmatch(text) else None


def has_branch(git: Command, name: str) -> bool:
    """Whether a local branch of that name exists."""
    return git.succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{name}")


OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick",
    "BISECT_LOG": "bisect",
}
"""What git keeps in its directory while a command of several steps is in progress, and that command."""


def operation(git: Command) -> str:
    """Return the command of several steps that is in progress, such as ``rebase``; ``""`` if none is."""
    folder = git_dir(git)
    return next((name for file, name in OPERATIONS.items() if (folder / file).exists()), "")


def how_to_end(name: str) -> str:
    """Return the commands that end an :func:`operation`."""
    return "git bisect reset" if name == "bisect" else f"git {name} --continue, or git {name} --abort"


@attrs.frozen
class Entry:
    """One line of ``git status``; *path* is relative to the project's root.

    *staged* and *unstaged* are git's letters for the index and for the work tree.
    """

    path: str
    staged: str
    unstaged: str

    @property
    def tracked(self) -> bool:
        """Whether the path is in the index or in the last commit."""
        return self.staged != "?"

    @property
    def unmerged(self) -> bool:
        """Whether it has a merge conflict."""
        return "U" in (self.staged, self.unstaged) or self.staged + self.unstaged in ("AA", "DD")

    @property
    def missing(self) -> bool:
        """Whether it is in the last commit, but not on disk."""
        deleted = "D" in (self.staged, self.unstaged)
        return deleted and self.tracked and not self.unmerged and self.staged != "A"


def entries(git: Command) -> tuple[Entry, ...]:
    """Return everything below the project's root that is neither committed nor ignored.

    Repositories inside the project that are not its submodules are left out: git would not commit
    any of their files.
    """
    return tuple(entry for entry in _status(git) if not entry.path.endswith("/"))


def nested_entries(git: Command) -> tuple[str, ...]:
    """Return the folders of repositories inside the project that git does not track, not even as submodules.

    Those in folders that git ignores are not found.
    """
    return _sorted(entry.path.rstrip("/") for entry in _status(git) if entry.path.endswith("/"))


def _status(git: Command) -> Iterator[Entry]:
    out = git(
        *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
        *("--ignore-submodules=dirty", "--", "."),
    )
    # With -z, the paths are relative to the top of the repository, wherever git is run.
    start = 3 + len(prefix(git))
    yield from (Entry(line[start:], line[0], line[1]) for line in out.split("\0") if line)


def dirty(git: Command) -> tuple[str, ...]:
    """Return the tracked paths that differ from the last commit, staged or not."""
    return _sorted(entry.path for entry in entries(git) if entry.tracked)


def untracked(git: Command) -> tuple[str, ...]:
    """Return the paths that are neither tracked nor ignored."""
    return _sorted(entry.path for entry in entries(git) if not entry.tracked)


def changed(git: Command, since_dirty: Collection[str] = ()) -> tuple[str, ...]:
    """Return all uncommitted paths, tracked and untracked, except *since_dirty*."""
    return _sorted({entry.path for entry in entries(git)} - set(since_dirty))


def store(git: Command, content: bytes) -> str:
    """Store *content* in the repository, and return the blob."""
    return git("hash-object", "-w", "--no-filters", "--stdin", stdin=os.fsdecode(content))


def unmerged(git: Command, environment: Mapping[str, str] | None = None) -> set[str]:
    """Return the paths with merge conflicts in the index."""
    lines = git("ls-files", "-z", "--unmerged", environment=environment).split("\0")
    return {line.split("\t", 1)[1] for line in lines if line}


def files(git: Command, limit: int) -> tuple[str, ...]:
    """Return the tracked paths below the project's root in order, at most *limit*."""
    paths = git("ls-files", "-z", "--cached").split("\0")
    return _sorted(path for path in paths if path)[:limit]


def within(found: Iterable[Entry], paths: Iterable[str]) -> tuple[Entry, ...]:
    """Return the entries at or below *paths*."""
    roots = {posixpath.normpath(path) for path in paths}

    def self_and_parents(path: str) -> set[str]:
        parts = path.split("/")
        return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)} | {"."}

    return tuple(entry for entry in found if not roots.isdisjoint(self_and_parents(entry.path)))


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))
