"""Reading and writing files below a folder, without following a link out of it.

The folder of a project may contain links, pipes and devices that somebody else put there, and while a run
works, an agent's program may replace a folder by a link at any moment. So a path is walked component by
component, each opened in the one before it and never through a link; a link is read and walked as well,
as long as it stays below the root. Links inside the project work as usual.

Errors are ``OSError``; those that are about a link, the kind of a file or its size are ``FileRefused``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections import deque
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal

import attrs

MAX_BYTES = 8 * 2**20
"""The largest file that is read as a whole, unless the caller has another limit."""

MAX_LINKS = 40
DRAFT = (".gsd-", ".tmp")
"""The prefix and suffix of a file's name while it is written; recovery removes what a crash left behind."""
_DRAFT = re.compile(r"\.gsd-\d+-[0-9a-f]+\.tmp")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRefused(OSError):
    """A file is not read or written: it leads out of the folder, is not a regular file, or is too large."""


@attrs.frozen
class Found:
    """An entry of a folder; *kind* is that of a link's target, ``other`` if it leads out or nowhere."""

    name: str
    kind: Literal["file", "folder", "other"]


def read_below(root: Path, path: str | PurePath, *, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most *limit* bytes; *path* is relative to *root*."""
    data = read_start(root, path, limit + 1)
    if len(data) > limit:
        size = f"{limit / 1e6:.0f} MB" if limit >= 1e6 else f"{limit} bytes"
        raise FileRefused(errno.EINVAL, f"it is larger than {size}", str(path))
    return data


def read_start(root: Path, path: str | PurePath, limit: int) -> bytes:
    """Return the first *limit* bytes of a regular file."""
    with _parent(root, path, follow=True) as (folder, name):
        # Without waiting: opening a pipe would block until somebody writes to it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name or ".", flags, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket
                raise _not_regular(path) from error
            raise
    try:
        _check_regular(descriptor, path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def start_as_text(root: Path, path: str | PurePath, limit: int) -> str:
    """Return the first *limit* bytes of a regular file as text; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        return read_start(root, path, limit).decode("utf-8", "replace")
    return ""


def write_below(
    root: Path, path: str | PurePath, data: bytes, *, mode: int | None = None, durable: bool = True
) -> None:
    """Replace a file as a whole: a reader, also after a crash, sees the old or the new version.

    Folders above it are made. A link in its place is replaced, not followed. *mode* is what the file's
    permissions become; by default those of the file that it replaces, or what the umask gives a new one.
    Unless *durable*, it need not be on disk yet when this returns.
    """
    with _parent(root, path, make=True) as (folder, name):
        _remove_dead_drafts(folder)
        draft, descriptor = _new_draft(folder, 0o666 if mode is None else mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                if mode is None:
                    with suppress(FileNotFoundError):
                        old = os.lstat(name, dir_fd=folder).st_mode
                        mode = stat.S_IMODE(old) & 0o777 if stat.S_ISREG(old) else None
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def _new_draft(folder: int, mode: int) -> tuple[str, int]:
    """Return the name and the descriptor of a new file that is locked as long as its process lives."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        draft = f"{DRAFT[0]}{os.getpid()}-{secrets.token_hex(8)}{DRAFT[1]}"
        # Not tempfile, which makes files private: a new file has the mode that the user's umask gives it.
        descriptor = os.open(draft, flags, mode, dir_fd=folder)
        try:
            # Without waiting: a program in the project could hold a lock for as long as it likes.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_taken = not os.fstat(descriptor).st_nlink
        except OSError as error:
            is_taken = isinstance(error, BlockingIOError)  # some file systems have no locks
        if not is_taken:
            return draft, descriptor
        # Another process took it for one without an owner, before it was locked.
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)


def _remove_dead_drafts(folder: int) -> None:
    """Remove from an open folder the drafts of processes that were killed."""
    for name in os.listdir(folder):
        if _DRAFT.fullmatch(name):
            with suppress(OSError):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
                    # A lock ends with its process. Its id can be that of another one by now, or of a zombie.
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)


@contextmanager
def append_below(root: Path, path: str | PurePath) -> Generator[int]:
    """Provide the descriptor of a private regular file that is open for appending, and is made if missing."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with _parent(root, path, make=True) as (folder, name):
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            _check_regular(descriptor, path)
            yield descriptor
        finally:
            os.close(descriptor)


def make_folder(root: Path, path: str | PurePath) -> bool:
    """Make the folder and those above it; return whether it is new."""
    with _parent(root, path, make=True) as (folder, name):
        try:
            os.mkdir(name, dir_fd=folder)
        except FileExistsError:
            if kind_below(root, path) != "folder":
                raise
            return False
        return True


def move_below(root: Path, path: str | PurePath, target: str | PurePath) -> None:
    """Rename a file or a folder; folders above *target* are made. A link is renamed, not followed."""
    with _parent(root, path) as (old, name), _parent(root, target, make=True) as (new, new_name):
        os.rename(name, new_name, src_dir_fd=old, dst_dir_fd=new)


def remove_below(root: Path, path: str | PurePath) -> None:
    """Remove a file, or a folder with everything in it; no link is followed. It may be missing already."""
    with suppress(FileNotFoundError), _parent(root, path) as (folder, name):
        if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def inode_below(root: Path, path: str | PurePath) -> int:
    """Return the inode of a file, folder or link, which a rename keeps; 0 if there is nothing."""
    try:
        with _parent(root, path) as (folder, name):
            return os.lstat(name or ".", dir_fd=folder).st_ino
    except FileNotFoundError:
        return 0


def list_below(root: Path, path: str | PurePath) -> tuple[Found, ...]:
    """Return what is in a folder, by name, without links that lead nowhere; nothing if it does not exist.

    Raise ``FileRefused`` if it is outside of *root*.
    """
    try:
        with _parent(root, PurePosixPath(path) / "_") as (folder, _):
            names = sorted(os.listdir(folder))  # noqa: PTH208 -- a descriptor, and no path
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found: list[Found] = []
    for name in names:
        with suppress(FileNotFoundError):
            found.append(Found(name, _kind(root, PurePosixPath(path) / name)))
    return tuple(found)


def kind_below(root: Path, path: str | PurePath) -> Literal["file", "folder", "other"]:
    """Return what *path* is, with links that stay below *root* followed; ``other`` also if it is missing."""
    try:
        return _kind(root, path)
    except FileNotFoundError:
        return "other"


def _kind(root: Path, path: str | PurePath) -> Literal["file", "folder", "other"]:
    try:
        with _parent(root, path, follow=True) as (folder, name):
            mode = os.lstat(name or ".", dir_fd=folder).st_mode
    except FileNotFoundError:
        raise
    except (OSError, ValueError):
        return "other"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _check_regular(descriptor: int, path: str | PurePath) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise _not_regular(path)


def _not_regular(path: str | PurePath) -> FileRefused:
    return FileRefused(errno.ENXIO, "it is not a regular file", str(path))


@contextmanager
def _parent(
    root: Path, path: str | PurePath, *, make: bool = False, follow: bool = False
) -> Generator[tuple[int, str]]:
    """Provide the open folder that contains *path*, and the name in it; empty for the root itself.

    With *follow*, a link at the end is followed too. With *make*, missing folders are made.
    """
    outside = FileRefused(errno.ELOOP, "it is a link that leads out of the project", str(path))
    if PurePosixPath(path).is_absolute():
        raise outside
    with ExitStack() as closing:
        opened = [_opened(closing, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))]
        rest = deque(PurePosixPath(path).parts)
        links = 0
        while rest:
            part = rest.popleft()
            if part == "..":
                if len(opened) == 1:
                    raise outside
                opened.pop()
                continue
            try:
                mode = os.lstat(part, dir_fd=opened[-1]).st_mode if rest or follow else 0
            except FileNotFoundError:
                if rest and not make:
                    raise
                if rest:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=opened[-1])
                mode = 0
            if stat.S_ISLNK(mode):
                links += 1
                if links > MAX_LINKS:
                    raise FileRefused(errno.ELOOP, "its links form a loop", str(path))
                target = PurePosixPath(os.readlink(part, dir_fd=opened[-1]))
                if target.is_absolute():
                    spellings = (str(root.absolute()), os.path.realpath(root))
                    top = next((top for top in spellings if target.is_relative_to(top)), None)
                    if top is None:
                        raise outside
                    target, opened = target.relative_to(top), opened[:1]
                rest.extendleft(reversed(target.parts))
            elif rest:
                opened.append(_opened(closing, os.open(part, _FOLDER, dir_fd=opened[-1])))
            else:
                yield opened[-1], part
                return
        yield opened[-1], ""


def _opened(closing: ExitStack, descriptor: int) -> int:
    closing.callback(os.close, descriptor)
    return descriptor
