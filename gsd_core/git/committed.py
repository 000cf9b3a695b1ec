"""What is in the last commit: its files, and for a path that is not there as it is on disk, the reason.

Only the last commit counts as delivered. A file may be on disk, pass every check, and still be in no commit:
git ignores it, it is in a nested repository, or its last change was never committed.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import attrs

from gsd_core.planning.model import History

from .command import Command, GitError
from .repository import Entry, entries, head, ignoring_rules, nested_entries

GITLINK = "160000"
_WILDCARDS = frozenset("*?[")
_MARKS = {"h": "assume-unchanged", "S": "skip-worktree", "s": "skip-worktree"}


@attrs.frozen(kw_only=True)
class Uncommitted:
    """A *path* whose content on disk is not that of the last commit, and the *reason*, in words."""

    path: str
    reason: str


def uncommitted(git: Command, paths: Collection[str]) -> tuple[Uncommitted, ...]:
    """Return those of *paths* that are not in the last commit as they are on disk, each with the reason.

    A path may be a file, a folder (everything in it that git does not ignore) or a pattern. A path that is
    neither on disk nor in the last commit is not a difference: it may have been deleted on purpose. Paths
    outside the project are left out, unless a link in the project leads there.
    """
    return _Tree(git).uncommitted(paths) if paths else ()


def tree_facts(git: Command, promised: Collection[str] = ()) -> History:
    """Return what git knows about the project now; *promised* are the paths to look up as ignored."""
    tree = _Tree(git)
    changed = {entry.path for entry in tree.entries}
    embedded = {path for path in tree.modules if not tree.is_submodule(path)}
    return History(
        files=frozenset(tree.files),
        changed=tuple(sorted(changed)),
        ignored=tree.ignored(promised),
        nested=tuple(sorted({*nested_entries(git), *embedded})),
        commits=frozenset([*git("rev-list", "HEAD").split(), *_reworded(git)]) if tree.head else frozenset(),
    )


def _reworded(git: Command) -> Iterator[str]:
    """Yield the commits that HEAD had once, and of which it has the same change with other words.

    ``git commit --amend`` and a rebase that changes only messages keep the files of a commit and its parents.
    """

    def read(*revisions: str) -> dict[str, tuple[str, ...]]:
        lines = git("log", "--no-show-signature", "--format=%H %T %P", *revisions).splitlines()
        return {sha: tuple(rest) for sha, *rest in map(str.split, lines)}

    if not (earlier := read("--reflog", "^HEAD")):
        return
    now = read("HEAD")

    known = {**now, **earlier}

    def change(sha: str) -> tuple[str, ...]:
        tree, *parents = known[sha]
        return tree, *(known[parent][0] for parent in parents if parent in known)

    changes = set(map(change, now))
    yield from (sha for sha in earlier if change(sha) in changes)


def ignored(git: Command, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of *paths* that exist and that git ignores; a tracked path is never ignored."""
    return _Tree(git).ignored(paths)


def _clean(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path inside the project once, without ``./`` and trailing slashes."""
    stripped = (PurePosixPath(path.strip()) for path in paths if path.strip())
    inside = (path.as_posix() for path in stripped if not path.is_absolute() and ".." not in path.parts)
    yield from dict.fromkeys(inside)


class _Tree:
    """The last commit and the differences to it, read once."""

    def __init__(self, git: Command) -> None:
        self.git = git
        self.head = head(git)
        self.entries: tuple[Entry, ...] = entries(git)
        self.files: set[str] = set()
        self.modules: set[str] = set()
        out = git("ls-tree", "-r", "-z", "HEAD") if self.head else ""
        for line in out.split("\0"):
            about, _, path = line.partition("\t")
            if path:
                (self.modules if about.startswith(GITLINK) else self.files).add(path)
        self._changes: Mapping[str, Entry] = {entry.path: entry for entry in self.entries}

    def is_submodule(self, path: str) -> bool:
        """Whether the repository at *path* is listed in ``.gitmodules``."""
        options = ("--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")
        code, out = self.git.run("config", *options, ok=(0, 1, 128))
        return code == 0 and any(item.partition("\n")[2].rstrip("/") == path for item in out.split("\0"))

    def ignored(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of *paths* that exist and that git ignores."""
        present = [path for path in _clean(paths) if os.path.lexists(self.git.root / path)]
        # git refuses to judge what is beyond a link or in a submodule.
        own = [path for path in present if path not in self.files and self.beyond(path) is None]
        return tuple(sorted(ignoring_rules(self.git, own)))

    def uncommitted(self, paths: Iterable[str]) -> tuple[Uncommitted, ...]:
        found: dict[str, str] = {}
        unknown: list[str] = []
        for path in self._expanded(paths):
            if (reason := self.beyond(path)) is not None:
                found |= {path: reason} if reason else {}
            elif path in self._changes:
                found[path] = _describe(self._changes[path])
            elif path not in self.files and path not in self.modules:
                unknown.append(path)
        found |= self._unknown(unknown)
        found |= self._hidden([path for path in self._expanded(paths) if path not in found])
        return tuple(Uncommitted(path=path, reason=reason) for path, reason in sorted(found.items()))

    def _expanded(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the files meant by *paths*: a folder and a pattern mean what is below them."""
        for path in _clean(paths):
            file = self.git.root / path
            if not os.path.lexists(file) and not _WILDCARDS.isdisjoint(path):
                yield from (name for name in {*self.files, *self._changes} if fnmatchcase(name, path))
            elif file.is_dir() and not file.is_symlink() and path not in self.modules:
                below = "" if path == "." else f"{path}/"
                inside = [name for name in {*self.files, *self._changes} if name.startswith(below)]
                # A folder without tracked files is judged as a whole: it is ignored, nested or empty.
                yield from inside or ([path] if any(file.iterdir()) else [])
            else:
                yield self._spelling(path)

    def _spelling(self, path: str) -> str:
        """Return *path* as git spells it, on a file system that ignores case or normalizes Unicode."""
        if path in self.files or path in self._changes or not os.path.lexists(self.git.root / path):
            return path
        wanted = _folded(path)
        for name in (*self.files, *self._changes):
            other = self.git.root / name
            if _folded(name) == wanted and other.exists() and other.samefile(self.git.root / path):
                return name
        return path

    def beyond(self, path: str) -> str | None:
        """Return why *path* is in no commit, if a folder above it is a link or another repository.

        ``""`` means that it is in one there, and ``None`` that the path is the project's own.
        """
        root = self.git.root
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            folder, name = root / parent, parent.as_posix()
            if folder.is_symlink():
                if not (root / path).exists():
                    return ""
                target = Path(os.path.realpath(root / path))
                if not target.is_relative_to(root.resolve()):
                    return f"{name} is a link that leads out of the project"
                inner = target.relative_to(root.resolve()).as_posix()
                return next((f"{inner}: {u.reason}" for u in self.uncommitted([inner])), "")
            if name in self.modules or os.path.lexists(folder / ".git"):
                return self._in_other_repository(name, PurePosixPath(path).relative_to(parent).as_posix())
        return None

    def _in_other_repository(self, folder: str, path: str) -> str:
        if folder not in self.modules or not self.is_submodule(folder):
            return (
                f"it is inside {folder}, a separate git repository, so the project's commits leave it out; "
                f"remove {folder}/.git"
            )
        inner = uncommitted(attrs.evolve(self.git, root=self.git.root / folder), [path])
        if inner:
            return f"in the submodule {folder}: {inner[0].reason}"
        if folder in self._changes:
            return f"it is inside the submodule {folder}, whose new commit is not committed in the project"
        return ""

    def _unknown(self, paths: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield reasons for paths that are neither in the last commit nor among the changes."""
        present = [path for path in paths if os.path.lexists(self.git.root / path)]
        rules = ignoring_rules(self.git, present)
        for path in present:
            if rule := rules.get(path):
                yield path, f"git ignores it ({rule})"
            elif os.path.lexists(self.git.root / path / ".git"):
                yield path, "it is a separate git repository, so the project's commits leave it out"
            elif not (self.git.root / path).is_dir():
                yield path, "it is in no commit"

    def _hidden(self, paths: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield reasons for files that ``git status`` does not compare because the index says so."""
        wanted = {path for path in paths if path in self.files}
        if not wanted:
            return
        for line in self.git("ls-files", "-v", "-z").split("\0"):
            mark, path = line[:1], line[2:]
            if path in wanted and mark in _MARKS and os.path.lexists(self.git.root / path):
                option = f"--no-{_MARKS[mark]}"
                problem = f"git does not compare it, because its index marks it as {_MARKS[mark]}"
                yield path, f"{problem}; run: git update-index {option} {path}"


def _describe(entry: Entry) -> str:
    if not entry.tracked:
        return "it is not committed (untracked)"
    if entry.unmerged:
        return "it has a merge conflict"
    if entry.missing:
        return "it is deleted on disk, but still in the last commit"
    if entry.staged == "A" or entry.unstaged == "A":
        return "it is staged, but not committed"
    return "its last change is not committed"


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def text_at(git: Command, path: str, commit: str = "HEAD") -> str:
    """Return the text of *path* in a commit; empty if it is not in it, or is not text."""
    try:
        return git("cat-file", "blob", f"{commit}:./{path}")
    except GitError:
        return ""


def digests(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return a fingerprint of each path below *root*, to tell later whether it was changed.

    It is a digest of the content; of a file larger than :data:`DIGEST_LIMIT`, its size and time.
    """
    return {path: _digest(root / path) for path in paths}


DIGEST_LIMIT = 10_000_000
"""The size, in bytes, of the largest files that are read to notice a change."""


def _digest(file: Path) -> str:
    try:
        if file.is_symlink():
            return f"link {file.readlink()}"
        about = file.stat()
        if about.st_size > DIGEST_LIMIT or not file.is_file():
            return f"{about.st_size} {about.st_mtime_ns}"
        return hashlib.sha256(file.read_bytes()).hexdigest()[:32]
    except OSError as error:
        return f"error {error.errno}"
