"""HEAD, the branches and the other refs: read, compare, and put back.

Everything here works without hooks, so that a hook of the repository cannot run, or refuse, what is undone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import attrs

from gsd_core.files import remove_below

from .command import Command, GitError, GitUnavailable
from .commit import FROM_STDIN, listed
from .history import MAX_ARGUMENTS, PROJECT
from .recovery import commit_ref, commit_tree
from .repository import changed, head, one_writer, read_head, store, top, unmerged

BRANCHES, REMOTES, TAGS, STASH = "refs/heads/", "refs/remotes/", "refs/tags/", "refs/stash"
OWN = "refs/gsd/"
REAL_OBJECTS = {"GIT_NO_REPLACE_OBJECTS": "1"}
"""For reading the history as it is: an object can be replaced by another with ``git replace``."""

IN_PROGRESS: Mapping[str, str] = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
    "BISECT_START": "a bisect",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a sequence of picks",
}
"""Names in git's directory that exist while an operation is in progress."""


@attrs.frozen(kw_only=True)
class Refs:
    """Where HEAD and the refs point.

    *branch* is the full name of the branch that HEAD is on, empty if it is detached. *head* is its commit,
    empty if there is none yet. *refs* has the objects of all refs except the run's own (``refs/gsd``)
    and the remote-tracking ones, whose objects are in *remotes*.
    """

    branch: str = ""
    head: str = ""
    refs: Mapping[str, str] = attrs.field(factory=dict[str, str])
    remotes: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen(kw_only=True)
class Places:
    """The folders of the repository: git's own for this worktree, the shared one, that of hooks, the top."""

    own: Path
    common: Path
    hooks: Path
    top: Path


@attrs.frozen(kw_only=True)
class NewCommit:
    """A commit since another one: its id, its trailer ``GSD-Project``, the paths it changed.

    *paths* are relative to the top of the repository.
    """

    sha: str
    project: str = ""
    paths: tuple[str, ...] = ()


def read_refs(git: Command) -> Refs:
    """Return where HEAD and the refs point now."""
    found: dict[str, str] = {}
    remotes: dict[str, str] = {}
    current = ""
    out = git("for-each-ref", "--format=%(refname) %(objectname) %(HEAD)")
    for name, sha, mark in (line.split(" ", 2) for line in out.splitlines()):
        if not name.startswith(OWN):
            (remotes if name.startswith(REMOTES) else found)[name] = sha
        current = name if mark == "*" else current
    if current in found:
        return Refs(branch=current, head=found[current], refs=found, remotes=remotes)
    # HEAD is detached, as in each plan's work tree, or on a branch that has no commit yet.
    here = read_head(git)
    is_detached = here is not None and not here[0]
    code, branch = (1, "") if is_detached else git.run("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    if code == 0:
        return Refs(branch=branch, head=found.get(branch, ""), refs=found, remotes=remotes)
    return Refs(head=head(git, ok=(0, 1, 128)) or "", refs=found, remotes=remotes)


def places(git: Command) -> Places:
    """Return the folders of the repository; the hooks are where its settings say."""
    asked = ("--git-dir", "--git-common-dir", "--git-path", "hooks", "--show-toplevel")
    # With hooks, git says where they are; it runs none.
    out = git("rev-parse", *asked, hooks=True)
    own, common, hooks, top = (Path(os.path.normpath(git.root / line)) for line in out.splitlines())
    return Places(own=own, common=common, hooks=hooks, top=top)


def is_ancestor(git: Command, older: str, newer: str) -> bool:
    """Whether *newer* is *older* or comes after it."""
    code, _ = git.run("merge-base", "--is-ancestor", older, newer, ok=(0, 1, 128), environment=REAL_OBJECTS)
    return code == 0


def base_of(git: Command, commit: str, known: Iterable[str]) -> str:
    """Return the last commit below *commit*, or itself, that one of the *known* commits reaches."""
    commits = list(dict.fromkeys(filter(None, known)))[:MAX_ARGUMENTS]
    if not commit or not commits:
        return ""
    code, out = git.run("merge-base", commit, *commits, ok=(0, 1, 128), environment=REAL_OBJECTS)
    return out if code == 0 else ""


def commits_since(git: Command, older: str, newer: str) -> tuple[NewCommit, ...]:
    """Return the commits that *newer* reaches and *older* does not, newest first."""
    form = f"%x02%H%x01%(trailers:key={PROJECT},valueonly,separator=%x20)%x01"
    out = git(
        *("log", "--topo-order", "--no-show-signature", "--no-renames", "-m", "--name-only", "-z"),
        *(f"--format={form}", newer, *([f"^{older}"] if older else [])),
        environment=REAL_OBJECTS,
    )
    found: dict[str, NewCommit] = {}
    for part in out.split("\x02")[1:]:
        sha, project, rest = part.split("\x01", 2)
        paths = tuple(path for path in rest.replace("\n", "\0").split("\0") if path)
        # With -m, a merge is listed once for each of its parents.
        earlier = found[sha].paths if sha in found else ()
        found[sha] = NewCommit(sha=sha, project=project, paths=(*earlier, *paths))
    return tuple(found.values())


def branches_elsewhere(git: Command) -> frozenset[str]:
    """Return the branches that other worktrees of the repository have checked out."""
    own = top(git).resolve()
    found: set[str] = set()
    for block in git("worktree", "list", "--porcelain").split("\n\n"):
        lines = {key: value for key, _, value in (line.partition(" ") for line in block.splitlines())}
        if lines.get("branch") and Path(lines.get("worktree", "")).resolve() != own:
            found.add(lines["branch"])
    return frozenset(found)


def is_branch_name(git: Command, name: str) -> bool:
    """Whether a branch can have that name."""
    # Not with --branch, which would expand "@{-1}".
    return not name.startswith("-") and git.succeeds("check-ref-format", f"{BRANCHES}{name}")


def commit_of(git: Command, branch: str) -> str:
    """Return the commit of a local branch; empty if there is none of that name."""
    if not branch:
        return ""
    ref = f"{BRANCHES}{branch}^{{commit}}"
    code, out = git.run("rev-parse", "--verify", "--quiet", "--end-of-options", ref, ok=(0, 1, 128))
    return out.splitlines()[-1] if code == 0 and out else ""


def start_branch(git: Command, name: str, start: str) -> None:
    """Switch to branch *name*, which begins at the commit *start*; one that exists is moved there.

    Uncommitted changes are kept; if they are in the way, git refuses.
    """
    with one_writer(git):
        git("switch", "--quiet", "--no-track", "-C", name, start)


def switch_branch(git: Command, name: str) -> None:
    """Switch to a branch that exists. Uncommitted changes are kept; if they are in the way, git refuses."""
    with one_writer(git):
        git("switch", "--quiet", "--no-guess", name)


def fast_forward(git: Command, commit: str) -> None:
    """Move the current branch and the files forward to *commit*.

    A changed file that is as in *commit* already is not in the way: a machine that died may have left some.
    Raise ``GitError`` if another one is, or if the branch has other commits, and change nothing.
    """
    merge = ("merge", "--ff-only", "--quiet", "--no-stat", commit)
    with one_writer(git):
        try:
            git(*merge, environment=REAL_OBJECTS)
        except GitError:
            found = _overwritten(git, commit)
            same = _same_as_in(git, commit, found)
            if not same or len(same) < len(found) or not is_ancestor(git, "HEAD", commit):
                raise
            for path in same:
                if found[path]:
                    git("restore", "--source=HEAD", "--staged", "--worktree", "--", path)
                else:
                    remove_below(git.root, path)
            git(*merge, environment=REAL_OBJECTS)
        git.known.commits.add(commit)


def in_the_way(git: Command, commit: str) -> tuple[str, ...]:
    """Return the files that are not committed, and that moving forward to *commit* would overwrite.

    git itself replaces those that it ignores, also with ``--no-overwrite-ignore``.
    """
    found = _overwritten(git, commit)
    return tuple(sorted({*found} - {*_same_as_in(git, commit, found)}))


def _overwritten(git: Command, commit: str) -> dict[str, bool]:
    """Return the files that differ from HEAD and would be replaced by *commit*, and whether HEAD has them."""
    options = ("-r", "-z", "--name-only", "--no-renames")
    paths = {path for path in git("diff-tree", *options, "HEAD", commit).split("\0") if path}
    tracked = {*git("ls-files", "-z", "--cached").split("\0")}
    found = {path for path in paths - tracked if os.path.lexists(git.root / path)}
    return {path: path in tracked for path in found | (paths & {*changed(git)})}


def _same_as_in(git: Command, commit: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of *paths* that are regular files with the content that *commit* has."""
    files = [path for path in paths if (git.root / path).is_file() and not (git.root / path).is_symlink()]
    files = [path for path in files if "\n" not in path]
    if not files:
        return ()
    here = git("hash-object", "--stdin-paths", stdin="".join(f"{path}\n" for path in files)).split()
    listed = (line.partition("\t") for line in git("ls-tree", "-r", "-z", commit).split("\0"))
    there = {path: about.split()[2] for about, _, path in listed if path}
    return tuple(path for path, sha in zip(files, here, strict=True) if there.get(path) == sha)


def hidden_paths(git: Command) -> frozenset[str]:
    """Return the paths whose changes git was told not to see (``update-index --assume-unchanged``)."""
    lines = git("ls-files", "-v", "-z", "--", ".").split("\0")
    # A lower-case letter is "assume unchanged", S is "skip worktree".
    return frozenset(line[2:] for line in lines if line and (line[0].islower() or line[0] == "S"))


def show_paths(git: Command, paths: Collection[str]) -> None:
    """Make git see changes of *paths* again."""
    for option in ("--no-assume-unchanged", "--no-skip-worktree"):
        git("update-index", option, "-z", "--stdin", stdin=listed(sorted(paths)))


def save(git: Command, name: str, contents: Mapping[str, bytes], tips: Iterable[str]) -> str:
    """Keep *contents* (by path) and the history of *tips* in one commit below ``refs/gsd/recover``.

    Return its ref. A tip that is not a commit gets a separate ref.
    """
    parents: list[str] = []
    for tip in dict.fromkeys(tips):
        code, commit = git.run("rev-parse", "--verify", "--quiet", f"{tip}^{{commit}}", ok=(0, 1, 128))
        if code == 0:
            parents.append(commit)
        if code != 0 or commit != tip:
            commit_ref(git, f"{name}-object", tip)
    with tempfile.TemporaryDirectory(prefix="gsd-index-") as folder:
        environment = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        storable = {".git": "_git", "..": "_up"}  # instead of the names that git does not store
        for path, content in contents.items():
            name_in_tree = "/".join(storable.get(part.lower(), part) for part in path.split("/"))
            entry = f"100644,{store(git, content)},{name_in_tree}"
            git("update-index", "--add", "--cacheinfo", entry, environment=environment)
        tree = git("write-tree", environment=environment) if contents else git("mktree")
    subject = f"changed while an agent worked: {name}"
    return commit_ref(git, name, commit_tree(git, tree, dict.fromkeys(parents), subject))


def put_back(git: Command, was: Refs, now: Refs, names: Collection[str]) -> None:
    """Make the refs *names* point where they pointed."""
    new = [f"delete {name}\0\0" for name in sorted(names) if name not in was.refs and name in now.refs]
    old = [f"update {name}\0{was.refs[name]}\0\0" for name in sorted(names) if name in was.refs]
    # The new ones go first: a new "topic/x" is in the way of a deleted "topic".
    for lines in (new, old):
        if lines:
            text = "".join(["start\0", *lines, "prepare\0", "commit\0"])
            git("update-ref", "--no-deref", "-z", "--stdin", stdin=text)


def put_head_back(git: Command, was: Refs, now: Refs, head: str, *, base: str) -> str:
    """Put HEAD on the branch that it was on, at *head*; return why the work tree could not follow, if so.

    With a *base*, the files change from those of this commit to those of *head*, as in ``git switch``: what
    differs from *base* stays. Without, files and index are not touched.
    """
    problem = ""
    if base and head:
        try:
            git("update-index", "-q", "--refresh", ok=(0, 1))
            git("read-tree", "-m", "-u", base, head)
        except GitError as error:
            problem = str(error)
    if was.branch:
        git("symbolic-ref", "-m", "gsd: undo", "HEAD", was.branch)
        if head:
            git("update-ref", "-m", "gsd: undo", was.branch, head)
        elif was.branch in now.refs:
            git("update-ref", "-d", was.branch)
    elif head:
        git("update-ref", "--no-deref", "-m", "gsd: undo", "HEAD", head)
    return problem


def bring_back_stash(git: Command, stash: str) -> bool:
    """Apply a stash; return whether that worked. A copy of the stash exists already."""
    for options in (("--index",), ()):
        try:
            git("stash", "apply", "--quiet", *options, stash)
        except GitUnavailable:
            raise
        except GitError:
            continue
        return True
    return False


def end_operations(git: Command, own: Path, names: Collection[str]) -> None:
    """Forget operations that are in progress, and take conflicts out of the index; files stay as they are."""
    for name in names:
        path = own / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    for path in (*own.glob("BISECT_*"), own / "MERGE_MODE", own / "MERGE_MSG", own / "AUTO_MERGE"):
        path.unlink(missing_ok=True)
    unstage(git, unmerged(git))


def unstage(git: Command, paths: Collection[str]) -> None:
    """Make the index have *paths* as HEAD has them; files stay as they are."""
    if paths:
        git("reset", "--quiet", *FROM_STDIN, stdin=listed(sorted(paths)), ok=(0, 1))
