"""Looks after a ``.planning/``: what is missing, broken, or does not agree; nothing is changed.

Codes and severities are those of GSD's ``validate health`` (v1.20.5): E001 no folder, E002 PROJECT,
E003 ROADMAP, E004 STATE, E005 config broken; W001 a section of PROJECT is missing, W002 STATE names
an unknown phase, W003 no config, W004 unknown model profile, W005 a folder's name, W006 a phase
without a folder, W007 a folder without a phase; I001 a plan without a summary. A phase that is yet
to begin has no folder: its W006 is only information, as in gsd-core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from attrs import frozen

from gsd_core.errors import PlanningError
from gsd_core.ids import normal_phase
from gsd_core.planning.config import CONFIG, read_config
from gsd_core.planning.folders import PHASES, every_folder
from gsd_core.planning.numbers import CODE, TOKEN, is_backlog
from gsd_core.planning.plans import plan_id
from gsd_core.planning.survey import Survey, survey
from gsd_core.planning.texts import read_text

Severity: TypeAlias = Literal["error", "warning", "info"]
Standing: TypeAlias = Literal["healthy", "degraded", "broken"]

PROJECT, ROADMAP, STATE = ".planning/PROJECT.md", ".planning/ROADMAP.md", ".planning/STATE.md"
SECTIONS = ("What This Is", "Core Value", "Requirements")
PROFILES = ("quality", "balanced", "budget", "adaptive", "inherit")

_NAME = re.compile(rf"(?:{CODE}-|[A-Z][A-Z0-9_]*-)?[A-Z]?\d{{2,}}[A-Za-z]?(?:\.\d+)*(?:-\d{{2}})*-[\w-]+")
_MENTION = re.compile(rf"\bPhase:?(?:\*\*)?:?\s+({TOKEN})", re.IGNORECASE)
_POSITION = re.compile(r"^\s*(?:[-*]\s+)?(?:\*\*)?(?:Current )?(?:Phase|focus):?(?:\*\*)?:", re.IGNORECASE)


@frozen(kw_only=True)
class Ailment:
    """Something that is wrong: GSD's *code*, the file it is about, and the way out."""

    code: str
    severity: Severity
    path: str
    message: str
    fix: str
    line: int = 0
    repairable: bool = False


def examine(root: Path) -> tuple[Ailment, ...]:
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
        if surveyed.places:
            found += [] if state else _state(root, surveyed)
            found += _without_folder(surveyed)
            found += _without_phase(surveyed)
    found += [*_names(root), *_summaries(root)]
    order = ("error", "warning", "info")
    return tuple(sorted(found, key=lambda one: (order.index(one.severity), one.code)))


def standing(ailments: tuple[Ailment, ...]) -> Standing:
    """Say how a project is in all."""
    severities = {ailment.severity for ailment in ailments}
    if "error" in severities:
        return "broken"
    return "degraded" if "warning" in severities else "healthy"


def _error(
    code: str, path: str, message: str, fix: str, *, line: int = 0, repairable: bool = False
) -> Ailment:
    return Ailment(
        code=code, severity="error", path=path, message=message, fix=fix, line=line, repairable=repairable
    )


def _warning(
    code: str, path: str, message: str, fix: str, *, line: int = 0, repairable: bool = False
) -> Ailment:
    return Ailment(
        code=code, severity="warning", path=path, message=message, fix=fix, line=line, repairable=repairable
    )


def _broken(error: PlanningError) -> Ailment:
    return _error("E003", error.path, str(error), error.hint, line=error.line)


def _readable(root: Path, path: str, code: str, fix: str, *, repairable: bool = False) -> Ailment | None:
    if not (root / path).exists():
        return _error(code, path, "is missing", fix, repairable=repairable)
    try:
        text = read_text(root, path)
    except PlanningError as error:
        return _error(code, path, str(error), error.hint, line=error.line, repairable=repairable)
    return None if text.strip() else _error(code, path, "is empty", fix, repairable=repairable)


def _project(root: Path) -> Iterator[Ailment]:
    if ailment := _readable(root, PROJECT, "E002", "describe the project there: what it is, its core value"):
        yield ailment
        return
    text = read_text(root, PROJECT)
    for section in SECTIONS:
        if not re.search(rf"^##[ \t]+{section}\b", text, re.MULTILINE | re.IGNORECASE):
            yield _warning("W001", PROJECT, f"has no section {section!r}", f"add a heading '## {section}'")


def _config(root: Path) -> Iterator[Ailment]:
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


def _state(root: Path, surveyed: Survey) -> Iterator[Ailment]:
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
    return {place.mark.number for place in surveyed.places} | set(folders)


def _without_folder(surveyed: Survey) -> Iterator[Ailment]:
    for phase in surveyed.phases():
        if phase.folder is None:
            yield Ailment(
                code="W006",
                severity="warning" if phase.complete else "info",
                path=ROADMAP,
                message=f"phase {phase.number} {phase.name!r} has no folder on disk",
                fix="restore the folder, or take the phase out" if phase.complete else "none until it begins",
            )


def _without_phase(surveyed: Survey) -> Iterator[Ailment]:
    for folder in surveyed.on_disk_only():
        if not is_backlog(folder.number):
            message = f"phase {folder.number} is on disk, but in no roadmap"
            yield _warning("W007", folder.path, message, "add it to ROADMAP.md, or remove the folder")


def _names(root: Path) -> Iterator[Ailment]:
    base = root / PHASES
    for entry in sorted(base.iterdir()) if base.is_dir() else ():
        if entry.is_dir() and not _NAME.fullmatch(entry.name):
            fix = "rename it like 01-foundation or 02.1-hotfix"
            yield _warning("W005", f"{PHASES}/{entry.name}", "is not named like a phase's folder", fix)


def _summaries(root: Path) -> Iterator[Ailment]:
    for folder in every_folder(root):
        for name in folder.live_plans():
            if not folder.summary_of(name, plan_id(name, folder.number)):
                path = f"{folder.path}/{name}"
                fix = "none while it is to be executed"
                yield Ailment(code="I001", severity="info", path=path, message="has no SUMMARY", fix=fix)
