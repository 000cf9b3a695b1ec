"""A throwaway copy of the repository's git directory, for an agent that may use git as it likes.

A confined process sees the copy where the real directory is. It has the refs, HEAD, the index and the hooks,
and its own configuration; it finds the objects in the real object folders, which it can only read. So
the agent sees what is committed, and may commit, stash, switch branches, collect garbage or install hooks:
the real repository does not change.

The folder of a copy contains:

- ``repository``: the copy itself, the only part that a confined process may write;
- ``empty``: an empty folder, in which folders to mount something over may be made;
- ``places.json``: the mounts. The process does not see it, because it could escape by adding a mount.

The layout of a git directory is documented in ``gitrepository-layout(5)``, that of ``packed-refs`` in
``git-pack-refs(1)``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from gsd_core.codec import structure, unstructure
from gsd_core.model.sandbox import Place

from .command import Command
from .repository import common_dir, git_dir, top

COPIED = ("ORIG_HEAD", "shallow", "info/exclude", "info/sparse-checkout", "info/attributes", "info/grafts")
"""Files of a git directory that are copied as they are, in addition to HEAD, the index and the refs."""

MAX_HOOK_BYTES = 1 << 20

KEPT_KEYS = re.compile(
    r"user\.(name|email)|init\.defaultbranch|extensions\.(objectformat|compatobjectformat|refstorage)"
    r"|core\.(repositoryformatversion|bare|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf"
    r"|abbrev|quotepath|sparsecheckout|sparsecheckoutcone|worktree|whitespace|commentchar|longpaths|hookspath)"
    r"|i18n\..*|commit\.(cleanup|status|verbose)|pull\.(rebase|ff)|push\.default|merge\.(conflictstyle|ff)"
    r"|diff\.(algorithm|renames|mnemonicprefix|noprefix|colormoved)|status\..*|rebase\.(autostash|autosquash)"
    r"|branch\..*\.(remote|merge|rebase)|remote\..*\.(url|fetch|tagopt|prune)|submodule\..*\.(url|active|branch)"
    r"|tag\.sort|column\.ui|rerere\.enabled|fetch\.prune",
    re.DOTALL,
)
"""Settings that are copied, all others are not: many name programs, files of the user or passwords.

The names of sections and keys are lower case, as git lists them."""


@attrs.frozen(kw_only=True)
class Throwaway:
    """What :func:`make` made.

    *top* is the top folder of the work tree, *empty* an empty folder. *places* are to be mounted over the
    work tree. *pointers* are files named ``.git``, to be mounted read-only: otherwise they could be made to
    name a directory whose configuration starts programs.
    """

    top: Path
    empty: Path
    places: tuple[Place, ...]
    pointers: tuple[Path, ...]


def make(git: Command, folder: Path) -> Path | None:
    """Make a throwaway git directory in *folder*, an empty private folder of the caller; return *folder*.

    ``None`` if the folder of *git* is in no repository. Make one for each agent call, and remove *folder* at
    its end: what the agent stashes in one command is there in the next one. Raises ``GitError``, ``OSError``.
    """
    if git.layout() is None:
        return None
    own, common, work_tree = git_dir(git), common_dir(git), top(git).resolve()
    (folder / "empty").mkdir(mode=0o700)
    copy = folder / "repository"
    config = harmless_config(git, own, work_tree)
    mounts = [Place(path=own, source=copy, writable=True), *_copy(own, common, copy, own, config)]
    # In a linked worktree, and in a submodule, it is a file that names the directory.
    pointers = [work_tree / ".git"]
    for inner in _git_directories(own / "modules"):
        part = inner.relative_to(own)
        there = attrs.evolve(git, root=inner, environment={**git.environment, "GIT_DIR": str(inner)})
        tree = (inner / there("config", "--default", ".", "core.worktree")).resolve()
        mounts += _copy(inner, inner, copy / part, own / part, harmless_config(there, inner, tree))
        if tree.is_relative_to(work_tree):
            pointers.append(tree / ".git")
    files = tuple(path for path in pointers if path.is_file() and not path.is_symlink())
    made = Throwaway(top=work_tree, empty=folder / "empty", places=tuple(mounts), pointers=files)
    (folder / "places.json").write_text(json.dumps(unstructure(made)), encoding="utf-8")
    return folder


def describe(folder: Path) -> Throwaway:
    """Return what :func:`make` made in *folder*."""
    return structure(json.loads((folder / "places.json").read_text(encoding="utf-8")), Throwaway)


def refresh(git: Command, folder: Path) -> None:
    """Show the processes that use *folder* the repository's current commit, after the core has made one.

    What the agent has stashed stays. If it has made commits or switched the branch, it keeps what it sees.
    """
    own, common = git_dir(git), common_dir(git)
    if (common / "reftable").is_dir():
        return
    # The processes may have replaced anything in the copy by a symlink. Only entries of the copy's own
    # folder are replaced, never a path below it.
    target = os.open(folder / "repository", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        head = (own / "HEAD").read_bytes()
        if _read_at(target, "HEAD") != head:
            return
        branch = os.fsdecode(head.strip().removeprefix(b"ref: "))
        with suppress(OSError):
            os.stat(branch, dir_fd=target, follow_symlinks=False)
            return
        _replace_at(target, "packed-refs", _packed(common), folder)
        with suppress(FileNotFoundError):
            _replace_at(target, "index", (own / "index").read_bytes(), folder)
    finally:
        os.close(target)


def _read_at(directory: int, name: str) -> bytes:
    with suppress(OSError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        try:
            return os.read(file, 4096)
        finally:
            os.close(file)
    return b""


def _replace_at(directory: int, name: str, content: bytes, folder: Path) -> None:
    draft = folder / f"{name}.new"
    draft.write_bytes(content)
    os.replace(draft, name, dst_dir_fd=directory)


def _copy(own: Path, common: Path, copy: Path, path: Path, config: str) -> Iterator[Place]:
    """Copy the git directory *own* to *copy*, to be seen at *path*; yield the places of its objects."""
    for name in ("objects/info", "refs/heads", "refs/tags", "info", "hooks", "shared"):
        (copy / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    (copy / "config").write_text(config, encoding="utf-8", errors="surrogateescape")
    if _is_readable(own / "HEAD", own):
        shutil.copyfile(own / "HEAD", copy / "HEAD")
    for file in (own / "index", *own.glob("sharedindex.*")):
        if _is_readable(file, own):
            # With its time: git uses it to recognize files that changed at the moment of `git add`.
            shutil.copy2(file, copy / file.name)
    for name in COPIED:
        # A linked worktree has some of them itself, and shares the others.
        for folder in (own, common):
            if _is_readable(folder / name, folder):
                shutil.copyfile(folder / name, copy / name)
                break
    if (common / "reftable").is_dir():
        shutil.copytree(common / "reftable", copy / "reftable", symlinks=True)
    else:
        (copy / "packed-refs").write_bytes(_packed(common))
        for ref, target in _symbolic(common):
            (copy / ref).parent.mkdir(parents=True, exist_ok=True)
            (copy / ref).write_bytes(target)
    for hook in sorted((common / "hooks").glob("*")):
        if hook.suffix != ".sample" and _is_readable(hook, common) and hook.stat().st_size <= MAX_HOOK_BYTES:
            shutil.copy(hook, copy / "hooks" / hook.name)
    alternates: list[bytes] = []
    for number, objects in enumerate(_object_folders(common / "objects")):
        (copy / "shared" / str(number)).mkdir()
        yield Place(path=path / "shared" / str(number), source=objects)
        alternates.append(f"../shared/{number}\n".encode())
    # Relative paths are allowed in the repository itself, and count from its object folder.
    (copy / "objects" / "info" / "alternates").write_bytes(b"".join(alternates))


def _is_readable(file: Path, folder: Path) -> bool:
    """Whether *file* is a regular file that is really in *folder*.

    An unpacked archive may contain a git directory with a symlink to a file of the user's.
    """
    return file.is_file() and file.resolve().is_relative_to(folder)


def _object_folders(objects: Path) -> list[Path]:
    """Return *objects* and the object folders that it borrows from, directly or not."""
    found: list[Path] = []
    todo = [objects]
    while todo:
        folder = todo.pop().resolve()
        # It may name any folder: only folders of objects are made visible.
        if folder in found or not ((folder / "pack").is_dir() and (folder / "info").is_dir()):
            continue
        found.append(folder)
        with suppress(FileNotFoundError):
            lines = (folder / "info" / "alternates").read_bytes().splitlines()
            todo += [folder / os.fsdecode(line) for line in lines if line and not line.startswith(b"#")]
    return found


def _packed(common: Path) -> bytes:
    """Return the text of ``packed-refs`` with all refs, but without the stash.

    Not even the user's own stash: ``git stash pop`` would put its changes into the user's files.
    """
    refs: dict[bytes, bytes] = {}
    if _is_readable(common / "packed-refs", common):
        for line in (common / "packed-refs").read_bytes().splitlines():
            value, _, name = line.partition(b" ")
            if name and not line.startswith((b"#", b"^")):
                refs[name] = value
    for folder, _, files in os.walk(common / "refs"):
        for file in files:
            path = Path(folder, file)
            with suppress(OSError):
                value = path.read_bytes().strip()
                if re.fullmatch(rb"[0-9a-f]{40,64}", value):
                    refs[os.fsencode(path.relative_to(common))] = value
    # Those of gsd itself keep what the user had not committed.
    hidden = (b"refs/stash", b"refs/gsd/", b"refs/worktree/", b"refs/bisect/")
    shown = sorted(item for item in refs.items() if not item[0].startswith(hidden))
    # Without the usual first line, which would say that annotated tags are listed with their commits.
    return b"".join(value + b" " + name + b"\n" for name, value in shown)


def _symbolic(common: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield refs such as ``refs/remotes/origin/HEAD``, which ``packed-refs`` cannot contain."""
    for path in (common / "refs" / "remotes").glob("*/HEAD"):
        with suppress(OSError):
            if (content := path.read_bytes()).startswith(b"ref: refs/remotes/"):
                yield Path("refs", "remotes", path.parent.name, "HEAD"), content


def harmless_config(git: Command, own: Path, work_tree: Path) -> str:
    """Return the harmless part of the configuration that applies in the repository, as text.

    *own* is git's directory, *work_tree* the top of the work tree.
    """
    listed = git("config", "--list", "--show-scope", "-z").split("\0")
    lines: list[str] = []
    for scope, entry in zip(listed[::2], listed[1::2], strict=False):
        key, has_value, value = entry.partition("\n")
        is_own = scope in ("local", "worktree")
        if not KEPT_KEYS.fullmatch(key) or (not is_own and key.startswith(("extensions.", "core.repo"))):
            continue
        if key == "core.worktree" and (own / value).resolve() != work_tree:
            continue
        is_outside = value.startswith("~") or not (work_tree / value).resolve().is_relative_to(work_tree)
        if key == "core.hookspath" and is_outside:
            continue
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        header = f"[{section} {_quoted(subsection)}]" if subsection else f"[{section}]"
        harmless = re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", r"\1", value, flags=re.IGNORECASE)  # no password
        lines += [header, f"\t{name} = {_quoted(harmless)}" if has_value else f"\t{name}"]
    # The user's key for signatures is not there.
    return "\n".join([*lines, "[commit]", "\tgpgsign = false", "[tag]", "\tgpgsign = false", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _git_directories(folder: Path) -> Iterator[Path]:
    """Yield the git directories below *folder*; the name of a submodule may contain slashes."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if (path / "HEAD").is_file() and (path / "objects").is_dir():
            yield path
            yield from _git_directories(path / "modules")
        else:
            yield from _git_directories(path)
