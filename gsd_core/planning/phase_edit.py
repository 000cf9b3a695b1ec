"""Adding, inserting and removing a phase as a list of operations on files, which a second try can finish.

A removal renames many folders and files, so it can be interrupted between any two of them. The operations
are therefore planned and stored before the first one. Each knows the inode of what it moves, or the
digest of what it replaces, so that doing all of them again has no effect where they have been done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import (
    FileRefused,
    inode_below,
    list_below,
    move_below,
    read_below,
    remove_below,
    write_below,
)
from gsd_core.model.ids import normal_phase, padded, phase_order, slug

from .config import read_config
from .markdown import MAX_BYTES, read_text
from .phases import PHASES, Folder, every_folder
from .renumber import Renumbering, in_plan_ids, renumbered
from .requirements import PATH as REQUIREMENTS
from .requirements import renumber_requirements
from .roadmap import PATH as ROADMAP
from .roadmap import Mention, Roadmap, parse_roadmap
from .roadmap_phases import NewPhase, add_phase, decimal_after, next_number, remove_phase
from .state import renumber_position
from .survey import STATE, read_documents, state_of
from .workstreams import refuse_workstream

MAX_NAME = 120


@attrs.frozen(kw_only=True)
class Operation:
    """One change: *path* is written, removed, or moved to *target*.

    *before* is the SHA-256 of the file that is replaced (empty for a new one), *inode* that of what is moved
    or removed.
    """

    kind: Literal["write", "move", "remove"]
    path: str
    target: str = ""
    text: str = ""
    before: str = ""
    inode: int = 0


@attrs.frozen(kw_only=True)
class PhaseEdit:
    """A planned change of the phases: *phase* is added or removed; *numbers* are the new ones of others.

    *mentions* are lines of ROADMAP.md that still name another phase's old number in prose. *request* is the
    item of the inbox that asked for it, 0 for none.
    """

    what: Literal["add", "insert", "remove"]
    phase: str
    name: str
    operations: tuple[Operation, ...]
    numbers: dict[str, str] = attrs.field(factory=dict[str, str])
    folder: str = ""
    mentions: tuple[int, ...] = ()
    request: int = 0

    @property
    def subject(self) -> str:
        """The subject of the commit."""
        return f"docs: {self.what} phase {self.phase} {self.name}"

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that differ afterwards; some may be folders."""
        paths = [path for one in self.operations for path in (one.path, one.target) if path]
        return tuple(dict.fromkeys(paths))

    def to_json(self) -> str:
        """Return the edit as text; :meth:`from_json` reads it."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PhaseEdit:
        """Return the edit that *text* describes; raise ``ValueError`` if it is not one."""
        try:
            data: dict[str, Any] = json.loads(text)
            operations = tuple(Operation(**one) for one in data.pop("operations"))
            mentions = tuple(data.pop("mentions"))
            return cls(**data, operations=operations, mentions=mentions)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not an edit of phases: {error}") from error


def plan_addition(
    root: Path, name: str, *, after: str = "", goal: str = "", used: Collection[str] = ()
) -> PhaseEdit:
    """Plan a phase at the end of the milestone in progress, or after phase *after* (with a decimal number).

    *used* are numbers that must not be used again. Raises :class:`PlanningError` if it cannot be added.
    """
    refuse_workstream(root)
    name = " ".join(name.split())
    if not re.search(r"\w", name) or len(name) > MAX_NAME:
        hint = f"give it a name of at most {MAX_NAME} characters"
        raise PlanningError(f"cannot have a phase named {name[:40]!r}", path=ROADMAP, hint=hint)
    text, preferred = _roadmap(root)
    roadmap = parse_roadmap(text)
    taken = [number for folder in every_folder(root) for number in folder.names] + [*used]
    if after:
        number = decimal_after(roadmap, preferred, normal_phase(after), taken)
        needed = (normal_phase(after),)
    else:
        number = next_number(roadmap, preferred, taken)
        phases = [one.number for one in roadmap.phases(roadmap.current(preferred))]
        needed = (max(phases, key=phase_order),)
    new = NewPhase(number=number, name=name, goal=goal or name, depends_on=needed, inserted=bool(after))
    edited = add_phase(text, new, preferred)
    codes = {one.code for one in roadmap.mentions() if one.number in needed and one.code}
    code = next(iter(codes), "") or str(read_config(root).get("project_code") or "")
    prefix = f"{code}-" if re.fullmatch(r"[A-Z][A-Z0-9_.]*", code) else ""
    folder = f"{PHASES}/{prefix}{padded(number)}-{slug(name)}"
    operations = [_write(root, ROADMAP, edited), _write(root, f"{folder}/.gitkeep", "")]
    operations += _state(root, parse_roadmap(edited), preferred, Renumbering(removed="", numbers={}))
    what: Literal["add", "insert"] = "insert" if after else "add"
    return PhaseEdit(
        what=what, phase=number, name=name, folder=folder, operations=tuple(one for one in operations if one)
    )


def plan_removal(root: Path, number: str, *, force: bool = False, keep_numbers: bool = False) -> PhaseEdit:
    """Plan to remove a phase, and to give later ones the numbers that GSD gives them.

    Raises :class:`PlanningError` for a phase with executed work, or one that would renumber executed work,
    unless *force*: commits keep the old numbers.
    """
    refuse_workstream(root)
    removed = normal_phase(number)
    text, preferred = _roadmap(root)
    roadmap = parse_roadmap(text)
    folders = every_folder(root)
    mention = next((one for one in roadmap.mentions() if one.number == removed and not one.shipped), None)
    shipped = {one.number for one in roadmap.mentions() if one.shipped}
    open_numbers = [one.number for one in roadmap.mentions() if not one.shipped]
    on_disk = [folder.number for folder in folders if folder.number not in shipped]
    numbers = {} if keep_numbers else renumbered(removed, dict.fromkeys([*open_numbers, *on_disk]))
    instead = roadmap.details(mention).depends_on if mention else ()
    change = Renumbering(removed=removed, numbers=numbers, instead=instead)
    edited = remove_phase(text, change)
    own = _folder_of(folders, removed, mention)
    moved = {folder.path: folder for folder in folders if folder.number in numbers and folder != own}
    if not force:
        _refuse_executed(roadmap, own, removed, list(moved.values()))
    names = {
        folder.path.rpartition("/")[2]: _new_name(folder, numbers[folder.number]) for folder in moved.values()
    }
    operations = [_write(root, ROADMAP, edited)]
    operations += _state(root, parse_roadmap(edited), preferred, change)
    if (root / REQUIREMENTS).exists():
        operations.append(
            _write(root, REQUIREMENTS, renumber_requirements(read_text(root, REQUIREMENTS), change))
        )
    if own:
        operations.append(_remove(root, own.path))
    for folder in sorted(moved.values(), key=lambda one: phase_order(one.number)):
        operations += _move(root, folder, change, names, gone=own.path if own else "")
    return PhaseEdit(
        what="remove",
        phase=removed,
        name=mention.name if mention else "",
        folder=own.path if own else "",
        numbers=numbers,
        mentions=_old_mentions(edited, change),
        operations=tuple(one for one in operations if one),
    )


def _roadmap(root: Path) -> tuple[str, str]:
    """Return the text of ROADMAP.md, and the milestone that STATE.md names."""
    documents = read_documents(root)
    if "ROADMAP.md" not in documents:
        hint = "start a project with: gsd run IDEA"
        raise PlanningError("does not exist", path=ROADMAP, hint=hint)
    return documents["ROADMAP.md"], state_of(documents).text("milestone")


def _folder_of(folders: Sequence[Folder], number: str, mention: Mention | None) -> Folder | None:
    same = [folder for folder in folders if folder.number == number]
    if mention and mention.code:
        same = [one for one in folders if f"{mention.code} {number}" in one.names] or same
    if len(same) > 1:
        paths = ", ".join(folder.path for folder in same)
        hint = "remove or rename the wrong one yourself"
        raise PlanningError(f"phase {number} has more than one folder: {paths}", path=PHASES, hint=hint)
    return same[0] if same else None


def _refuse_executed(roadmap: Roadmap, own: Folder | None, removed: str, moved: Sequence[Folder]) -> None:
    force = "remove it all the same with --force"
    done = any(roadmap.is_complete(one) for one in roadmap.mentions() if one.number == removed)
    if done or (own and _summaries(own)):
        raise PlanningError(f"phase {removed} has executed work", path=ROADMAP, line=1, hint=force)
    if executed := [folder.number for folder in moved if _summaries(folder)]:
        hint = (
            "its commits keep the old number; leave all numbers as they are: --keep-numbers (or use --force)"
        )
        message = f"phase {executed[0]} has executed work, and would get another number"
        raise PlanningError(message, path=ROADMAP, line=1, hint=hint)


def _summaries(folder: Folder) -> list[str]:
    return [name for name in folder.files if re.search(r"SUMMARY(?:-\d.*)?\.md$", name, re.IGNORECASE)]


def _new_name(folder: Folder, number: str) -> str:
    name = folder.path.rpartition("/")[2]
    match = re.match(r"^((?:[A-Z][A-Z0-9_]*(?:\.\d+)?-)?)(\d[\d.]*[A-Za-z]?)(?=-|$)", name)
    if match is None:
        raise PlanningError(f"{name!r} cannot be renumbered", path=folder.path, hint="rename it yourself")
    return f"{match[1]}{padded(number)}{name[match.end() :]}"


def _move(
    root: Path, folder: Folder, change: Renumbering, names: dict[str, str], *, gone: str
) -> list[Operation | None]:
    """Plan to move a folder, and to rename and edit the files in it that are named after its phase."""
    old, new = folder.number, change.numbers[folder.number]
    target = f"{PHASES}/{names[folder.path.rpartition('/')[2]]}"
    if inode_below(root, target) and target not in {gone, *(f"{PHASES}/{name}" for name in names)}:
        raise PlanningError("is in the way of a renumbered phase", path=target, hint="move it away")
    inode = inode_below(root, folder.path)
    operations: list[Operation | None] = [
        Operation(kind="move", path=folder.path, target=target, inode=inode)
    ]
    for path in _files(root, folder.path):
        *parents, name = path.split("/")
        prefix = next(
            (one for one in (padded(old), old) if re.match(rf"{re.escape(one)}(?=[-.:]|$)", name)), ""
        )
        named = "/".join([*parents, f"{padded(new)}{name[len(prefix) :]}"]) if prefix else path
        here, there = f"{target}/{path}", f"{target}/{named}"
        if named != path and inode_below(root, f"{folder.path}/{named}"):
            hint = f"it would get the name of {named!r}: rename one of them"
            raise PlanningError("cannot be renumbered", path=f"{folder.path}/{path}", hint=hint)
        text = _text(root, f"{folder.path}/{path}")
        edited = in_plan_ids(text, change, names) if text else text
        if edited != text:
            before = hashlib.sha256(text.encode()).hexdigest()
            operations.append(Operation(kind="write", path=here, text=edited, before=before))
        if named != path:
            inode = 0 if edited != text else inode_below(root, f"{folder.path}/{path}")
            operations.append(Operation(kind="move", path=here, target=there, inode=inode))
    return operations


def _files(root: Path, folder: str) -> list[str]:
    """Return the paths of all files in a folder, and of the links, relative to it."""
    found: list[str] = []
    for entry in list_below(root, folder):
        path = f"{folder}/{entry.name}"
        if entry.kind == "folder" and not (root / path).is_symlink():
            found += [f"{entry.name}/{inner}" for inner in _files(root, path)]
        else:
            found.append(entry.name)
    return found


def _text(root: Path, path: str) -> str:
    """Return the text of a Markdown or JSON file; empty for any other, which is only renamed."""
    if PurePosixPath(path).suffix.lower() not in (".md", ".json") or (root / path).is_symlink():
        return ""
    try:
        # Larger files are renamed, but not searched for plan ids.
        return read_below(root, path, limit=MAX_BYTES).decode("utf-8")
    except (FileRefused, UnicodeDecodeError):
        return ""


def _state(root: Path, roadmap: Roadmap, preferred: str, change: Renumbering) -> list[Operation | None]:
    if not (root / STATE).exists():
        return []
    total = sum(1 for _ in roadmap.phases(roadmap.current(preferred)))
    return [_write(root, STATE, renumber_position(read_text(root, STATE), total, change))]


def _write(root: Path, path: str, text: str) -> Operation | None:
    """Plan to write a file; ``None`` if it has that text already."""
    data = read_below(root, path) if inode_below(root, path) else None
    # Reading drops a byte order mark, and writing must not.
    if data is not None and data.startswith(b"\xef\xbb\xbf"):
        text = f"\ufeff{text}"
    if data == text.encode():
        return None
    before = hashlib.sha256(data).hexdigest() if data is not None else ""
    return Operation(kind="write", path=path, text=text, before=before)


def _remove(root: Path, path: str) -> Operation:
    if (root / path).is_symlink():
        raise PlanningError("is a link", path=path, hint="remove it yourself")
    return Operation(kind="remove", path=path, inode=inode_below(root, path))


def _old_mentions(text: str, change: Renumbering) -> tuple[int, ...]:
    """Return the lines (from 1) that say ``phase 4`` in prose, if another phase has this number now."""
    changed = {change.removed, *change.numbers}
    new = set(change.numbers.values())
    roadmap = parse_roadmap(text)
    known = {section.line for section in roadmap.sections}
    known |= {entry.line for entry in (*roadmap.entries, *roadmap.table_entries)}
    known |= {row.line for row in roadmap.rows}
    found: list[int] = []
    for at, line in enumerate(roadmap.lines):
        said = {normal_phase(number) for number in re.findall(r"\bphase (\d[\w.]*\b)", line, re.IGNORECASE)}
        if at not in known and "epend" not in line and "ilestone" not in line and said & (changed | new):
            found.append(at + 1)
    return tuple(found[:20])


def apply_edit(root: Path, edit: PhaseEdit) -> None:
    """Do what is left to do. Raises :class:`PlanningError` if a file was changed since it was planned."""
    for one in edit.operations:
        match one.kind:
            case "write":
                _apply_write(root, one, edit)
            case "move":
                inode = inode_below(root, one.path)
                gone = not inode or (one.inode and inode != one.inode)
                if not gone and not (one.inode == 0 and inode_below(root, one.target)):
                    move_below(root, one.path, one.target)
            case "remove":
                if inode_below(root, one.path) == one.inode:
                    remove_below(root, one.path)


def _apply_write(root: Path, one: Operation, edit: PhaseEdit) -> None:
    data = one.text.encode()
    moved = [later.target for later in edit.operations if later.kind == "move" and later.path == one.path]
    for path in (one.path, *moved):
        if inode_below(root, path):
            current = read_below(root, path)
            if current == data:
                return
            if hashlib.sha256(current).hexdigest() != one.before:
                hint = "undo what was changed in it since, then run the command again"
                raise PlanningError(f"was changed while phase {edit.phase} was edited", path=path, hint=hint)
            write_below(root, path, data)
            return
    if not one.before:
        write_below(root, one.path, data)
