"""Repairs of a ``.planning/``, as new texts of whole files: shown as a diff before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, cast

from attrs import frozen

from gsd_core.errors import PlanningError
from gsd_core.planning.changes import SetPosition
from gsd_core.planning.config import CONFIG, default_config
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.health import PROJECT, STATE, Ailment
from gsd_core.planning.model import PlannedPhase
from gsd_core.planning.project import core_value
from gsd_core.planning.render_roadmap import render_config, render_state
from gsd_core.planning.survey import Survey, Surveyed, survey
from gsd_core.planning.texts import read_text


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


def repairs(root: Path, ailments: Iterable[Ailment], date: str) -> tuple[Repair, ...]:
    """Return a repair for each file with an ailment that can be cured; *date* is an ISO text."""
    found = {ailment.path: ailment for ailment in ailments if ailment.repairable}
    proposed: list[Repair | None] = []
    if ailment := found.get(CONFIG):
        proposed.append(_repair(root, CONFIG, _config(root), ailment))
    if ailment := found.get(STATE):
        proposed.append(_repair(root, STATE, _state(root, ailment, date), ailment))
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


def _repair(root: Path, path: str, after: str, ailment: Ailment) -> Repair | None:
    before = _bytes(root / path)
    if before is not None and before.decode("utf-8", "replace") == after:
        return None
    return Repair(path=path, before=before, after=after, cures=(ailment.code,))


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _config(root: Path) -> str:
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


def _state(root: Path, ailment: Ailment, date: str) -> str:
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
