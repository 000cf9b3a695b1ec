"""A project's ``.planning/`` as a whole: the milestone in progress, or all milestones and phases.

A run needs the plans of the milestone in progress: :func:`read_planning` reads them, and fails on
the first file that is broken. Commands that list phases use :func:`survey`: it also knows shipped
milestones, and counts files without reading them, so one broken plan hides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import list_below
from gsd_core.model.ids import normal_phase, phase_order

from .config import read_config
from .frontmatter import Frontmatter, read_frontmatter
from .idea import read_idea, with_statements
from .markdown import read_text
from .milestones import Milestone, merged, milestone_of, same_version
from .model import PhaseView, Planning
from .numbers import TOKEN, is_backlog
from .phases import (
    MAX_KNOWN,
    Folder,
    every_folder,
    folder_of,
    no_such_phase,
    on_disk,
    phase_folders,
    phase_view,
)
from .plan import plan_id
from .project import core_value, project_name
from .requirements import parse_requirements
from .roadmap import Mention, Roadmap, check_names_phases, parse_roadmap, says_complete
from .workstreams import PLANNING, refuse_workstream, workstreams

ARCHIVE = ".planning/milestones"
STATE = ".planning/STATE.md"
NONE_IN_PROGRESS = "is shipped: no milestone is in progress"
"""How ``Planning.idle`` ends if all milestones of the project have shipped."""

OWN_DOCUMENTS = ("REQUIREMENTS.md", "ROADMAP.md", "STATE.md")
"""Those that each workstream has for itself."""
DOCUMENTS = ("PROJECT.md", "REQUIREMENTS.md", "ROADMAP.md", "STATE.md", "MILESTONES.md")


def read_planning(root: Path, folder: str = PLANNING) -> Planning:
    """Read the milestone in progress of the project at *root*, or of a workstream, in its own *folder*.

    Without a ROADMAP.md there are no phases. Raises :class:`PlanningError` for a file that cannot be
    read, and for a ROADMAP.md without phases.
    """
    if folder == PLANNING:
        refuse_workstream(root)
    documents = read_documents(root, folder)
    roadmap = parse_roadmap(documents.get("ROADMAP.md", ""))
    if "ROADMAP.md" in documents:
        check_names_phases(roadmap)
    state = state_of(documents)
    milestone = roadmap.current(state.text("milestone"))
    idea = read_idea(root)
    statements = idea.statements if idea else ()
    phases = _phases(root, folder, roadmap, milestone, _complete_in_state(state.body))
    return Planning(
        name=project_name(documents.get("PROJECT.md", "")),
        core_value=core_value(documents.get("PROJECT.md", "")),
        milestone=milestone.version if milestone else state.text("milestone") or "v1.0",
        milestone_name=milestone.name if milestone else state.text("milestone_name"),
        phases=phases,
        requirements=with_statements(parse_requirements(documents.get("REQUIREMENTS.md", "")), statements),
        statements=statements,
        config=read_config(root),
        documents=documents,
        idle="" if phases else _why_idle(root, folder, roadmap, documents),
    )


def read_documents(root: Path, folder: str = PLANNING) -> dict[str, str]:
    """Return the texts of the root files that exist, by name; a workstream's *folder* has some of them."""
    paths = {name: f"{folder if name in OWN_DOCUMENTS else PLANNING}/{name}" for name in DOCUMENTS}
    return {name: read_text(root, path) for name, path in paths.items() if (root / path).exists()}


def state_of(documents: Mapping[str, str]) -> Frontmatter:
    """Return the frontmatter of STATE.md, empty if it has none or a broken one."""
    try:
        return read_frontmatter(documents.get("STATE.md", ""), path=".planning/STATE.md")
    except PlanningError:
        return Frontmatter()


_AT_PHASE = re.compile(rf"^(?:\*\*)?Phase:(?:\*\*)?\s*(?:Phase\s+)?({TOKEN})(?![\w/])(.*)$", re.MULTILINE)
_STATUS = re.compile(r"^(?:\*\*)?Status:(?:\*\*)?\s*(?:Phase\s+(?:[\d.]+\s+)?)?(.*)$", re.MULTILINE)


def _complete_in_state(text: str) -> str:
    """Return the phase that STATE.md is at if it calls it complete, else an empty text.

    ``Phase: 3 of 5 (Search) — COMPLETE``, or ``Phase: 3 of 5 (Search)`` and ``Status: Phase complete``.
    """
    if not (at := _AT_PHASE.search(text)):
        return ""
    end = re.split(r"\s[—–-]+\s|\((?=complete)", at[2], flags=re.IGNORECASE)[-1]
    status = _STATUS.search(text, at.end())
    is_complete = says_complete(end.strip()) or (status and says_complete(status[1].strip()))
    return normal_phase(at[1]) if is_complete else ""


def _why_idle(root: Path, base: str, roadmap: Roadmap, documents: Mapping[str, str]) -> str:
    """Return why a project has no phases; empty if there is not even a project."""
    named = merged(roadmap.milestones, roadmap.folded, roadmap.listed)
    archived = [milestone for milestone, _ in dict(_archived_roadmaps(root, base, [])).values()]
    if open_ones := [one for one in named if not one.shipped]:
        return f"{open_ones[0].version} has no phases yet"
    if shipped := merged(named, archived):
        return f"{shipped[-1].version} {NONE_IN_PROGRESS}"
    found = [name for name in DOCUMENTS if name in documents]
    if base == PLANNING and "ROADMAP.md" not in documents and (names := workstreams(root)):
        return f"ROADMAP.md is missing, but there are workstreams: {', '.join(names[:MAX_KNOWN])}"
    return f"there is {joined(found)}, but no ROADMAP.md" if found else ""


def flaws(phases: Iterable[PhaseView]) -> tuple[str, ...]:
    """Return a warning for each mistake in a file of *phases*; the project can be read despite it."""
    found: list[str] = []
    for phase in phases:
        for plan in phase.plans:
            found += [plan.unreadable] if plan.unreadable else []
            joins = "; lists are joined, and of other values the last counts"
            found += [f"{flaw}{joins}" if "duplicate key" in flaw else flaw for flaw in plan.flaws]
        found += (
            [f"{flaw}; the phase counts as not verified" for flaw in phase.verdict.flaws]
            if phase.verdict
            else []
        )
    return tuple(found)


def joined(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``A, B and C``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _phases(
    root: Path, base: str, roadmap: Roadmap, milestone: Milestone | None, complete: str
) -> tuple[PhaseView, ...]:
    folders = phase_folders(root, f"{base}/phases")
    version = milestone.version if milestone else ""
    archived = _archived_versions(root, base)
    views = [
        phase_view(root, roadmap, mention, folders, version)
        for mention in roadmap.phases(milestone)
        if not _archived_version(roadmap, mention, archived)
    ]
    # A dependency on a phase of a shipped milestone is met; only a number in use again is not dropped.
    shipped = {mention.number for mention in roadmap.mentions() if mention.shipped}
    met = shipped - {view.number for view in views}
    return tuple(
        attrs.evolve(
            view,
            depends_on=tuple(number for number in view.depends_on if number not in met),
            ticked=view.ticked or view.number == complete,
        )
        for view in sorted(views, key=lambda view: phase_order(view.number))
    )


def _archived_versions(root: Path, base: str) -> dict[tuple[str, str], str]:
    """Return the milestones whose archived roadmaps name a phase, by the phase's number and name."""
    found: dict[tuple[str, str], str] = {}
    for version, (_, path) in _archived_roadmaps(root, base, []):
        for mention in parse_roadmap(read_text(root, path)).mentions():
            found[mention.number, mention.name.lower()] = version
    return found


def _archived_version(roadmap: Roadmap, mention: Mention, archived: Mapping[tuple[str, str], str]) -> str:
    """Return the shipped milestone of a phase that ROADMAP.md still names, empty if it has not shipped.

    GSD's ``milestone complete`` copies the roadmap of a first milestone to the archive and leaves the
    original as it is: its phases are those in the archive, and not in progress.
    """
    if mention.milestone or not roadmap.is_complete(mention):
        return ""
    return archived.get((mention.number, mention.name.lower()), "")


DiskStatus: TypeAlias = Literal[
    "no_directory", "empty", "discussed", "researched", "planned", "partial", "complete"
]


@attrs.frozen(kw_only=True)
class Surveyed:
    """A phase of a roadmap, with the numbers of plans and summaries in its *folder*.

    *complete* is what the roadmap or STATE.md says; *milestone* is empty if the phase is in none.
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
        """The progress that its files show: ``disk_status`` of GSD's ``roadmap analyze``."""
        if self.folder is None:
            return "no_directory"
        if self.plans:
            return "complete" if self.summaries >= self.plans else "partial" if self.summaries else "planned"
        if self.folder.find("RESEARCH"):
            return "researched"
        return "discussed" if self.folder.find("CONTEXT") else "empty"


@attrs.frozen(kw_only=True)
class RoadmapPhase:
    """A phase as a roadmap names it: ROADMAP.md, or the archived one of a shipped milestone."""

    roadmap: Roadmap
    mention: Mention
    milestone: str

    @property
    def number(self) -> str:
        """The phase's number."""
        return self.mention.number

    @property
    def complete(self) -> bool:
        """Whether the roadmap says that the phase is complete."""
        return self.roadmap.is_complete(self.mention)


@attrs.define(kw_only=True)
class Survey:
    """The phases of all of a project's roadmaps, with their folders.

    *current* is the version of the milestone in progress, or of the last one, *complete* the phase of it that
    STATE.md is at and calls complete. *folders* are by
    milestone and phase number; those in ``phases/`` have the milestone ``""``. *base* is the folder with the
    roadmap: ``.planning``, or that of a workstream.
    """

    root: Path
    base: str = PLANNING
    milestones: tuple[Milestone, ...]
    current: str
    roadmap_phases: tuple[RoadmapPhase, ...]
    complete: str = ""
    folders: Mapping[str, Mapping[str, Folder]] = attrs.field(repr=False)

    def phases(self, *, every: bool = False) -> tuple[Surveyed, ...]:
        """Return the phases of the current milestone in order, or those of all milestones."""
        chosen = (phase for phase in self.roadmap_phases if every or phase.milestone == self.current)
        return tuple(self._surveyed(phase) for phase in chosen)

    def view(self, number: str) -> PhaseView:
        """Return a phase with its plans: of the current milestone, of another one, or only on disk.

        Raises :class:`PlanningError`, which lists the known phases, if no phase has that number.
        """
        wanted = normal_phase(number)
        same = [phase for phase in self.roadmap_phases if phase.number == wanted]
        if same:
            phase = next((phase for phase in same if phase.milestone == self.current), same[0])
            folder = self._folder(phase)
            found = {wanted: folder} if folder else {}
            return phase_view(self.root, phase.roadmap, phase.mention, found, phase.milestone)
        folder = folder_of(self.folders[""], wanted)
        if folder:
            name = re.sub(r"^.*?\d[\d.]*[A-Za-z]?(?=-|$)", "", folder.path.rpartition("/")[2], count=1)
            view = PhaseView(number=wanted, name=name.strip("-").replace("-", " "), project=self.root)
            return on_disk(view, folder, {})
        numbers = {phase.number for phase in self.roadmap_phases}
        numbers |= {folder.number for folder in self.on_disk_only()}
        raise no_such_phase(number, numbers)

    def on_disk_only(self) -> tuple[Folder, ...]:
        """Return the folders of phases that no roadmap names."""
        known = {phase.number for phase in self.roadmap_phases}
        return tuple(
            folder
            for folder in every_folder(self.root, f"{self.base}/phases")
            if not known & set(folder.names)
        )

    def _folder(self, phase: RoadmapPhase) -> Folder | None:
        number, code = phase.number, phase.mention.code
        archived = folder_of(self.folders.get(phase.milestone, {}), number, code)
        # GSD v1.20.5 leaves the folders of shipped milestones where they are. A folder there belongs
        # to the current milestone if that one uses the number again.
        reused = phase.milestone != self.current and any(
            other.number == number and other.milestone == self.current for other in self.roadmap_phases
        )
        if archived or reused:
            return archived
        return folder_of(self.folders[""], number, code)

    def _surveyed(self, phase: RoadmapPhase) -> Surveyed:
        details, folder = phase.roadmap.details(phase.mention), self._folder(phase)
        plans = folder.live_plans() if folder else []
        summaries = (folder.summary_of(name, plan_id(name, folder.number)) for name in plans if folder)
        return Surveyed(
            number=phase.number,
            name=phase.mention.name,
            milestone=phase.milestone,
            goal=details.goal,
            depends_on=details.depends_on,
            complete=phase.complete or (phase.number == self.complete and phase.milestone == self.current),
            folder=folder,
            plans=len(plans),
            summaries=sum(map(bool, summaries)),
        )


def survey(root: Path, base: str = PLANNING) -> Survey:
    """Read all roadmaps of a project: ROADMAP.md and those of shipped milestones.

    With the folder of a workstream as *base*, read that one's. Raises :class:`PlanningError` for a roadmap
    that cannot be read.
    """
    if base == PLANNING:
        refuse_workstream(root)
    path = f"{base}/ROADMAP.md"
    roadmap = parse_roadmap(read_text(root, path) if (root / path).exists() else "")
    state = _readable_state(root, f"{base}/STATE.md")
    running = _running(roadmap, state)
    named = merged(roadmap.milestones, roadmap.folded, roadmap.listed, [running] if running else [])
    archives = dict(_archived_roadmaps(root, base, [milestone.version for milestone in named]))
    milestones = merged(named, [milestone for milestone, _ in archives.values()])
    phases = _roadmap_phases(root, base, roadmap, milestones, running)
    in_roadmap = {phase.milestone for phase in phases}
    for version, (_, path) in archives.items():
        if version not in in_roadmap:
            phases += _archived_phases(parse_roadmap(read_text(root, path)), version)
    versions = [milestone.version for milestone in milestones]

    def order(phase: RoadmapPhase) -> tuple[int, tuple[tuple[int, str], ...]]:
        known = phase.milestone in versions
        return versions.index(phase.milestone) if known else len(versions), phase_order(phase.number)

    return Survey(
        root=root,
        base=base,
        milestones=milestones,
        current=_current(phases, running, milestones),
        roadmap_phases=tuple(sorted(phases, key=order)),
        complete=_complete_in_state(state.body),
        folders={"": phase_folders(root, f"{base}/phases")}
        | {version: phase_folders(root, f"{ARCHIVE}/{version}-phases") for version in versions},
    )


def _readable_state(root: Path, path: str) -> Frontmatter:
    """Return the frontmatter of STATE.md, empty if it cannot be read: the roadmap then decides alone."""
    try:
        return state_of({"STATE.md": read_text(root, path) if (root / path).exists() else ""})
    except PlanningError:
        return Frontmatter()


def _running(roadmap: Roadmap, state: Frontmatter) -> Milestone | None:
    """Return the milestone in progress, by the roadmap, else by STATE.md."""
    version = state.text("milestone")
    if (found := roadmap.current(version)) or not version or not roadmap.mentions():
        return found
    return Milestone(version=version, name=state.text("milestone_name"), shipped=False, running=True)


def _roadmap_phases(
    root: Path,
    base: str,
    roadmap: Roadmap,
    milestones: Iterable[Milestone],
    running: Milestone | None,
) -> list[RoadmapPhase]:
    """Return each phase of ROADMAP.md once; those outside of all milestones belong to the running one."""
    listed = {number: one.version for one in milestones for number in one.phases}
    archived = _archived_versions(root, base)
    found: dict[tuple[str, str], RoadmapPhase] = {}
    for mention in roadmap.mentions():
        if _archived_version(roadmap, mention, archived):
            continue
        outside = running.version if running else listed.get(mention.number, "")
        milestone = mention.milestone or outside
        if not is_backlog(mention.number):
            phase = RoadmapPhase(roadmap=roadmap, mention=mention, milestone=milestone)
            found.setdefault((milestone, mention.number), phase)
    return list(found.values())


def _archived_phases(roadmap: Roadmap, version: str) -> Iterator[RoadmapPhase]:
    seen: set[str] = set()
    for mention in roadmap.mentions():
        if mention.milestone in ("", version) and mention.number not in seen:
            seen.add(mention.number)
            if not is_backlog(mention.number):
                yield RoadmapPhase(roadmap=roadmap, mention=mention, milestone=version)


def _archived_roadmaps(
    root: Path, base: str, known: list[str]
) -> Iterator[tuple[str, tuple[Milestone, str]]]:
    """Yield the roadmaps in ``milestones/``: version, milestone and path."""
    if base != PLANNING:
        return  # all workstreams share that folder, and its files do not say whose they are
    for entry in list_below(root, ARCHIVE):
        match = re.fullmatch(r"(v\d[\w.]*)-ROADMAP\.md", entry.name, re.IGNORECASE)
        if not match or entry.kind != "file":
            continue
        path, version = f"{ARCHIVE}/{entry.name}", same_version(match[1], known)
        head = read_text(root, path).split("\n")[:40]
        named = milestone_of(next((line.lstrip("# ") for line in head if line.startswith("#")), ""))
        name = named.name if named and named.version == version else ""
        yield version, (Milestone(version=version, name=name, shipped=True, running=False), path)


def _current(phases: list[RoadmapPhase], running: Milestone | None, milestones: tuple[Milestone, ...]) -> str:
    """Return the running milestone's version; if all have shipped, the last one's."""
    if running and (not running.shipped or any(phase.milestone == running.version for phase in phases)):
        return running.version
    if any(not phase.milestone for phase in phases):
        return ""
    return milestones[-1].version if milestones else ""
