"""Adding, inserting and removing a phase: which files are written, moved and removed for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from gsd_core.errors import PlanningError
from gsd_core.files import FileRefused, inode_below, list_below, read_below
from gsd_core.model.ids import normal_phase, padded, phase_order, slug

from .changes import TickPhase
from .config import read_config
from .edits import COPIES, Edit, Operation, removing, writing
from .markdown import MAX_BYTES, read_text
from .model import PlannedPhase
from .phases import PHASES, Folder, every_folder
from .renumber import Renumbering, in_plan_ids, renumbered
from .requirements import PATH as REQUIREMENTS
from .requirements import renumber_requirements
from .roadmap import PATH as ROADMAP
from .roadmap import Mention, Roadmap, parse_roadmap
from .roadmap_edit import tick_phase
from .roadmap_phases import add_phase, decimal_after, next_number, remove_phase
from .state import renumber_position
from .survey import STATE, read_documents, survey
from .workstreams import refuse_workstream

MAX_NAME = 120


def plan_addition(
    root: Path, name: str, *, after: str = "", goal: str = "", used: Collection[str] = ()
) -> Edit:
    """Plan a phase at the end of the milestone in progress, or after phase *after* (with a decimal number).

    *used* are numbers that must not be used again. Nothing is left to do if it has been added, and nobody has
    worked on it. Raises :class:`PlanningError` if it cannot be added.
    """
    refuse_workstream(root)
    name = " ".join(name.split())
    if not re.search(r"\w", name) or len(name) > MAX_NAME:
        hint = f"give it a name of at most {MAX_NAME} characters"
        raise PlanningError(f"cannot have a phase named {name[:40]!r}", path=ROADMAP, hint=hint)
    text, preferred = _roadmap(root)
    roadmap = parse_roadmap(text)
    folders = [*every_folder(root)]
    taken = [number for folder in folders for number in folder.names] + [*used]
    named = {one.number: one.name for one in roadmap.phases(roadmap.current(preferred))}
    if after:
        number = decimal_after(roadmap, preferred, normal_phase(after), taken)
        needed = (normal_phase(after),)
        added = [one for one in named if one.rpartition(".")[0] == needed[0]]
    else:
        number = next_number(roadmap, preferred, taken)
        needed = (max(named, key=phase_order),)
        added = [*needed]
    for one in folders:
        if one.number in added and named[one.number] == name and not {*one.files} - {".gitkeep"}:
            return Edit(subject="", operations=(), about=_about(one.number, name, one.path))
    new = PlannedPhase(number=number, name=name, goal=goal or name, depends_on=needed, inserted=bool(after))
    edited = add_phase(text, new, preferred)
    codes = {one.code for one in roadmap.mentions() if one.number in needed and one.code}
    code = next(iter(codes), "") or str(read_config(root).get("project_code") or "")
    prefix = f"{code}-" if re.fullmatch(r"[A-Z][A-Z0-9_.]*", code) else ""
    folder = f"{PHASES}/{prefix}{padded(number)}-{slug(name)}"
    operations = [*writing(root, ROADMAP, edited), *writing(root, f"{folder}/.gitkeep", "")]
    operations += _state(root, roadmap, edited, preferred, Renumbering(removed="", numbers={}))
    subject = f"docs: {'insert' if after else 'add'} phase {number} {name}"
    return Edit(subject=subject, operations=tuple(operations), about=_about(number, name, folder))


def _about(phase: str, name: str, folder: str) -> dict[str, Any]:
    return {"phase": phase, "name": name, "folder": folder or None}


def plan_removal(
    root: Path, number: str, *, at: datetime, force: bool = False, keep_numbers: bool = False
) -> Edit:
    """Plan to remove a phase, and to give later ones the numbers that GSD gives them.

    Its folder is copied first; the copy is named after the time *at*.
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
    operations = [*writing(root, ROADMAP, edited)]
    operations += _state(root, roadmap, edited, preferred, change)
    if (root / REQUIREMENTS).exists():
        text = renumber_requirements(read_text(root, REQUIREMENTS), change)
        operations += writing(root, REQUIREMENTS, text)
    name, folder, copy = mention.name if mention else "", own.path if own else "", ""
    if folder:
        copy = f"{COPIES}/{at:%Y%m%dT%H%M%S%f}-{folder.rpartition('/')[2]}"
        operations.append(removing(root, folder, copy))
    for each in sorted(moved.values(), key=lambda one: phase_order(one.number)):
        operations += _move(root, each, change, names, gone=folder)
    about = {"renumbered": numbers, "copy": copy or None, "mentions": _old_mentions(edited, change)}
    return Edit(
        subject=f"docs: remove phase {removed} {name}".rstrip(),
        operations=tuple(operations),
        about={**_about(removed, name, folder), **about},
    )


def _roadmap(root: Path) -> tuple[str, str]:
    """Return the text of ROADMAP.md with what STATE.md says of its phases, and the milestone in progress."""
    documents = read_documents(root)
    if "ROADMAP.md" not in documents:
        raise PlanningError("does not exist", path=ROADMAP, hint="start a project with: gsd run IDEA")
    text, found = documents["ROADMAP.md"], survey(root)
    # A table in STATE.md counts as long as it has all phases.
    with suppress(PlanningError):
        rows = {row.number for row in parse_roadmap(documents.get("STATE.md", "")).rows}
        for number in found.only_in_state() if rows == {one.number for one in found.phases()} else ():
            text = tick_phase(text, TickPhase(phase=number, date=""))
    return text, found.current


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
) -> list[Operation]:
    """Plan to move a folder, and to rename and edit the files in it that are named after its phase."""
    old, new = folder.number, change.numbers[folder.number]
    target = f"{PHASES}/{names[folder.path.rpartition('/')[2]]}"
    if inode_below(root, target) and target not in {gone, *(f"{PHASES}/{name}" for name in names)}:
        raise PlanningError("is in the way of a renumbered phase", path=target, hint="move it away")
    inode = inode_below(root, folder.path)
    operations = [Operation(kind="move", path=folder.path, target=target, inode=inode)]
    for path in _files(root, folder.path):
        *parents, name = path.split("/")
        prefix = re.match(rf"(?:{re.escape(padded(old))}|{re.escape(old)})(?=[-.:]|$)", name)
        named = "/".join([*parents, f"{padded(new)}{name[prefix.end() :]}"]) if prefix else path
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


def _files(root: Path, folder: str) -> Iterator[str]:
    """Yield the paths of all files in a folder, and of the links, relative to it."""
    for entry in list_below(root, folder):
        path = f"{folder}/{entry.name}"
        if entry.kind == "folder" and not (root / path).is_symlink():
            yield from (f"{entry.name}/{inner}" for inner in _files(root, path))
        else:
            yield entry.name


def _text(root: Path, path: str) -> str:
    """Return the text of a Markdown or JSON file; empty for any other, which is only renamed."""
    if PurePosixPath(path).suffix.lower() not in (".md", ".json") or (root / path).is_symlink():
        return ""
    try:
        # Larger files are renamed, but not searched for plan ids.
        return read_below(root, path, limit=MAX_BYTES).decode("utf-8")
    except (FileRefused, UnicodeDecodeError):
        return ""


def _state(
    root: Path, before: Roadmap, edited: str, milestone: str, change: Renumbering
) -> tuple[Operation, ...]:
    if not (root / STATE).exists():
        return ()
    was, now = (
        [phase.number for phase in one.phases(one.current(milestone))]
        for one in (before, parse_roadmap(edited))
    )
    return writing(root, STATE, renumber_position(read_text(root, STATE), was, now, change))


def _old_mentions(text: str, change: Renumbering) -> list[int]:
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
    return found[:20]
