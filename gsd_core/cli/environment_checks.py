"""The checks of ``gsd doctor`` about the machine: Python, git, the file system, and free space."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gsd_core import __version__
from gsd_core.git import Git, git_common_dir
from gsd_core.git.command import Command, check_version
from gsd_core.git.refs import places
from gsd_core.git.repository import how_to_end, identity, is_repository
from gsd_core.programs import find_program
from gsd_core.run.file_system import NETWORK, file_system_type, try_out
from gsd_core.run.preflight import check_temporary_folder
from gsd_core.settings import trust_folder
from gsd_core.views.diagnosis import Check, CheckState

from .project import nearest_folder

IDENTITY_FIX = 'git config --global user.name "NAME" && git config --global user.email "EMAIL"'
FEW_BYTES, SCARCE_BYTES = 200 << 20, 2 << 30
"""Free space with which a run cannot finish, and with which it may not: dependencies, checkouts, caches."""
FEW_FILES = 10_000


def check_python() -> Iterator[Check]:
    """Yield the versions, and whether paths outside of ASCII can be used."""
    version = platform.python_version()
    found = f"gsd {__version__}, Python {version} ({sys.executable or 'unknown path'}), {platform.platform()}"
    yield Check("machine", "python", "ok", found)
    encoding = sys.getfilesystemencoding()
    if encoding.lower().replace("-", "") != "utf8":
        found = f"the names of files are encoded as {encoding}: others than ASCII cannot be used"
        yield Check("machine", "encoding", "warning", found, "export LC_ALL=C.UTF-8")


def check_git(root: Path) -> Iterator[Check]:
    """Yield git's version and path, who commits, and what runs at a commit; runs none of it."""
    # In the project, because that decides which git is used: never one that the project brings.
    git = Command(root=root)
    check_version(git)
    version = git("version").removeprefix("git version ")
    yield Check("machine", "git", "ok", f"{version} ({find_program('git', root)})")
    if who := identity(git):
        yield Check("machine", "git identity", "ok", who)
    else:
        found = "git does not know your name and email, so it cannot commit"
        yield Check("machine", "git identity", "problem", found, IDENTITY_FIX)


def check_repository(root: Path) -> Iterator[Check]:
    """Yield whether *root* is in a repository that gsd can work in, and its hooks and signatures."""
    git = Command(root=root)
    if not is_repository(git):
        found = f"{root} is not in a git repository; a new project gets one"
        yield Check("project", "repository", "skipped", found)
        return
    asynchronous = Git(root)
    branch = asyncio.run(asynchronous.branch())
    on = f"on branch {branch}" if branch else "with a detached HEAD"
    state: CheckState = "ok"
    found, fix = f"{git_common_dir(root)}, {on}", ""
    if asyncio.run(asynchronous.is_ignored(".")):
        state, found = "problem", f"{root} is ignored by the repository around it, so it cannot be committed"
        fix = "git init"
    elif name := asyncio.run(asynchronous.operation()):
        state, found, fix = "problem", f"a git {name} is in progress", how_to_end(name)
    yield Check("project", "repository", state, found, fix)
    if git("config", "--get", "--type=bool", "--default=false", "commit.gpgSign") == "true":
        found = "git signs commits: a key that asks for a passphrase stops an unattended run"
        yield Check("project", "signed commits", "ok", found)
    folder = places(git).hooks
    files = folder.iterdir() if folder.is_dir() else ()
    if hooks := sorted(
        path.name
        for path in files
        if path.suffix != ".sample" and path.is_file() and os.access(path, os.X_OK)
    ):
        found = f"run at commits, in the sandbox if there is one: {', '.join(hooks)}"
        yield Check("project", "git hooks", "ok", found)


def check_file_system(root: Path) -> Iterator[Check]:
    """Yield what the file system of the repository can do, tried out in git's own directory."""
    kind = file_system_type(root) or "unknown type"
    folder = git_common_dir(root)
    if folder is None:
        yield Check("project", "file system", "skipped", f"{kind}; no repository here")
        return
    able = try_out(folder)
    able_to = {
        "locks (flock)": able.locks,
        "exclusive creation (O_EXCL)": able.exclusive,
        "symlinks": able.symlinks,
    }
    missing = [name for name, works in able_to.items() if not works]
    case = "" if able.case_sensitive else ", does not distinguish upper and lower case"
    ignores = Command(root=root)("config", "--get", "--type=bool", "--default=false", "core.ignoreCase")
    state: CheckState = "warning"
    fix = "move the repository to a local disk"
    if missing:
        state = "warning" if able.locks and able.exclusive else "problem"
        found = f"{kind} without {', '.join(missing)}"
    elif kind in NETWORK:
        found = f"{kind}{case}: a run on another machine may not see this one's lock, and git is slow"
    elif not able.case_sensitive and ignores != "true":
        found, fix = f"{kind}{case}, but git expects that it does", "git config core.ignoreCase true"
    else:
        state, found, fix = "ok", f"{kind}{case}, with symlinks and locks", ""
    yield Check("project", "file system", state, found, fix)


def check_temporary() -> Iterator[Check]:
    """Yield whether there is a folder for temporary files outside of the project."""
    check_temporary_folder()
    yield Check("machine", "temporary files", "ok", tempfile.gettempdir())


def check_own_folder() -> Iterator[Check]:
    """Yield whether gsd can store what it keeps about the user: trust, and which journals are theirs."""
    folder = trust_folder()
    state: CheckState = "ok"
    found, fix = str(folder.parent), ""
    try:
        # Tried out, because permissions do not tell about read-only mounts, and root has all of them.
        with tempfile.TemporaryFile(dir=nearest_folder(folder)):
            pass
    except OSError:
        state, found = "warning", f"{found} cannot be written, so gsd cannot remember what you trust"
        fix = "make it writable, or set GSD_STATE_DIR to another folder"
    yield Check("machine", "state folder", state, found, fix)


def check_space(
    root: Path, *, usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage
) -> Iterator[Check]:
    """Yield the free space of each file system that a run writes to; *usage* is as ``shutil.disk_usage``."""
    wanted = {"the project": root, "temporary files": Path(tempfile.gettempdir())}
    seen: set[int] = set()
    for what, path in wanted.items():
        near = nearest_folder(path)
        if (device := near.stat().st_dev) in seen:
            continue
        seen.add(device)
        _, _, free = usage(near)
        status = os.statvfs(near)
        state: CheckState = "problem" if free < FEW_BYTES else "warning" if free < SCARCE_BYTES else "ok"
        found = f"{free / (1 << 30):.1f} GiB free for {what} ({near})"
        # Some file systems have no fixed number of files, and report 0.
        if status.f_files and status.f_favail < FEW_FILES:
            state = "warning" if state == "ok" else state
            found += f", room for {status.f_favail} more files only"
        fix = "" if state == "ok" else f"free some space there; what uses it: du -xh {near} | sort -h | tail"
        yield Check("machine", "disk", state, found, fix)
