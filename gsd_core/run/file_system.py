"""What a file system can do: a run needs exclusive creation, symlinks, and locks that exclude others.

A file system may offer a call and not keep its promise: ``flock`` on some network mounts succeeds for
everybody. So each ability is tried out, in a private folder that is removed again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import attrs

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "afpfs", "ceph", "glusterfs", "lustre"),
        *("webdav", "9p"),
        *("fuse.sshfs", "fuse.rclone", "fuse.glusterfs", "fuse.s3fs", "fuse.ceph", "davfs"),
        *("drvfs", "vboxsf"),
    }
)
"""Types of file systems whose files other machines may change, or that emulate locks."""


@attrs.frozen(kw_only=True)
class Abilities:
    """What was tried out: *locks* is whether a second lock of the same file is refused."""

    case_sensitive: bool
    symlinks: bool
    exclusive: bool
    locks: bool


def try_out(folder: Path) -> Abilities:
    """Try out the file system of *folder*, which must exist; raise ``OSError`` if it cannot be written."""
    own = Path(tempfile.mkdtemp(prefix="gsd-doctor-", dir=folder))
    try:
        file = own / "Probe"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            (own / "link").symlink_to("Probe")
        exclusive = True
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
            exclusive = False
        try:
            return Abilities(
                case_sensitive=not (own / "pROBE").exists(),
                symlinks=(own / "link").is_symlink(),
                exclusive=exclusive,
                locks=_has_locks(descriptor, file),
            )
        finally:
            os.close(descriptor)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def file_system_type(path: Path, mounts: Iterable[tuple[str, str]] | None = None) -> str:
    """Return the type of the file system of *path*, such as ``ext4``; empty if it is unknown.

    *mounts* are pairs of mount point and type, by default those of this machine.
    """
    if mounts is None:
        import psutil

        mounts = [(mount.mountpoint, mount.fstype) for mount in psutil.disk_partitions(all=True)]
    real = Path(os.path.realpath(path))
    best, found = -1, ""
    for point, kind in mounts:
        # Of two file systems on the same mount point, the later one is visible.
        if real.is_relative_to(point) and len(Path(point).parts) >= best:
            best, found = len(Path(point).parts), kind
    return found


def _has_locks(descriptor: int, file: Path) -> bool:
    # flock belongs to the open file, so a second one of this process is refused like any other.
    other = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(other)
    return False
