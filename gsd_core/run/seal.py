"""The protected state: what only the run may change. It is compared after each agent call and restored.

It is HEAD, the branches and other refs, git's settings and hooks, and in the project's top folder
``.planning/``, ``.gsd/``, ``gsd.toml``, the agent's own settings and those of shells. The permission policy
denies an agent's tools to change them, but a script or a test that the agent wrote can do everything that
the user can.

The functions here block; :mod:`gsd_core.run.guard` calls them in git's thread and records what they find.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path, PurePosixPath

import attrs

from gsd_core.files import DRAFT, FileRefused, read_below, write_below
from gsd_core.git import refs as git_refs
from gsd_core.git.command import Command, GitError, GitUnavailable
from gsd_core.git.refs import BRANCHES, IN_PROGRESS, STASH, TAGS, Places, Refs
from gsd_core.git.repository import common_dir, data_directory, git_dir, prefix
from gsd_core.model.counts import counted
from gsd_core.processes import works_in

from .places import PROTECTED

STASH_LOG = "logs/refs/stash"
GIT = ("config", "config.worktree", "hooks", "info", "objects/info/alternates", STASH_LOG)
"""Those in git's own directories."""
SETTINGS = ("config", "config.worktree")
PLANNING = ".planning"
WRITTEN_BY_THE_RUN = ".planning/autopilot"
LEFT_OUT = ("__pycache__", ".DS_Store", "autopilot-state.json")
DRAFTS = re.compile(r"\.gsd-.*\.tmp")
MAX_KEPT = 20_000_000
"""Larger files, in bytes, are compared but not kept, so they cannot be put back."""
TICK_NS = 100_000_000
"""A file that changed this shortly before it was read may change again without another time stamp."""
LOCK_WAIT = timedelta(seconds=3)


@attrs.frozen
class Mark:
    """A file as it was: the SHA-256 of its content or the target of a link, and its permissions."""

    digest: str
    executable: bool = False
    link: bool = False
    mode: int = attrs.field(default=0o644, eq=False)


@attrs.frozen(kw_only=True)
class Seal:
    """A record of the protected state; files by their POSIX path relative to the project's root."""

    refs: Refs = attrs.field(factory=Refs)
    files: Mapping[str, Mark] = attrs.field(factory=dict[str, Mark])
    hidden: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    locked: bool = False


@attrs.frozen(kw_only=True)
class Difference:
    """One thing that changed: *what* in words. *mild*: an honest mistake that undoing it repairs."""

    what: str
    mild: bool = False


@attrs.frozen(kw_only=True)
class Changes:
    """What changed since the seal, and what has to be done about it.

    *files* are the paths that differ, *refs* the names of refs. *settings*: git's settings files as they were
    found; they are put back already. *head* is where HEAD belongs; *moved*: it is elsewhere; *base*: the
    commit whose files the work tree has instead of those of *head*, if any. *tips* are objects that only the
    undone refs reach. *edited* are files that a person changed, as they are now, which stay.
    """

    differences: tuple[Difference, ...] = ()
    now: Refs = attrs.field(factory=Refs)
    files: tuple[str, ...] = ()
    settings: Mapping[str, Mark] = attrs.field(factory=dict[str, Mark])
    refs: tuple[str, ...] = ()
    head: str = ""
    moved: bool = False
    base: str = ""
    tips: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    operations: frozenset[str] = frozenset()
    locked: bool = False
    edited: Mapping[str, Mark | None] = attrs.field(factory=dict[str, "Mark | None"])


@attrs.define
class Sealer:
    """Takes seals of one project and undoes what changed; *store* keeps the contents of sealed files.

    The store is beside the journal, so that the next start can undo what this process could not. With
    *project*, git's root is a work tree of it, for a plan, and what executes it can write there too.
    """

    git: Command
    store: Path
    project: Path | None = None
    _digests: dict[str, tuple[tuple[int, ...], Mark]] = attrs.field(
        factory=dict[str, tuple[tuple[int, ...], Mark]], init=False
    )
    _index: tuple[int, ...] = attrs.field(default=(), init=False)
    _hidden: frozenset[str] = attrs.field(default=frozenset(), init=False)

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.git.root

    def take(self) -> Seal:
        """Return what only the run may change, as it is now, and keep the contents."""
        places = git_refs.places(self.git)
        files = dict(self._marks(places))
        self._keep(files)
        return Seal(
            refs=git_refs.read_refs(self.git),
            files=files,
            hidden=tuple(sorted(self._hidden_paths(places))),
            operations=tuple(sorted(_operations(places))),
            locked=(places.own / "index.lock").exists(),
        )

    def compare(
        self,
        seal: Seal,
        known: Sequence[str],
        *,
        until: float = math.inf,
        accepted: Callable[[Path], bool] = lambda _: False,
        owned: bool = False,
    ) -> Changes:
        """Return what differs from *seal*; commits that the journal *knows*, oldest first, are expected.

        *owned*: an agent may write ``.planning/``, add commits to the branch, and make new branches and tags.

        What changed after the time *until*, in seconds since the epoch, is left out, and so is a change of a
        file that is *accepted*. Changed settings of git are put back first, because git cannot be trusted
        with them, or may not work at all.
        """
        places = self._places()
        found = self._changed_files(seal, places, until)
        edited = {
            path: self._mark(path)
            for path in found
            if accepted(Path(os.path.normpath(self.root / path)))
            or (owned and path.startswith(f"{PLANNING}/"))
        }
        self._keep({path: mark for path, mark in edited.items() if mark})
        files = tuple(path for path in found if path not in edited)
        settings: dict[str, Mark] = {}
        names = [path for path in files if PurePosixPath(path).name in SETTINGS]
        if broken := [path for path in names if not _is_in_project(path)]:
            settings = {path: mark for path in broken if (mark := self._mark(path))}
            self._keep(settings)
            self._put_files_back(seal, broken)
        if places is None or broken:
            # With the right settings, the hooks may be elsewhere.
            places = git_refs.places(self.git)
            found = self._changed_files(seal, places, until)
            files = tuple(dict.fromkeys([*broken, *(path for path in found if path not in edited)]))
        now = git_refs.read_refs(self.git)
        if accepted(places.own / "HEAD") and accepted(places.common / "refs"):
            ignored, begun = tuple(self._hidden_paths(places)), tuple(_operations(places))
            seal = attrs.evolve(seal, refs=now, hidden=ignored, operations=begun, locked=True)
        if max(_changed_at(places.own / "HEAD"), _changed_at(places.own / "logs" / "HEAD")) > until:
            # Somebody has used git since, and it is unknown which of the refs they moved.
            seal = attrs.evolve(seal, refs=now)
        head, listed = self._head(seal.refs, now, known, owned=owned)
        changed, more = self._refs(seal, now, owned=owned)
        if STASH not in changed and self._is_apart(seal.refs):
            files = tuple(path for path in files if not path.endswith(STASH_LOG))
        moved = (now.branch, now.head) != (seal.refs.branch, head)
        hidden = self._hidden_paths(places) - set(seal.hidden)
        operations = _operations(places) - set(seal.operations)
        locked = not seal.locked and _stays_locked(places.own / "index.lock", places.top)
        commits = [seal.refs.head, *seal.refs.refs.values()]
        base = git_refs.base_of(self.git, now.head, commits) if moved else ""
        tips = [now.head] if moved and now.head else []
        mistakes = [f"git was told to ignore changes of {path}" for path in hidden]
        mistakes += [f"{what} was left in progress" for what in sorted({IN_PROGRESS[n] for n in operations})]
        mistakes += ["git's index was left locked"] if locked else []
        return Changes(
            differences=(
                *listed,
                *more,
                *self._about_files(seal, files, settings),
                *(Difference(what=what, mild=True) for what in mistakes),
            ),
            now=now,
            files=files,
            settings=settings,
            refs=changed,
            head=head,
            moved=moved,
            base="" if base and head and git_refs.is_ancestor(self.git, head, base) else base,
            tips=(*tips, *(now.refs[name] for name in changed if name in now.refs)),
            hidden=hidden,
            operations=operations,
            locked=locked,
            edited=edited,
        )

    def save(self, name: str, changes: Changes) -> str:
        """Keep what is about to be undone under ``refs/gsd/recover``; return the ref, if any."""
        contents: dict[str, bytes] = {}
        for path in changes.files:
            file = self.root / path
            if path in changes.settings:
                contents[path] = self._kept(changes.settings[path]) or b""
            elif file.is_symlink():
                # Beside it, because what the link hides may have to be kept as well.
                contents[f"{path}.link"] = os.fsencode(os.readlink(file))  # noqa: PTH115
            elif file.is_file():
                contents[path] = _content(file) or b""
        if not contents and not changes.tips:
            return ""
        return git_refs.save(self.git, name, contents, changes.tips)

    def undo(self, seal: Seal, changes: Changes) -> tuple[str, ...]:
        """Put everything back as it was sealed; return what could not be. It can be repeated."""
        problems: list[str] = []
        now = git_refs.read_refs(self.git)
        own = git_refs.places(self.git).own
        git_refs.put_back(self.git, seal.refs, now, set(changes.refs) - {STASH})
        if changes.locked:
            (own / "index.lock").unlink(missing_ok=True)
        if changes.moved and (now.branch, now.head) != (seal.refs.branch, changes.head):
            base = changes.base
            if problem := git_refs.put_head_back(self.git, seal.refs, now, changes.head, base=base):
                problems.append(f"the files in the work tree are still those of another commit: {problem}")
        if changes.operations:
            git_refs.end_operations(self.git, own, changes.operations)
        if changes.hidden:
            git_refs.show_paths(self.git, changes.hidden)
        if STASH in changes.refs:
            stash = self._new_stash(seal, now)
            if stash and not git_refs.bring_back_stash(self.git, stash):
                problems.append("what was stashed could not be brought back into the work tree")
            git_refs.put_back(self.git, seal.refs, now, {STASH})
        # After HEAD, which takes the files in the work tree along, and the refs: git changes the stash's log.
        problems += self._put_files_back(seal, changes.files)
        if changes.moved:
            inside = [path for path in changes.files if _is_in_project(path)]
            git_refs.unstage(self.git, inside)
        return tuple(problems)

    def _places(self) -> Places | None:
        try:
            return git_refs.places(self.git)
        except GitUnavailable:
            raise
        except GitError:
            return None  # its settings are damaged

    # HEAD and refs

    def _head(
        self, was: Refs, now: Refs, known: Sequence[str], *, owned: bool
    ) -> tuple[str, list[Difference]]:
        """Return the commit that HEAD's branch belongs at, and what is wrong with HEAD.

        If the run's own commits since are not there any more, because somebody amended one, it is the last.
        """
        found: list[Difference] = []
        if now.branch != was.branch:
            places = (was.branch or "no branch", now.branch or f"no branch, at {now.head[:9]}")
            old, new = (place.removeprefix(BRANCHES) for place in places)
            found.append(Difference(what=f"the branch was switched from {old} to {new}"))
        on_branch = now.refs.get(was.branch, "") if was.branch else now.head
        if on_branch == was.head or (now.branch != was.branch and not was.branch):
            return was.head, found
        if on_branch in known and git_refs.is_ancestor(self.git, was.head, on_branch):
            return on_branch, found
        later = (sha for sha in reversed(known) if git_refs.is_ancestor(self.git, was.head, sha))
        last = next(later, was.head)
        name = (was.branch or "HEAD").removeprefix(BRANCHES)
        if not on_branch:
            return last, [*found, Difference(what=f"the branch {name} was deleted")]
        if was.head and not git_refs.is_ancestor(self.git, was.head, on_branch):
            what = f"the history of {name} was rewritten (it was at {was.head[:9]}, then {on_branch[:9]})"
            # `git commit --amend` of words: no file differs, so nothing is lost when it is undone.
            files = self.git("rev-parse", f"{last}^{{tree}}", f"{on_branch}^{{tree}}").split()
            return last, [*found, Difference(what=what, mild=len(set(files)) == 1)]
        if owned:
            return on_branch, found
        tip: list[str] = []
        below = on_branch
        for commit in git_refs.commits_since(self.git, was.head, on_branch):
            # What is below a commit of the run was there when the run committed.
            if commit.sha in known:
                below = commit.sha
                break
            if self._is_of_another_project(commit):
                continue
            tip.append(commit.sha)
        else:
            below = last
        if not tip:
            return on_branch, found
        what = f"{counted(len(tip), 'commit')} on {name}: {', '.join(sha[:9] for sha in tip[:5])}"
        return below, [*found, Difference(what=what, mild=True)]

    def _is_of_another_project(self, commit: git_refs.NewCommit) -> bool:
        """Whether a commit belongs to another project of this repository, which has its own run.

        It touches nothing of this project; one in a folder below this project's says whose it is.
        """
        here = prefix(self.git)
        if here and not commit.project:
            return bool(commit.paths) and not any(path.startswith(here) for path in commit.paths)
        folder = f"{commit.project}/"
        if not commit.project or folder == here or not all(p.startswith(folder) for p in commit.paths):
            return False
        # A run has worked there.
        there = git_refs.places(self.git).top / folder
        return there.is_dir() and data_directory(attrs.evolve(self.git, root=there)).is_dir()

    def _new_stash(self, seal: Seal, now: Refs) -> str:
        """Return what was stashed since the seal; empty if nothing was, or if stashes were only dropped."""
        stash = now.refs.get(STASH, "")
        marks = [mark for path, mark in seal.files.items() if path.endswith(STASH_LOG)]
        dropped_to = any(stash.encode() in (self._kept(mark) or b"") for mark in marks)
        return "" if dropped_to or stash == seal.refs.refs.get(STASH, "") else stash

    def _is_apart(self, was: Refs) -> bool:
        """Whether this is a plan's own work tree, where new refs may be a person's or another plan's.

        If each undid what appears there, it would undo what people do in the project and what others undo.
        """
        return not was.branch and git_dir(self.git) != common_dir(self.git)

    def _was_stashed_here(self, now: Refs) -> bool:
        """Whether the last stash is from a HEAD that is on no branch, as this one."""
        subject = self.git("log", "-1", "--format=%s", now.refs[STASH]) if STASH in now.refs else ""
        return "on (no branch)" in subject

    def _refs(self, seal: Seal, now: Refs, *, owned: bool) -> tuple[tuple[str, ...], list[Difference]]:
        """Return the refs other than HEAD's branch that changed, and what happened to them."""
        was = seal.refs
        known = {*was.refs, *now.refs} - {was.branch}
        differ = sorted(name for name in known if was.refs.get(name) != now.refs.get(name))
        if not differ:
            return (), []
        elsewhere = git_refs.branches_elsewhere(self.git)
        fetched, is_apart = was.remotes != now.remotes, self._is_apart(was)
        names: list[str] = []
        found: list[Difference] = []
        for name in differ:
            is_new = name not in was.refs
            # The branches of other worktrees are not protected here, and a fetch brings tags.
            if name in elsewhere or (is_new and fetched and name.startswith(TAGS)):
                continue
            if (owned or is_apart) and is_new and name.startswith((BRANCHES, TAGS)):
                continue
            if is_apart and name == STASH and not self._was_stashed_here(now):
                continue
            names.append(name)
            happened = "created" if is_new else "moved" if name in now.refs else "deleted"
            stashed = name == STASH and bool(self._new_stash(seal, now))
            what = "changes were stashed" if stashed else f"{name} was {happened}"
            mild = stashed or (is_new and name.startswith((BRANCHES, TAGS)))
            found.append(Difference(what=what, mild=mild))
        return tuple(names), found

    # Files

    def _changed_files(self, seal: Seal, places: Places | None, until: float) -> tuple[str, ...]:
        now = dict(self._marks(places))
        if places is None:
            # git does not tell where its files are: look where they were.
            now |= {path: mark for path in seal.files if (mark := self._mark(path))}
        differ = [path for path in {*seal.files, *now} if seal.files.get(path) != now.get(path)]
        changed = {path for path in differ if _changed_at(self.root / path) <= until}
        if changed and places is not None and self.project is not None:
            # There a person commits and switches branches: only what exists and is not tracked counts.
            listed = attrs.evolve(self.git, root=self.project)("ls-files", "-z", "--", *PROTECTED).split("\0")
            stays = {self._name(self.project / path) for path in listed} | ({*seal.files} - {*now})
            above = tuple(self._name(self.project / name) for name in PROTECTED)
            changed -= {path for path in stays if path.startswith(above)}
        # A folder that became a link has the same files, until the link is removed.
        links = tuple(f"{path}/" for path in changed if path in now and now[path].link)
        return tuple(sorted(changed | {path for path in seal.files if path.startswith(links)}))

    def _about_files(
        self, seal: Seal, files: Collection[str], settings: Mapping[str, Mark]
    ) -> Iterator[Difference]:
        for path in files:
            if path.endswith(STASH_LOG):
                continue  # the ref of the stash is in the list
            was = seal.files.get(path)
            there = path in settings or os.path.lexists(self.root / path)
            shown = os.path.normpath(self.root / path) if path.startswith("../") else path
            happened = "created" if was is None else "changed" if there else "deleted"
            before, after = (self._kept(mark) or b"" if mark else b"" for mark in (was, settings.get(path)))
            mild = path in settings and _sets_only_a_hooks_folder(before, after)
            yield Difference(what=f"{shown} was {happened}", mild=mild)

    def _kept(self, mark: Mark) -> bytes | None:
        path = self.store / mark.digest
        return path.read_bytes() if not mark.link and path.exists() else None

    def _marks(self, places: Places | None) -> Iterator[tuple[str, Mark]]:
        """Yield every sealed file with its mark."""
        starts = [self.root / name for name in PROTECTED]
        if self.project is not None:
            # The run itself writes the planning there, while plans are executed here.
            starts += [self.project / name for name in PROTECTED if name != PLANNING]
        if places is not None:
            folders = dict.fromkeys([places.common, places.own])
            starts += [folder / name for folder in folders for name in GIT]
            if places.hooks.is_relative_to(places.top) and places.hooks not in starts:
                starts.append(places.hooks)
            if (places.top / ".git").is_file():
                starts.append(places.top / ".git")
        for start in starts:
            for path in _files(start):
                name = self._name(path)
                if not name.startswith(f"{WRITTEN_BY_THE_RUN}/") and (mark := self._mark(name)):
                    yield name, mark

    def _name(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.root)).as_posix()

    def _mark(self, name: str) -> Mark | None:
        """Return the mark of a file, reading it only if it may have changed; ``None`` if there is none."""
        path = self.root / name
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                return Mark(os.readlink(path), link=True)  # noqa: PTH115
            if not stat.S_ISREG(status.st_mode):
                return None
            key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
            cached = self._digests.get(name)
            if cached and cached[0] == key:
                return cached[1]
            read_at = time.time_ns()
            # It may be a pipe by now, which would block.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return None
        mode = stat.S_IMODE(status.st_mode)
        mark = Mark(digest, executable=bool(mode & 0o100), mode=mode)
        settled = status.st_ctime_ns < read_at - TICK_NS
        self._digests[name] = (key if settled else (), mark)
        return mark

    def _keep(self, files: Mapping[str, Mark]) -> None:
        """Copy the contents that are not in the store yet."""
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, mark in files.items():
            copy = self.store / mark.digest
            if mark.link or copy.exists():
                continue
            content = _content(self.root / name)
            if content is None or hashlib.sha256(content).hexdigest() != mark.digest:
                continue
            write_below(self.store, mark.digest, content, mode=0o600, durable=False)

    def _put_files_back(self, seal: Seal, files: Collection[str]) -> list[str]:
        """Restore *files*; return what could not be restored."""
        return [problem for path in files if (problem := self._put_back(path, seal.files.get(path)))]

    def _put_back(self, name: str, mark: Mark | None) -> str:
        path = self.root / name
        if mark is None:
            if path.is_symlink() or path.is_file():
                path.unlink()
            return ""
        content = None if mark.link else self._kept(mark)
        if not mark.link and (content is None or hashlib.sha256(content).hexdigest() != mark.digest):
            return f"{name} could not be restored: its content was not kept"
        _make_way(path)
        if content is not None:
            write_below(path.parent, path.name, content, mode=mark.mode, durable=False)
            return ""
        draft = path.with_name(f"{DRAFT[0]}{secrets.token_hex(8)}{DRAFT[1]}")
        draft.symlink_to(mark.digest)
        draft.replace(path)
        return ""

    def _hidden_paths(self, places: Places) -> frozenset[str]:
        """Return the hidden paths, reading the index only if it changed."""
        try:
            status = (places.own / "index").stat()
        except FileNotFoundError:
            return frozenset()
        key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if key != self._index:
            self._hidden = git_refs.hidden_paths(self.git)
            settled = status.st_ctime_ns < time.time_ns() - TICK_NS
            self._index = key if settled else ()
        return self._hidden


def _files(start: Path) -> Iterator[Path]:
    """Yield the files and links at or below *start*; folders behind a link are not entered."""
    if not start.is_dir():
        if os.path.lexists(start):
            yield start
        return
    if start.is_symlink():
        yield start
    for folder, folders, names in os.walk(start):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in sorted([*names, *links]):
            if name not in LEFT_OUT and not DRAFTS.fullmatch(name) and not name.endswith(".lock"):
                yield Path(folder) / name


def _content(path: Path) -> bytes | None:
    """Return the content of a regular file that is small enough to be kept; links are not followed."""
    try:
        return read_below(path.parent, path.name, limit=MAX_KEPT)
    except (FileRefused, FileNotFoundError):
        return None


def _changed_at(path: Path) -> float:
    """Return when a file changed last, in seconds; for one that is gone, when its folder did."""
    for one in (path, *path.parents):
        with suppress(OSError):
            # The time of the change, which no program can set, and not that of the modification.
            return one.lstat().st_ctime
    return 0.0


def _is_in_project(path: str) -> bool:
    return path in PROTECTED or path.startswith(tuple(f"{name}/" for name in PROTECTED))


def _make_way(path: Path) -> None:
    """Make *path* a place where a file can be written: no folder there, and folders above it."""
    for parent in reversed(path.parents):
        # Also a link that leads nowhere.
        if os.path.lexists(parent) and not parent.is_dir():
            parent.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _operations(places: Places) -> frozenset[str]:
    return frozenset(name for name in IN_PROGRESS if (places.own / name).exists())


def _stays_locked(lock: Path, top: Path) -> bool:
    """Whether git's index stays locked although no git works in the repository, in no terminal either."""
    end = time.monotonic() + LOCK_WAIT.total_seconds()
    while lock.exists():
        if time.monotonic() > end:
            return not works_in("git", top)
        time.sleep(0.05)
    return False


def _sets_only_a_hooks_folder(before: bytes, after: bytes) -> bool:
    """Whether settings differ in ``core.hooksPath`` only, as after ``npm install`` with husky."""

    def others(text: bytes) -> list[str]:
        lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
        return [line for line in lines if line and not line.lower().startswith("hookspath")]

    return others(before) == others(after)
