"""The folders of the phases, and which file in them is what.

Reads one phase: what the roadmap says of it, and what lies in its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import attrs
from attrs import frozen

from gsd_core.model.ids import normal_phase

from .markdown import read_text
from .model import PhaseView, Plan, Verdict
from .numbers import CODE, NUMBER, SERIES, TOKEN
from .plan import parse_plan, plan_id
from .roadmap import Details, Entry, Roadmap, Section, read_details
from .verification import parse_verdict

PHASES = ".planning/phases"
HEAD = 64 * 1024

_CODED = re.compile(rf"^({CODE})-({NUMBER})(?=-|$)")
_SERIES = re.compile(rf"^(?:[A-Z][A-Z0-9_]*-)?({SERIES})(?=-|$)")
_PREFIXED = re.compile(rf"^({TOKEN})(?=-|$)")
_PLAIN = re.compile(rf"^(?:[A-Z][A-Z0-9_]*-)?([A-Z]?{NUMBER})(?=-|$)", re.IGNORECASE)
_PLAN = re.compile(r"^(?:.*-)?PLAN(?:-\d.*)?\.md$", re.IGNORECASE)
_NO_PLAN = re.compile(r"(?:-OUTLINE|\.pre-bounce|PLAN-REVIEW|SUMMARY(?:-\d.*)?)\.md$", re.IGNORECASE)
_SHORT = re.compile(rf"{TOKEN}-\d{{2}}[A-Za-z]?(?=-)")
_BLOCKED = re.compile(r"^status:[ \t]*[\"']?blocked\b", re.MULTILINE | re.IGNORECASE)
_SUPERSEDED = re.compile(
    r"^status:[ \t]*[\"']?superseded[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE | re.IGNORECASE
)


@frozen(kw_only=True)
class Folder:
    """A phase's folder: *path* in the project *root*, and the names of its *files*.

    *names* are the numbers under which a roadmap may know it: ``02-01-login`` is phase 2, or 2-01.
    """

    root: Path
    path: str
    number: str
    names: tuple[str, ...]
    files: tuple[str, ...]

    def plan_files(self) -> list[str]:
        """Return the plans' file names in order."""
        return [name for name in self.files if _is_plan(name)]

    def live_plans(self) -> list[str]:
        """Return the names of the plans that were not superseded."""
        return [name for name in self.plan_files() if not _SUPERSEDED.search(self._head(name))]

    def summary_of(self, plan_file: str, plan: str) -> str:
        """Return the path of a plan's SUMMARY, empty if there is none, or one that says ``blocked``."""
        name = self._summary(plan_file, plan)
        return f"{self.path}/{name}" if name and not _BLOCKED.search(self._head(name)) else ""

    def _summary(self, plan_file: str, plan: str) -> str:
        beside = re.sub(r"PLAN(?=[^/]*\.md$)", "SUMMARY", plan_file, count=1, flags=re.IGNORECASE)
        after = re.sub(r"\.md$", "-SUMMARY.md", plan_file, flags=re.IGNORECASE)
        short = _SHORT.match(plan)
        for name in (beside, after, f"{plan}-SUMMARY.md", f"{short[0]}-SUMMARY.md" if short else ""):
            if name in self.files:
                return name
        known = {plan_id(_as_plan(name), self.number): name for name in self.files if _is_summary(name)}
        return known.get(plan, "")

    def _head(self, name: str) -> str:
        """Return the frontmatter of a file, as text; empty if it has none or cannot be read."""
        try:
            with (self.root / self.path / name).open("rb") as file:
                text = file.read(HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
        except OSError:
            return ""
        return text[: text.find("\n---", 3)] if text.startswith("---") else ""

    def find(self, kind: str) -> str:
        """Return the name of the phase's own CONTEXT, RESEARCH or VERIFICATION, empty if none."""
        end = f"{kind}.MD"
        for name in self.files:
            head = name[: -len(end)]
            if name.upper().endswith(end) and (not head or self._owns(head)):
                return name
        return ""

    def _owns(self, head: str) -> bool:
        """Say whether what stands before a document's kind is the phase's own number."""
        number = head.removesuffix("-")
        coded, prefixed = _CODED.fullmatch(number), _PLAIN.fullmatch(number)
        named = (number, coded[2] if coded else "", prefixed[1] if prefixed else "")
        return head.endswith("-") and self.number in map(normal_phase, named)

    def document(self, kind: str) -> str:
        """Return the text of the phase's own document of a kind, empty if there is none."""
        name = self.find(kind)
        return read_text(self.root, f"{self.path}/{name}") if name else ""


def phase_folders(root: Path, base: str = PHASES) -> dict[str, Folder]:
    """Return the phases' folders by each number that they may have; of two with one, the one with plans."""
    found: dict[str, Folder] = {}
    for folder in every_folder(root, base):
        for name in folder.names:
            earlier = found.get(name)
            if earlier is None or (folder.plan_files() and not earlier.plan_files()):
                found[name] = folder
    return found


def every_folder(root: Path, base: str = PHASES) -> list[Folder]:
    """Return all folders that are a phase's by their names."""
    entries = sorted((root / base).iterdir()) if (root / base).is_dir() else []
    return [
        Folder(root=root, path=f"{base}/{entry.name}", number=names[0], names=names, files=_files(entry))
        for entry in entries
        if (names := _numbers(entry.name)) and entry.is_dir()
    ]


def folder_of(folders: Mapping[str, Folder], number: str, code: str = "") -> Folder | None:
    """Return the folder of a phase; that of its milestone's *code* (``GSD.02``) comes first."""
    found = folders.get(f"{code} {number}" if code else number) or folders.get(number)
    return attrs.evolve(found, number=number) if found else None


def _numbers(name: str) -> tuple[str, ...]:
    """Return the numbers under which a roadmap may know a folder, the likeliest first."""
    if coded := _CODED.match(name):
        number = normal_phase(coded[2])
        return (number, f"{coded[1]} {number}")
    matches = (_PLAIN.match(name), _SERIES.match(name), _PREFIXED.match(name))
    return tuple(dict.fromkeys(normal_phase(match[1]) for match in matches if match))


def _files(folder: Path) -> tuple[str, ...]:
    nested = folder / "plans"
    names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    if nested.is_dir():
        names += [f"plans/{entry.name}" for entry in nested.iterdir() if entry.is_file()]
    return tuple(sorted(names))


def _is_plan(name: str) -> bool:
    return bool(_PLAN.match(name.removeprefix("plans/"))) and not _NO_PLAN.search(name)


def _is_summary(name: str) -> bool:
    return re.search(r"(?:^|[-/])SUMMARY(?:-\d+.*)?\.md$", name, re.IGNORECASE) is not None


def _as_plan(name: str) -> str:
    return re.sub(r"SUMMARY(?=[^/]*\.md$)", "PLAN", name, count=1, flags=re.IGNORECASE)


KEPT = 100_000
"""Plans up to this size, in characters, are kept when they have been parsed."""


def phase_view(
    root: Path, roadmap: Roadmap, mark: Section | Entry, folders: Mapping[str, Folder], milestone: str
) -> PhaseView:
    """Return the phase that a place of the roadmap names, with what lies in its folder."""
    details = details_of(roadmap, mark)
    view = PhaseView(
        number=mark.number,
        name=mark.name,
        project=root,
        goal=details.goal or ("" if isinstance(mark, Section) else mark.text),
        depends_on=details.depends_on,
        requirements=details.requirements,
        criteria=details.criteria,
        listed=tuple(line.id for line in details.plans if not line.placeholder),
        ticked=roadmap.ticked(mark.number),
        milestone=milestone,
    )
    folder = folder_of(folders, mark.number, mark.code)
    return on_disk(view, folder, {line.id: line.text for line in details.plans}) if folder else view


def details_of(roadmap: Roadmap, mark: Section | Entry) -> Details:
    """Return the fields of a phase; those of a section of its own, if only the checklist is given."""
    section = mark if isinstance(mark, Section) else roadmap.section(mark.number)
    if section is None:
        return read_details((), mark.number)
    return read_details(roadmap.lines[section.line + 1 : section.end], mark.number, section.line + 1)


def on_disk(view: PhaseView, folder: Folder, named: Mapping[str, str]) -> PhaseView:
    """Return the phase with what lies in its folder; *named* are the plans' names in the roadmap."""
    return attrs.evolve(
        view,
        directory=folder.path,
        plans=tuple(_plans(view, folder, named)),
        context=folder.document("CONTEXT"),
        research=folder.document("RESEARCH"),
        verdict=_verdict(folder),
    )


def _plans(view: PhaseView, folder: Folder, named: Mapping[str, str]) -> Iterator[Plan]:
    for name in folder.live_plans():
        path = f"{folder.path}/{name}"
        text = read_text(folder.root, path)
        parse = _parsed if len(text) < KEPT else _parsed.__wrapped__
        plan = parse(text, path, view.number)
        yield attrs.evolve(
            plan, name=plan.name or named.get(plan.id, ""), summary=folder.summary_of(name, plan.id)
        )


@lru_cache(maxsize=512)
def _parsed(text: str, path: str, phase: str) -> Plan:
    """Parse a plan once: the tree is read after every step, and plans seldom change."""
    return parse_plan(text, path=path, phase=phase)


def _verdict(folder: Folder) -> Verdict | None:
    if not (name := folder.find("VERIFICATION")):
        return None
    path = f"{folder.path}/{name}"
    return parse_verdict(read_text(folder.root, path), path=path)
