"""The folders of the phases, and which file in them is what."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

from gsd_core.errors import PlanningError
from gsd_core.ids import normal_phase
from gsd_core.planning.plans import plan_id

PHASES = ".planning/phases"
MAX_BYTES = 10_000_000

_FOLDER = re.compile(r"^(?:[A-Z][A-Z0-9]*-)?(\d+[A-Za-z]?(?:\.\d+)*)(?:-.*)?$")
_PLAN = re.compile(r"^(?:.*-)?PLAN\.md$", re.IGNORECASE)
_NO_PLAN = re.compile(r"(?:-OUTLINE|\.pre-bounce|-PLAN-REVIEW)\.md$", re.IGNORECASE)
_NESTED = re.compile(r"^PLAN-\d+.*\.md$", re.IGNORECASE)


@frozen(kw_only=True)
class Folder:
    """A phase's folder: *path* in the project *root*, and the names of its *files*."""

    root: Path
    path: str
    number: str
    files: tuple[str, ...]

    def plan_files(self) -> list[str]:
        """Return the plans' file names in order."""
        return [name for name in self.files if _is_plan(name)]

    def summary_of(self, plan_file: str, plan: str) -> str:
        """Return the path of a plan's SUMMARY, empty if there is none."""
        beside = re.sub(r"PLAN(?=[^/]*\.md$)", "SUMMARY", plan_file, count=1, flags=re.IGNORECASE)
        for name in (beside, f"{plan}-SUMMARY.md"):
            if name in self.files:
                return f"{self.path}/{name}"
        known = {plan_id(_as_plan(name), self.number): name for name in self.files if _is_summary(name)}
        return f"{self.path}/{known[plan]}" if plan in known else ""

    def find(self, kind: str) -> str:
        """Return the name of the phase's own CONTEXT, RESEARCH or VERIFICATION, empty if none."""
        pattern = re.compile(rf"(?:[A-Z]+-)?(?:(\d+[A-Za-z]?(?:\.\d+)*)-)?{kind}\.md", re.IGNORECASE)
        for name in self.files:
            match = pattern.fullmatch(name)
            if match and (not match[1] or normal_phase(match[1]) == self.number):
                return name
        return ""

    def document(self, kind: str) -> str:
        """Return the text of the phase's own document of a kind, empty if there is none."""
        name = self.find(kind)
        return read_text(self.root, f"{self.path}/{name}") if name else ""


def phase_folders(root: Path) -> dict[str, Folder]:
    """Return the phases' folders by number; of two with one number, the one with plans."""
    found: dict[str, Folder] = {}
    base = root / PHASES
    for entry in sorted(base.iterdir()) if base.is_dir() else []:
        match = _FOLDER.match(entry.name)
        if not match or not entry.is_dir():
            continue
        folder = Folder(
            root=root,
            path=f"{PHASES}/{entry.name}",
            number=normal_phase(match[1]),
            files=_files(entry),
        )
        earlier = found.get(folder.number)
        if earlier is None or (folder.plan_files() and not earlier.plan_files()):
            found[folder.number] = folder
    return found


def read_text(root: Path, path: str) -> str:
    """Return a planning file's text; raise ``PlanningError`` if it is none, or huge."""
    try:
        data = (root / path).read_bytes()
    except OSError as error:
        raise PlanningError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > MAX_BYTES:
        raise PlanningError("larger than 10 MB", path=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PlanningError("not UTF-8", path=path, line=line, hint="save it as UTF-8") from error


def _files(folder: Path) -> tuple[str, ...]:
    nested = folder / "plans"
    names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    if nested.is_dir():
        names += [f"plans/{entry.name}" for entry in nested.iterdir() if entry.is_file()]
    return tuple(sorted(names))


def _is_plan(name: str) -> bool:
    if name.startswith("plans/"):
        return bool(_NESTED.match(name.removeprefix("plans/"))) and not _NO_PLAN.search(name)
    return bool(_PLAN.match(name)) and not _NO_PLAN.search(name)


def _is_summary(name: str) -> bool:
    return re.search(r"(?:^|[-/])SUMMARY(?:-\d+.*)?\.md$", name, re.IGNORECASE) is not None


def _as_plan(name: str) -> str:
    return re.sub(r"SUMMARY(?=[^/]*\.md$)", "PLAN", name, count=1, flags=re.IGNORECASE)
