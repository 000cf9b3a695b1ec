"""What a step may write in ``.planning/``: its own files and changes, none that are another step's.

An executor is a plugin, and its result is applied without asking an agent or a detector. A result that ticks
another phase, or that writes a SUMMARY or a PLAN which belongs to another step, would decide for that step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from gsd_core.model.ids import COMPLETE, EXECUTE, INIT, PLAN, VERIFY, padded
from gsd_core.model.step import StepRequest, StepResult, StepType
from gsd_core.planning.changes import AddPhase, Change, ListPlans, MapRequirement, TickPhase, TickPlan

from .step_types import may_write

SHARED = (
    *("roadmap.md", "requirements.md", "state.md", "project.md", "idea.md", "config.json"),
    *("milestones.md",),
)
"""The files of all steps; only init writes them as a whole."""


def foreign_parts(step: StepRequest, result: StepResult, kind: StepType | None = None) -> tuple[str, ...]:
    """Return what in *result* is not the step's to write, in words; *kind* is a plugin's own."""

    def is_own(path: str) -> bool:
        return may_write(kind, step.phase, path) if kind else _is_own_file(step, path)

    def is_own_planning(path: str) -> bool:
        return PurePosixPath(path).parts[:1] == (".planning",) and is_own(path)

    moved = [path for move in result.moved for path in (move.path, move.target)]
    gone = (*moved, *result.removed)
    return (
        *(f"the file {file.path!r}" for file in result.files if not is_own(file.path)),
        *(f"{path!r}, which it moves or removes" for path in gone if not is_own_planning(path)),
        *_foreign_changes(step, result.changes),
    )


def _is_own_file(step: StepRequest, path: str) -> bool:
    # Some file systems ignore case.
    parts = PurePosixPath(path.casefold()).parts
    if step.kind == INIT or step.phase is None or not parts or parts[0] != ".planning":
        return True
    if len(parts) < 3:
        return PurePosixPath(path.casefold()).name not in SHARED
    if parts[1] not in ("phases", "milestones"):
        return True
    *folder, name = parts
    if step.phase.directory:
        is_own_folder = PurePosixPath(step.phase.directory.casefold()).parts == tuple(folder)
    else:
        # The phase has no folder yet: the step may choose the name behind the number.
        is_own_folder = len(folder) == 3 and folder[2].startswith(f"{padded(step.phase.number)}-".casefold())
    if not is_own_folder:
        return False
    if name.endswith("plan.md"):
        own = step.plan.path if step.plan else None
        return step.kind == PLAN or (step.kind == EXECUTE and path == own)
    if name.endswith("summary.md"):
        own = f"{step.plan.id}-summary.md".casefold() if step.plan else ""
        return step.kind == EXECUTE and name == own
    return step.kind == VERIFY or not name.endswith("verification.md")


def _foreign_changes(step: StepRequest, changes: tuple[Change, ...]) -> Iterator[str]:
    own = step.phase.number if step.phase else ""
    for change in changes:
        match change:
            case ListPlans():
                allowed = step.kind == PLAN and change.phase == own
            case TickPlan():
                allowed = step.kind == EXECUTE and step.plan is not None and change.plan == step.plan.id
            case TickPhase():
                allowed = step.kind == COMPLETE and change.phase == own
            case MapRequirement(status="Complete"):
                allowed = step.kind == COMPLETE and change.phase == own
            case AddPhase():
                # The roadmap is complete when its phases are: only a step of the milestone may extend it.
                allowed = step.phase is None and step.kind != INIT
            case _:
                allowed = True
        if not allowed:
            yield f"the change {change}"
