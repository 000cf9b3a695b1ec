"""What a confined process of a run sees of the host, and which of it it may change."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gsd_core.errors import ProjectError
from gsd_core.git import refs, throwaway
from gsd_core.git.command import Command
from gsd_core.git.repository import top
from gsd_core.model.sandbox import Place
from gsd_core.protected_paths import PROTECTED_NAMES

from .private_home import home_places, real_home

PLANNING = ".planning"
DATA = "gsd"
"""The folder of the journal, in git's directory."""
FOLDERS = (PLANNING, ".gsd", ".claude")
"""Protected names that are folders. If one is missing, an empty one is made, because only what exists can be
made read-only."""

PROTECTED = tuple(name for name in PROTECTED_NAMES if name not in (".git", "git~1"))
"""The names in the project's top folder that a confined process may not change."""


READ_ONLY = ("hooks", "info", "modules")
"""What a process that may write the real git directory must not change there: it can start programs."""


def owned_places(git: Command, folder: Path) -> tuple[Place, ...]:
    """Return the places of the real git directory, for a process that makes commits itself.

    *folder* is an empty private folder of the caller. Files in it stand for git's settings, which may name
    programs and contain passwords, and a folder for that of the journal. Raises ``GitError``, ``OSError``,
    and ``ProjectError`` for a symlink that cannot be protected.
    """
    found = refs.places(git)
    hidden, config, empty = folder / "hidden", folder / "config", folder / "empty"
    hidden.mkdir(mode=0o700)
    config.write_text(throwaway.harmless_config(git, found.own, found.top), "utf-8", "surrogateescape")
    empty.touch()
    places: list[Place] = []
    for directory in dict.fromkeys((found.common.resolve(), found.own.resolve())):
        # Only what exists can be made read-only.
        for name in ("hooks", "info"):
            (directory / name).mkdir(exist_ok=True)
        (directory / DATA).mkdir(mode=0o700, exist_ok=True)
        sources = {"config": config, "config.worktree": empty}
        wanted = [directory / name for name in (*READ_ONLY, *sources)]
        pinned = [path for path in wanted if os.path.lexists(path)]
        if link := next((path for path in pinned if path.is_symlink()), None):
            raise _symlink(link)
        places.append(Place(path=directory, source=directory, writable=True))
        places += [Place(path=path, source=sources.get(path.name, path)) for path in pinned]
        places.append(Place(path=directory / DATA, source=hidden, writable=True))
    pointer = found.top / ".git"
    if pointer.is_file():
        places.append(Place(path=pointer.resolve(), source=pointer.resolve()))
    return tuple(places)


def prepare(
    project: Path,
    tree: Path,
    *,
    writable: bool,
    git: Path | None,
    home: Path,
    before: Sequence[Place] = (),
    owned: Sequence[Place] | None = None,
) -> tuple[Place, ...]:
    """Return the places for a process that works in *tree*, the project itself or a checkout of it.

    *git* is the result of ``gsd_core.git.throwaway.make`` for *tree*; *home* that of
    ``gsd_core.run.private_home.private_home``, and *before* are places that it has links into. *writable*:
    whether it may change the files of *tree*.
    *owned*: the process may write ``.planning/``, and uses the real git directory: see :func:`owned_places`.

    The paths are absolute and without symlinks. In the project, the folders :data:`FOLDERS` are made if they
    are missing; :func:`remove_empty` removes them at the end of a run. Raises ``ProjectError`` if *tree*
    contains the user's home folder, or if something to protect is a symlink that leads out of it.

    What could not be covered is left to the caller, who has to look after the process has ended: a protected
    file that does not exist, and a protected path that is a symlink within *tree*.
    """
    project, tree = project.resolve(), tree.resolve()
    copy = throwaway.describe(git) if git else None
    real = real_home()
    for folder in (project, tree):
        if folder == Path("/") or (real and real.is_relative_to(folder)):
            message = f"the project {str(folder)!r} contains the user's home folder"
            raise ProjectError(message, hint="use a separate folder for the project")
    of_home = (*before, *home_places(home))
    places = [one for one in of_home if not any(map(one.path.is_relative_to, (project, tree)))]
    is_checkout = not tree.is_relative_to(project)
    if copy and copy.top != tree:
        # In a monorepo, the packages beside the project are needed to build it.
        places.append(Place(path=copy.top, source=copy.top, writable=writable and is_checkout))
    if owned is not None and (work_tree := top(Command(root=tree)).resolve()) != tree:
        # Without the files beside the project, `git add -A` would commit that they are deleted.
        places.append(Place(path=work_tree, source=work_tree))
    if is_checkout:
        # A checkout has links to dependencies that are installed in the project.
        places.append(Place(path=project, source=project))
        if copy and (project / ".git").is_dir():
            places.append(Place(path=(project / ".git").resolve(), source=copy.empty))
    places.append(Place(path=tree, source=tree, writable=writable))
    if writable:
        places += _protected(tree, is_project=tree == project, owns_planning=owned is not None)
    if (tree / ".git").is_symlink():
        raise _symlink(tree / ".git")
    if copy:
        inner = [*copy.places, *(Place(path=path, source=path) for path in copy.pointers)]
        places += _fixed(tree, [place.path for place in inner], covered=places, writable=writable)
        places += inner
    return (*places, *(owned or ()))


def make_mount_points(places: Sequence[Place], git: Path) -> None:
    """Make the folders and files that *places* are mounted over where a checkout hides the project's git.

    The agent of a rehearsal keeps its configuration in git's directory. What hides that is read-only, so a
    sandbox cannot make them there itself. *git* is that of :func:`prepare`. Raises ``OSError``.
    """
    empty = throwaway.describe(git).empty
    for index, place in enumerate(places):
        within = [outer for outer in places[:index] if place.path.is_relative_to(outer.path)]
        if within and within[-1].source == empty:
            point = empty / place.path.relative_to(within[-1].path)
            folder = point if place.source.is_dir() else point.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if point != folder:
                point.touch()


def hold_folders(project: Path) -> int:
    """Keep other processes from removing the folders that :func:`prepare` makes, until the result is closed.

    Call it before. Raises ``OSError`` if *project* cannot be opened.
    """
    descriptor = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # Removing takes a moment. Longer, an agent holds the lock, and then nobody removes anything.
    with suppress(OSError):  # a file system without locks
        for _ in range(100):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
    return descriptor


def remove_empty(project: Path) -> None:
    """Remove the folders that :func:`prepare` has made, if they are still empty. Call it when a run ends.

    They stay while another process needs them: ``gsd gaps`` and ``gsd trust`` work beside a run.
    """
    with suppress(OSError):
        descriptor = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in FOLDERS:
                with suppress(OSError):
                    (project / name).rmdir()
        finally:
            os.close(descriptor)


def _fixed(tree: Path, paths: Sequence[Path], *, covered: Sequence[Place], writable: bool) -> list[Place]:
    """Return the folders between *tree* and *paths* as separate places.

    A folder that contains a mount point can be renamed and replaced; a mount point itself cannot. Those in
    what is *covered* in the tree already are read-only, and stay so.
    """
    found = {parent for path in paths for parent in path.parents if tree in parent.parents}
    # Git's own directory contains some, but is a mount point already.
    done = [*paths, *(place.path for place in covered if tree in place.path.parents)]
    inside = [path for path in sorted(found) if not any(path.is_relative_to(one) for one in done)]
    return [Place(path=path, source=path, writable=writable) for path in inside]


def _protected(tree: Path, *, is_project: bool, owns_planning: bool) -> list[Place]:
    places: list[Place] = []
    for name in PROTECTED:
        if owns_planning and name == PLANNING:
            continue
        path = tree / name
        if path.is_symlink():
            # Such as ".claude -> .agents". Its target is protected, but the link can be replaced.
            target = path.resolve()
            if tree not in target.parents or ".git" in target.relative_to(tree).parts:
                raise _symlink(path)
            if target.exists():
                places.append(Place(path=target, source=target))
            continue
        if is_project and name in FOLDERS:
            path.mkdir(exist_ok=True)
        if path.exists():
            places.append(Place(path=path, source=path))
    return places


def _symlink(path: Path) -> ProjectError:
    # A link in a writable folder can be replaced, and git and gsd would follow it on the host.
    message = f"{str(path)!r} is a symlink, so a sandbox cannot protect it"
    return ProjectError(message, hint="replace it by what it points to, or use --sandbox off")
