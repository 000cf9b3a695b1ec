"""A change of planning files as a list of operations, which a second try can finish.

A change of several files can be interrupted between any two of them. The operations are therefore planned
and stored before the first one. Each knows the inode of what it moves, or the digest of what it replaces, so
that doing all of them again has no effect where they have been done.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import inode_below, move_below, read_below, remove_below, write_below

COPIES = "removed"
"""The folder beside the journal with copies of phase folders and handoffs that were removed."""


def _is_inside(_: object, __: object, path: str) -> None:
    # What is stored beside the journal may have come with the folder: no other file is touched.
    if path and (PurePosixPath(path).parts[0] != ".planning" or ".." in PurePosixPath(path).parts):
        raise ValueError(f"not a planning file: {path!r}")


@attrs.frozen(kw_only=True)
class Operation:
    """One change: *path* is written, removed (a copy is kept), or moved to *target*.

    *before* is the SHA-256 of the file that is replaced (empty for a new one), *inode* that of what is moved
    or removed. *copy* is the name of the copy.
    """

    kind: Literal["write", "move", "remove"]
    path: str = attrs.field(validator=_is_inside)
    target: str = attrs.field(default="", validator=_is_inside)
    text: str = ""
    before: str = ""
    inode: int = 0
    copy: str = ""


@attrs.frozen(kw_only=True)
class Edit:
    """A planned change: its *operations* in their order, and the *subject* of their commit.

    *about* is JSON data for whoever asked for it: what the command says when it is done.
    """

    subject: str
    operations: tuple[Operation, ...]
    about: dict[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that differ afterwards; some may be folders."""
        paths = [path for one in self.operations for path in (one.path, one.target) if path]
        return tuple(dict.fromkeys(paths))


def writing(root: Path, path: str, text: str) -> tuple[Operation, ...]:
    """Plan to write a file; nothing if it has that text already."""
    data = read_below(root, path) if inode_below(root, path) else None
    # Reading drops a byte order mark, and writing must not.
    if data is not None and data.startswith(b"\xef\xbb\xbf"):
        text = f"\ufeff{text}"
    if data == text.encode():
        return ()
    return (Operation(kind="write", path=path, text=text, before=_digest(root, path)),)


def _digest(root: Path, path: str) -> str:
    """Return the SHA-256 of a file, empty if it is missing."""
    return hashlib.sha256(read_below(root, path)).hexdigest() if inode_below(root, path) else ""


def removing(root: Path, path: str, copy: str = "") -> Operation:
    """Plan to remove a file or a folder; with *copy*, a copy of that name is kept."""
    if (root / path).is_symlink():
        raise PlanningError("is a link", path=path, hint="remove it yourself")
    return Operation(kind="remove", path=path, inode=inode_below(root, path), copy=copy)


def has_begun(root: Path, edit: Edit) -> bool:
    """Whether the first operation is done; they are done in their order, so without it none is."""
    first = edit.operations[0]
    if first.kind == "write":
        return inode_below(root, first.path) != 0 and read_below(root, first.path) == first.text.encode()
    return inode_below(root, first.path) != first.inode


def is_undone(root: Path, edit: Edit) -> bool:
    """Whether all files that it writes are as before it, or missing again, as after ``git reset``."""
    writes = [one for one in edit.operations if one.kind == "write"]
    return bool(writes) and all(_digest(root, one.path) == one.before for one in writes)


def apply_edit(root: Path, edit: Edit, beside: Path) -> None:
    """Do what is left to do; copies of what is removed are kept in the folder *beside*, that of the journal.

    Raises :class:`PlanningError` if a file was changed since the edit was planned.
    """
    for one in edit.operations:
        match one.kind:
            case "write":
                _write(root, one, edit)
            case "move":
                inode = inode_below(root, one.path)
                gone = not inode or (one.inode and inode != one.inode)
                if not gone and not (one.inode == 0 and inode_below(root, one.target)):
                    move_below(root, one.path, one.target)
            case "remove":
                if inode_below(root, one.path) == one.inode:
                    _keep(root, one, beside)
                    remove_below(root, one.path)


def _write(root: Path, one: Operation, edit: Edit) -> None:
    data = one.text.encode()
    moved = [later.target for later in edit.operations if later.kind == "move" and later.path == one.path]
    for path in (one.path, *moved):
        if inode_below(root, path):
            current = read_below(root, path)
            if current == data:
                return
            if hashlib.sha256(current).hexdigest() != one.before:
                hint = "undo what was changed in it since, then run the command again"
                subject = edit.subject.removeprefix("docs: ")
                raise PlanningError(f"was changed in the middle of an edit ({subject})", path=path, hint=hint)
            write_below(root, path, data)
            return
    if not one.before:
        write_below(root, one.path, data)


def _keep(root: Path, one: Operation, beside: Path) -> None:
    """Copy what is removed: parts of it may not be committed. Links are copied as links."""
    if not one.copy:
        return
    if not (root / one.path).is_dir():
        write_below(beside, one.copy, read_below(root, one.path), mode=0o600)
        return
    # A kill may have left a part of it.
    shutil.rmtree(beside / one.copy, ignore_errors=True)
    shutil.copytree(root / one.path, beside / one.copy, symlinks=True)
