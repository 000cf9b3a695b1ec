"""Looks after a ``.planning/``: what is missing, broken, or does not agree; nothing is changed.

Codes and severities are those of GSD's ``validate health`` (v1.20.5): E001 no folder, E002 PROJECT,
E003 ROADMAP, E004 STATE, E005 config broken; W001 a section of PROJECT is missing, W002 STATE names
an unknown phase, W003 no config, W004 unknown model profile, W005 a folder's name, W006 a phase
without a folder, W007 a folder without a phase; I001 a plan without a summary. A phase that is yet
to begin has no folder: its W006 is only information, as in gsd-core.

Repairs of a ``.planning/``, as new texts of whole files: shown as a diff before anything is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from attrs import frozen

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase

from .changes import SetPosition
from .config import CONFIG, default_config, read_config, render_config
from .edit import apply_changes
from .markdown import read_text
from .model import PlannedPhase
from .numbers import CODE, TOKEN, is_backlog
from .phases import PHASES, every_folder
from .plan import plan_id
from .project import core_value
from .state import render_state
from .survey import Survey, Surveyed, survey

Severity: TypeAlias = Literal["error", "warning", "info"]
Standing: TypeAlias = Literal["healthy", "degraded", "broken"]

PROJECT, ROADMAP, STATE = ".planning/PROJECT.md", ".planning/ROADMAP.md", ".planning/STATE.md"
SECTIONS = ("What This Is", "Core Value", "Requirements")
PROFILES = ("quality", "balanced", "budget", "adaptive", "inherit")

_NAME = re.compile(rf"(?:{CODE}-|[A-Z][A-Z0-9_]*-)?[A-Z]?\d{{2,}}[A-Za-z]?(?:\.\d+)*(?:-\d{{2}})*-[\w-]+")
_MENTION = re.compile(rf"\bPhase:?(?:\*\*)?:?\s+({TOKEN})", re.IGNORECASE)
_POSITION = re.compile(r"^\s*(?:[-*]\s+)?(?:\*\*)?(?:Current )?(?:Phase|focus):?(?:\*\*)?:", re.IGNORECASE)


@frozen(kw_only=True)
class HealthIssue:
    """Something that is wrong: GSD's *code*, the file it is about, and the way out."""

    code: str
    severity: Severity
    path: str
    message: str
    fix: str
    line: int = 0
    repairable: bool = False


def examine(root: Path) -> tuple[HealthIssue, ...]:
    """Return all that is wrong in the project at *root*, the worst first."""
    if not (root / ".planning").is_dir():
        return (_error("E001", ".planning", "there is no .planning folder", "gsd run IDEA makes one"),)
    found = [*_project(root), *_config(root)]
    roadmap = _readable(root, ROADMAP, "E003", "restore it from git; no other file says what is to be built")
    state = _readable(root, STATE, "E004", "gsd health --repair rebuilds it", repairable=True)
    found += [ailment for ailment in (roadmap, state) if ailment]
    try:
        surveyed = survey(root)
    except PlanningError as error:
        found += [] if roadmap or state else [_broken(error)]
    else:
        if surveyed.roadmap_phases:
            found += [] if state else _state(root, surveyed)
            found += _without_folder(surveyed)
            found += _without_phase(surveyed)
    found += [*_names(root), *_summaries(root)]
    order = ("error", "warning", "info")
    return tuple(sorted(found, key=lambda one: (order.index(one.severity), one.code)))


def standing(ailments: tuple[HealthIssue, ...]) -> Standing:
    """Say how a project is in all."""
    severities = {ailment.severity for ailment in ailments}
    if "error" in severities:
        return "broken"
    return "degraded" if "warning" in severities else "healthy"


def _error(
    code: str, path: str, message: str, fix: str, *, line: int = 0, repairable: bool = False
) -> HealthIssue:
    return HealthIssue(
        code=code, severity="error", path=path, message=message, fix=fix, line=line, repairable=repairable
    )


def _warning(
    code: str, path: str, message: str, fix: str, *, line: int = 0, repairable: bool = False
) -> HealthIssue:
    return HealthIssue(
        code=code, severity="warning", path=path, message=message, fix=fix, line=line, repairable=repairable
    )


def _broken(error: PlanningError) -> HealthIssue:
    return _error("E003", error.path, str(error), error.hint, line=error.line)


def _readable(root: Path, path: str, code: str, fix: str, *, repairable: bool = False) -> HealthIssue | None:
    if not (root / path).exists():
        return _error(code, path, "is missing", fix, repairable=repairable)
    try:
        text = read_text(root, path)
    except PlanningError as error:
        return _error(code, path, str(error), error.hint, line=error.line, repairable=repairable)
    return None if text.strip() else _error(code, path, "is empty", fix, repairable=repairable)


def _project(root: Path) -> Iterator[HealthIssue]:
    if ailment := _readable(root, PROJECT, "E002", "describe the project there: what it is, its core value"):
        yield ailment
        return
    text = read_text(root, PROJECT)
    for section in SECTIONS:
        if not re.search(rf"^##[ \t]+{section}\b", text, re.MULTILINE | re.IGNORECASE):
            yield _warning("W001", PROJECT, f"has no section {section!r}", f"add a heading '## {section}'")


def _config(root: Path) -> Iterator[HealthIssue]:
    if not (root / CONFIG).exists():
        fix = "gsd health --repair writes the defaults"
        yield _warning("W003", CONFIG, "is missing, so the defaults count", fix, repairable=True)
        return
    try:
        profile = read_config(root).get("model_profile", "balanced")
    except PlanningError as error:
        yield _error("E005", CONFIG, str(error), error.hint, line=error.line, repairable=True)
        return
    if profile not in PROFILES:
        fix = f"set it to one of {', '.join(PROFILES)}"
        yield _warning("W004", CONFIG, f"has the unknown model_profile {profile!r}", fix)


def _state(root: Path, surveyed: Survey) -> Iterator[HealthIssue]:
    known = known_phases(surveyed)
    seen: set[str] = set()
    for number, line in enumerate(read_text(root, STATE).split("\n"), start=1):
        for match in _MENTION.finditer(line):
            phase = normal_phase(match[1])
            if phase in known or phase in seen or is_backlog(phase):
                continue
            seen.add(phase)
            names, position = f"names phase {phase}, which is not there", bool(_POSITION.match(line))
            fix = "gsd health --repair sets the position" if position else "correct the number"
            yield _warning("W002", STATE, names, fix, line=number, repairable=position)


def known_phases(surveyed: Survey) -> set[str]:
    """Return the numbers of all phases, in any roadmap or on disk."""
    folders = (name for folder in surveyed.on_disk_only() for name in folder.names)
    return {phase.number for phase in surveyed.roadmap_phases} | set(folders)


def _without_folder(surveyed: Survey) -> Iterator[HealthIssue]:
    for phase in surveyed.phases():
        if phase.folder is None:
            yield HealthIssue(
                code="W006",
                severity="warning" if phase.complete else "info",
                path=ROADMAP,
                message=f"phase {phase.number} {phase.name!r} has no folder on disk",
                fix="restore the folder, or take the phase out" if phase.complete else "none until it begins",
            )


def _without_phase(surveyed: Survey) -> Iterator[HealthIssue]:
    for folder in surveyed.on_disk_only():
        if not is_backlog(folder.number):
            message = f"phase {folder.number} is on disk, but in no roadmap"
            yield _warning("W007", folder.path, message, "add it to ROADMAP.md, or remove the folder")


def _names(root: Path) -> Iterator[HealthIssue]:
    base = root / PHASES
    for entry in sorted(base.iterdir()) if base.is_dir() else ():
        if entry.is_dir() and not _NAME.fullmatch(entry.name):
            fix = "rename it like 01-foundation or 02.1-hotfix"
            yield _warning("W005", f"{PHASES}/{entry.name}", "is not named like a phase's folder", fix)


def _summaries(root: Path) -> Iterator[HealthIssue]:
    for folder in every_folder(root):
        for name in folder.live_plans():
            if not folder.summary_of(name, plan_id(name, folder.number)):
                path = f"{folder.path}/{name}"
                fix = "none while it is to be executed"
                yield HealthIssue(code="I001", severity="info", path=path, message="has no SUMMARY", fix=fix)


@frozen(kw_only=True)
class Repair:
    """A file as it lies there (``None``: it does not) and as it would be, and the codes that it cures."""

    path: str
    before: bytes | None
    after: str
    cures: tuple[str, ...]

    def diff(self) -> str:
        """Return what would change, as a unified diff; bytes that are no text are shown escaped."""
        before = (self.before or b"").decode("utf-8", "backslashreplace")
        source = f"a/{self.path}" if self.before is not None else "/dev/null"
        lines = unified_diff(
            before.splitlines(), self.after.splitlines(), source, f"b/{self.path}", lineterm=""
        )
        return "\n".join(lines)


def repairs(root: Path, ailments: Iterable[HealthIssue], date: str) -> tuple[Repair, ...]:
    """Return a repair for each file with an ailment that can be cured; *date* is an ISO text."""
    found = {ailment.path: ailment for ailment in ailments if ailment.repairable}
    proposed: list[Repair | None] = []
    if ailment := found.get(CONFIG):
        proposed.append(_repair(root, CONFIG, _health_repairs_config(root), ailment))
    if ailment := found.get(STATE):
        proposed.append(_repair(root, STATE, _health_repairs_state(root, ailment, date), ailment))
    return tuple(repair for repair in proposed if repair)


def apply(root: Path, repair: Repair) -> None:
    """Write a repair, all of it or nothing; refuse if the file is not what the diff was shown of."""
    file = root / repair.path
    if _bytes(file) != repair.before:
        hint = "run gsd health --repair again"
        raise PlanningError("was changed meanwhile", path=repair.path, line=1, hint=hint)
    draft = file.with_name(f".{file.name}.gsd-draft")
    draft.write_text(repair.after, encoding="utf-8", newline="")
    draft.replace(file)


def _repair(root: Path, path: str, after: str, ailment: HealthIssue) -> Repair | None:
    before = _bytes(root / path)
    if before is not None and before.decode("utf-8", "replace") == after:
        return None
    return Repair(path=path, before=before, after=after, cures=(ailment.code,))


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _health_repairs_config(root: Path) -> str:
    """Return a config that can be read: what is salvaged of the broken one, else the defaults."""
    try:
        text = read_text(root, CONFIG)
    except PlanningError:
        return render_config(default_config())
    salvaged = re.sub(r"^[ \t]*//.*$", "", text, flags=re.MULTILINE)
    salvaged = re.sub(r",(\s*[}\]])", r"\1", salvaged)
    try:
        loaded: object = json.loads(salvaged)
    except (ValueError, RecursionError):
        loaded = None
    mended = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else default_config()
    return render_config(mended)


def _health_repairs_state(root: Path, ailment: HealthIssue, date: str) -> str:
    """Return STATE.md with the position that the disk shows: edited, or made anew if it is lost."""
    surveyed = survey(root)
    text = read_text(root, STATE) if ailment.code == "W002" else _new_state(root, surveyed, date)
    position = _position(surveyed, date)
    return apply_changes({"STATE.md": text}, [position]).get("STATE.md", text) if position else text


def _new_state(root: Path, surveyed: Survey, date: str) -> str:
    project = read_text(root, PROJECT) if (root / PROJECT).exists() else ""
    return render_state(core_value=core_value(project), phases=list(_planned(surveyed)), date=date)


def _planned(surveyed: Survey) -> Iterator[PlannedPhase]:
    for phase in surveyed.phases():
        yield PlannedPhase(number=phase.number, name=phase.name, goal=phase.goal)


def _position(surveyed: Survey, date: str) -> SetPosition | None:
    phases = surveyed.phases()
    if not phases:
        return None
    current = next((phase for phase in phases if not _is_done(phase)), phases[-1])
    plans, done = sum(p.plans for p in phases), sum(p.summaries for p in phases)
    return SetPosition(
        phase=current.number,
        phases=len(phases),
        name=current.name,
        plan=current.summaries,
        plans=current.plans,
        status=_status(current),
        percent=100 * done // plans if plans else 0,
        date=date,
        activity="Position rebuilt from the files",
    )


def _is_done(phase: Surveyed) -> bool:
    return phase.complete or phase.status == "complete"


def _status(phase: Surveyed) -> str:
    if _is_done(phase):
        return "All phases complete"
    return {"planned": "Ready to execute", "partial": "In progress"}.get(phase.status, "Ready to plan")
