"""Reads a project's ``.planning/`` as a whole.

Surveys a project: its milestones and phases, those that have shipped too, and how far each is.

Files are counted and not read, so that one broken plan hides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
from attrs import define, field, frozen

from gsd_core.errors import PlanningError
from gsd_core.model.ids import normal_phase, phase_order

from .config import read_config
from .frontmatter import Frontmatter, read_frontmatter
from .markdown import read_text
from .milestones import Milestone, merged, milestone_of, same_version
from .model import PhaseView, Planning
from .numbers import is_backlog
from .phases import Folder, details_of, every_folder, folder_of, on_disk, phase_folders, phase_view
from .plan import plan_id
from .project import core_value, project_name
from .requirements import parse_requirements
from .roadmap import Entry, Roadmap, Section, phases_of, scan

DOCUMENTS = ("PROJECT.md", "REQUIREMENTS.md", "ROADMAP.md", "STATE.md", "MILESTONES.md")


def read_planning(root: Path) -> Planning:
    """Read the milestone in progress of the project at *root*.

    Without ``.planning/`` there are no phases. Raises :class:`PlanningError` for what cannot be read.
    """
    documents = read_documents(root)
    roadmap = scan(documents.get("ROADMAP.md", ""))
    state = state_of(documents)
    milestone = roadmap.current(state.text("milestone"))
    return Planning(
        name=project_name(documents.get("PROJECT.md", "")),
        core_value=core_value(documents.get("PROJECT.md", "")),
        milestone=milestone.version if milestone else state.text("milestone") or "v1.0",
        milestone_name=milestone.name if milestone else state.text("milestone_name"),
        phases=_phases(root, roadmap, milestone),
        requirements=parse_requirements(documents.get("REQUIREMENTS.md", "")),
        config=read_config(root),
        documents=documents,
    )


def read_documents(root: Path) -> dict[str, str]:
    """Return the texts of the root files that exist, by name."""
    paths = {name: f".planning/{name}" for name in DOCUMENTS}
    return {name: read_text(root, path) for name, path in paths.items() if (root / path).exists()}


def state_of(documents: Mapping[str, str]) -> Frontmatter:
    """Return the frontmatter of STATE.md, empty if it has none or a broken one."""
    try:
        return read_frontmatter(documents.get("STATE.md", ""), path=".planning/STATE.md")
    except PlanningError:
        return Frontmatter()


def _phases(root: Path, roadmap: Roadmap, milestone: Milestone | None) -> tuple[PhaseView, ...]:
    folders = phase_folders(root)
    version = milestone.version if milestone else ""
    shipped = {mark.number for mark in roadmap.marks() if mark.shipped}
    views = [phase_view(root, roadmap, mark, folders, version) for mark in phases_of(roadmap, milestone)]
    ordered = sorted(views, key=lambda view: phase_order(view.number))
    current = {view.number for view in ordered}
    return tuple(_without(view, shipped - current) for view in ordered)


def _without(view: PhaseView, shipped: set[str]) -> PhaseView:
    """Take away dependencies on phases of milestones that have shipped: they are met."""
    return attrs.evolve(view, depends_on=tuple(n for n in view.depends_on if n not in shipped))


DiskStatus: TypeAlias = Literal[
    "no_directory", "empty", "discussed", "researched", "planned", "partial", "complete"
]

ARCHIVE = ".planning/milestones"


@frozen(kw_only=True)
class Surveyed:
    """A phase: what the roadmap says, and how many plans and summaries lie in its *folder*.

    *complete* is what the roadmap says; *milestone* is empty where nothing names one.
    """

    number: str
    name: str
    milestone: str
    goal: str = ""
    depends_on: tuple[str, ...] = ()
    complete: bool = False
    folder: Folder | None = None
    plans: int = 0
    summaries: int = 0

    @property
    def status(self) -> DiskStatus:
        """How far its files are; source: ``disk_status`` of GSD's ``roadmap analyze``."""
        if self.folder is None:
            return "no_directory"
        if self.plans:
            return "complete" if self.summaries >= self.plans else "partial" if self.summaries else "planned"
        if self.folder.find("RESEARCH"):
            return "researched"
        return "discussed" if self.folder.find("CONTEXT") else "empty"


@frozen(kw_only=True)
class Place:
    """A phase in a roadmap, that of its milestone."""

    roadmap: Roadmap
    mark: Section | Entry
    milestone: str


@define(kw_only=True)
class Survey:
    """All that a project's roadmaps and folders tell, read once.

    *current* is the version of the milestone in progress, or of the last one.
    """

    root: Path
    milestones: tuple[Milestone, ...]
    current: str
    places: tuple[Place, ...]
    folders: Mapping[str, Mapping[str, Folder]] = field(repr=False)

    def phases(self, *, every: bool = False) -> tuple[Surveyed, ...]:
        """Return the phases of the current milestone in order, or those of all milestones."""
        chosen = [place for place in self.places if every or place.milestone == self.current]
        return tuple(self._surveyed(place) for place in chosen)

    def view(self, number: str) -> PhaseView:
        """Return a phase with its plans: of the current milestone, of another one, or only on disk.

        Raises :class:`PlanningError` that names the known ones if there is none of that number.
        """
        wanted = normal_phase(number)
        same = [place for place in self.places if place.mark.number == wanted]
        same.sort(key=lambda place: place.milestone != self.current)
        for place in same[:1]:
            folder = self._folder(place)
            found = {wanted: folder} if folder else {}
            return phase_view(self.root, place.roadmap, place.mark, found, place.milestone)
        folder = folder_of(self.folders[""], wanted)
        if folder is None:
            raise self._unknown(number)
        return on_disk(PhaseView(number=wanted, name=_folder_name(folder), project=self.root), folder, {})

    def on_disk_only(self) -> tuple[Folder, ...]:
        """Return the folders that no phase of any roadmap has."""
        known = {place.mark.number for place in self.places}
        return tuple(f for f in every_folder(self.root) if not known & set(f.names))

    def _unknown(self, number: str) -> PlanningError:
        numbers = {place.mark.number for place in self.places}
        numbers |= {folder.number for folder in self.on_disk_only()}
        known = ", ".join(sorted(numbers, key=phase_order)[:60]) or "none"
        return PlanningError(
            f"has no phase {number!r}", path=".planning/ROADMAP.md", line=1, hint=f"known phases: {known}"
        )

    def _folder(self, place: Place) -> Folder | None:
        number, code = place.mark.number, place.mark.code
        archived = folder_of(self.folders.get(place.milestone, {}), number, code)
        if archived or (place.milestone != self.current and self._reused(number)):
            return archived
        return folder_of(self.folders[""], number, code)

    def _reused(self, number: str) -> bool:
        """Say whether the current milestone has a phase of that number, and so its folder."""
        return any(p.mark.number == number and p.milestone == self.current for p in self.places)

    def _surveyed(self, place: Place) -> Surveyed:
        mark, folder = place.mark, self._folder(place)
        details = details_of(place.roadmap, mark)
        plans = folder.live_plans() if folder else []
        return Surveyed(
            number=mark.number,
            name=mark.name,
            milestone=place.milestone,
            goal=details.goal or ("" if isinstance(mark, Section) else mark.text),
            depends_on=details.depends_on,
            complete=_complete(place),
            folder=folder,
            plans=len(plans),
            summaries=sum(bool(_summary(folder, name)) for name in plans) if folder else 0,
        )


def survey(root: Path) -> Survey:
    """Read what the project's roadmaps say, ROADMAP.md and those of shipped milestones."""
    roadmap = scan(_text(root, ".planning/ROADMAP.md"))
    running = _running(roadmap, _state(root))
    told = merged(roadmap.milestones, roadmap.folded, roadmap.listed, [running] if running else [])
    archives = dict(_archives(root, [milestone.version for milestone in told]))
    milestones = merged(told, [milestone for milestone, _ in archives.values()])
    places = [*_places(roadmap, milestones, running)]
    named = {place.milestone for place in places}
    for version, (_, path) in archives.items():
        if version not in named:
            places += _archived(scan(read_text(root, path)), version)
    return Survey(
        root=root,
        milestones=milestones,
        current=_current(places, running, milestones),
        places=tuple(sorted(places, key=lambda place: _order(place, milestones))),
        folders={"": phase_folders(root)}
        | {m.version: phase_folders(root, f"{ARCHIVE}/{m.version}-phases") for m in milestones},
    )


def _text(root: Path, path: str) -> str:
    return read_text(root, path) if (root / path).exists() else ""


def _state(root: Path) -> Frontmatter:
    """Return the frontmatter of STATE.md; what cannot be read there says nothing."""
    try:
        return state_of({"STATE.md": _text(root, ".planning/STATE.md")})
    except PlanningError:
        return Frontmatter()


def _running(roadmap: Roadmap, state: Frontmatter) -> Milestone | None:
    """Return the milestone in progress, by the roadmap, else by STATE.md."""
    version = state.text("milestone")
    if (found := roadmap.current(version)) or not version or not roadmap.marks():
        return found
    return Milestone(version=version, name=state.text("milestone_name"), shipped=False, running=True)


def _order(place: Place, milestones: tuple[Milestone, ...]) -> tuple[int, tuple[tuple[int, str], ...]]:
    versions = [milestone.version for milestone in milestones]
    at = versions.index(place.milestone) if place.milestone in versions else len(versions)
    return at, phase_order(place.mark.number)


def _places(roadmap: Roadmap, milestones: Iterable[Milestone], running: Milestone | None) -> Iterator[Place]:
    """Yield each phase of ROADMAP.md once: what stands outside of milestones is the running one's."""
    listed = {number: one.version for one in milestones for number in one.phases}
    version = running.version if running else ""
    seen: set[tuple[str, str]] = set()
    for mark in roadmap.marks():
        milestone = mark.milestone or (version or listed.get(mark.number, ""))
        if (milestone, mark.number) not in seen and not is_backlog(mark.number):
            seen.add((milestone, mark.number))
            yield Place(roadmap=roadmap, mark=mark, milestone=milestone)


def _archived(roadmap: Roadmap, version: str) -> Iterator[Place]:
    seen: set[str] = set()
    for mark in roadmap.marks():
        if mark.milestone in ("", version) and mark.number not in seen and not is_backlog(mark.number):
            seen.add(mark.number)
            yield Place(roadmap=roadmap, mark=mark, milestone=version)


def _archives(root: Path, known: list[str]) -> Iterator[tuple[str, tuple[Milestone, str]]]:
    """Yield the roadmaps of ``milestones/``: version, milestone and path."""
    folder = root / ARCHIVE
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = re.fullmatch(r"(v\d[\w.]*)-ROADMAP\.md", entry.name, re.IGNORECASE)
        if match and entry.is_file():
            path, version = f"{ARCHIVE}/{entry.name}", same_version(match[1], known)
            yield version, (_archived_milestone(read_text(root, path), version), path)


def _archived_milestone(text: str, version: str) -> Milestone:
    """Return the milestone whose roadmap was put away: it has shipped."""
    title = next((line.lstrip("# ") for line in text.split("\n")[:40] if line.startswith("#")), "")
    named = milestone_of(title)
    name = named.name if named and named.version == version else ""
    return Milestone(version=version, name=name, shipped=True, running=False)


def _current(places: list[Place], running: Milestone | None, milestones: tuple[Milestone, ...]) -> str:
    """Return the running milestone's version; if nothing is to be done in any, the last one's."""
    if running and (not running.shipped or any(place.milestone == running.version for place in places)):
        return running.version
    if any(not place.milestone for place in places):
        return ""
    return milestones[-1].version if milestones else ""


def _complete(place: Place) -> bool:
    mark = place.mark
    if isinstance(mark, Entry):
        return mark.ticked
    entries = [e for e in place.roadmap.entries if e.number == mark.number]
    own = [e for e in entries if e.milestone == mark.milestone and e.shipped == mark.shipped]
    if own or len(entries) == 1:
        return (own or entries)[-1].ticked
    return place.roadmap.ticked(mark.number)


def _summary(folder: Folder, plan_file: str) -> str:
    return folder.summary_of(plan_file, plan_id(plan_file, folder.number))


def _folder_name(folder: Folder) -> str:
    """Return a phase's name as its folder tells it."""
    words = re.sub(r"^.*?\d[\d.]*[A-Za-z]?(?=-|$)", "", folder.path.rpartition("/")[2], count=1)
    return words.strip("-").replace("-", " ")
