"""A project's ``.planning/`` as a whole: the milestone in progress, or all milestones and phases.

A run needs the plans of the milestone in progress: :func:`read_planning` reads them, and fails on
the first file that is broken. Commands that list phases use :func:`survey`: it also knows shipped
milestones, and counts files without reading them, so one broken plan hides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import list_below, start_as_text
from gsd_core.model.counts import counted
from gsd_core.model.ids import normal_phase, phase_order

from .changes import SetPosition
from .config import read_config
from .frontmatter import Frontmatter, read_frontmatter
from .idea import read_idea, with_statements
from .markdown import read_text
from .milestones import (
    Evidence,
    Milestone,
    Standing,
    begins_milestone,
    merged,
    milestone_id,
    milestone_of,
    same_version,
    says_shipped,
)
from .model import PhaseView, Planning
from .numbers import TOKEN, is_backlog, last_number
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
MILESTONES = ".planning/MILESTONES.md"
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
    sources = _sources(root, folder, documents)
    if "ROADMAP.md" in documents:
        check_names_phases(sources.index)
        documents["ROADMAP.md"] = sources.text
    milestone, state = sources.standing.running, state_of(documents)
    idea = read_idea(root)
    statements = idea.statements if idea else ()
    phases = _phases(root, folder, sources, _complete_in_state(state.body, sources))
    return Planning(
        name=project_name(documents.get("PROJECT.md", "")),
        core_value=core_value(documents.get("PROJECT.md", "")),
        milestone=milestone.version if milestone else milestone_id(state.text("milestone")) or "v1.0",
        milestone_name=milestone.name if milestone else state.text("milestone_name"),
        phases=phases,
        requirements=with_statements(parse_requirements(documents.get("REQUIREMENTS.md", "")), statements),
        statements=statements,
        config=read_config(root),
        documents=documents,
        idle="" if phases else _why_idle(root, folder, sources, documents),
        note=sources.standing.note,
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

_MILESTONE_OVER = re.compile(r"(?:(v\S+)\s+)?milestone(?:\s+(v\S+))?\s+completed?\b", re.IGNORECASE)
EXECUTED = "executed"
"""Stands for each phase of the milestone whose plans are all executed."""


def _complete_in_state(text: str, sources: _Sources) -> frozenset[str]:
    """Return the phases that STATE.md calls complete.

    That is the one it is at with ``Phase: 3 of 5 (Search) — COMPLETE``, or ``Phase: 3 of 5 (Search)`` and
    ``Status: Phase complete``; with GSD's ``Status: Phase complete — ready for verification``, only its plans
    are. With ``Status: Milestone complete`` it is each executed one, and a table of all phases counts too.
    """
    found: set[str] = set()
    at = _AT_PHASE.search(text)
    status = _STATUS.search(text, at.end() if at else 0)
    said = status[1].strip() if status else ""
    running = sources.standing.running
    if (over := _MILESTONE_OVER.match(said)) and {over[1], over[2]} <= {None, running and running.version}:
        found.add(EXECUTED)
    if at and "ready for verification" not in said:
        end = re.split(r"\s[—–-]+\s|\((?=complete)", at[2], flags=re.IGNORECASE)[-1]
        found |= {normal_phase(at[1])} if says_complete(end.strip()) or says_complete(said) else set()
    with suppress(PlanningError):
        rows = {row.number: row for row in parse_roadmap(text).rows}
        names = {mention.number: mention.name for mention in sources.live}
        if rows.keys() == names.keys():
            found |= {number for number, name in names.items() if rows[number].completes(name)}
    return frozenset(found)


def _is_in(complete: Collection[str], number: str, executed: Sequence[bool]) -> bool:
    """Whether a phase is among the *complete* ones; *executed* says for each plan whether it is executed."""
    return number in complete or (EXECUTED in complete and bool(executed) and all(executed))


def _why_idle(root: Path, base: str, sources: _Sources, documents: Mapping[str, str]) -> str:
    """Return why a project has no phases; empty if there is not even a project."""
    standing = sources.standing
    if standing.running:
        return f"{standing.running.version} has no phases yet"
    if any(one.shipped for one in standing.milestones):
        return f"{standing.newest or standing.milestones[-1].version} {NONE_IN_PROGRESS}"
    found = [name for name in DOCUMENTS if name in documents]
    if base == PLANNING and "ROADMAP.md" not in documents and (names := workstreams(root)):
        return f"ROADMAP.md is missing, but there are workstreams: {', '.join(names[:MAX_KNOWN])}"
    return f"there is {joined(found)}, but no ROADMAP.md" if found else ""


def flaws(phases: Iterable[PhaseView]) -> Iterator[str]:
    """Yield a warning for each mistake in a file of *phases*; the project can be read despite it."""
    for phase in phases:
        for plan in phase.plans:
            yield from [plan.unreadable] if plan.unreadable else []
            joins = "; lists are joined, and of other values the last counts"
            yield from (f"{flaw}{joins}" if "duplicate key" in flaw else flaw for flaw in plan.flaws)
        unclear = phase.verdict.flaws if phase.verdict else ()
        yield from (f"{flaw}; the phase counts as not verified" for flaw in unclear)


def joined(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``A, B and C``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


@attrs.frozen(kw_only=True)
class _Archive:
    """A roadmap in ``milestones/``; *over*: it says that its milestone has shipped, or has no open phase."""

    milestone: Milestone
    path: str
    text: str
    roadmap: Roadmap
    over: bool


@attrs.frozen(kw_only=True)
class _Sources:
    """The roadmaps of a project, and where its milestones stand.

    *index* is ROADMAP.md, and *roadmap* the one with the phases in progress: the same, or that at *path* in
    ``milestones/``. *archives* are those of other milestones there, by version.
    """

    index: Roadmap
    roadmap: Roadmap
    text: str
    path: str
    archives: Mapping[str, _Archive]
    standing: Standing

    @property
    def live(self) -> list[Mention]:
        """The phases of the milestone in progress, without those that were archived and are still named."""
        return [one for one in self.roadmap.phases(self.standing.running) if not self.is_archived(one)]

    def is_archived(self, mention: Mention) -> bool:
        """Whether a phase that ROADMAP.md still names belongs to a milestone that has shipped.

        GSD's ``milestone complete`` copies the roadmap of a first milestone to the archive and leaves the
        original as it is: its phases are those in the archive, and not in progress.
        """
        if (mention.milestone and not mention.near) or not self.roadmap.is_complete(mention):
            return False
        same = (mention.number, mention.name.lower())
        named = (one for archive in self.archives.values() for one in archive.roadmap.mentions())
        return any((one.number, one.name.lower()) == same for one in named)


def _sources(root: Path, base: str, documents: Mapping[str, str]) -> _Sources:
    index = parse_roadmap(documents.get("ROADMAP.md", ""))
    known = [one.version for one in (*index.milestones, *index.folded, *index.listed)]
    names = _SHIPPED.findall(documents.get("MILESTONES.md", ""))
    names.append(milestone_id(state_of(documents).text("milestone")))
    archives = dict(_archived_roadmaps(root, base, known, names))
    standing = index.standing(_evidence(root, documents, archives.values()))
    roadmap, text, path = index, documents.get("ROADMAP.md", ""), ""
    running = standing.running.version if standing.running else ""
    archive = archives.pop(running, None)  # there can be an early copy of a roadmap in progress
    if archive and not any(index.phases(standing.running)):
        # A project may keep the roadmap that it works on in milestones/, and only link it.
        roadmap, text, path = archive.roadmap, archive.text, archive.path
    return _Sources(index=index, roadmap=roadmap, text=text, path=path, archives=archives, standing=standing)


STATE_PHASE = re.compile(rf"^\W*(?:Current )?Phase\W*:\W*(?:Phase )?({TOKEN})", re.MULTILINE)
_SHIPPED = re.compile(r"^## (.+) \(Shipped: ", re.MULTILINE)
# "Milestone: v1.1 Name", and "**Current focus:** v1.1 Name", unless that one is complete.
_STATE_MILESTONE = re.compile(
    r"^\W*(?:(?:Current )?Milestone\W*:\W*|Current focus\W*:\W*(?=(?:Milestone )?v\d)(?!.*complete))(.+)$",
    re.MULTILINE | re.IGNORECASE,
)
MAX_REFS = 1_000_000


def _evidence(root: Path, documents: Mapping[str, str], archives: Collection[_Archive]) -> Evidence:
    """Return what STATE.md, MILESTONES.md, the archives and the tags say about milestones."""
    state = state_of(documents)
    line, phase = _STATE_MILESTONE.search(state.body), STATE_PHASE.search(state.body)
    named = milestone_of(line[1]) if line else None
    version = milestone_id(state.text("milestone")) or (named.version if named and not named.shipped else "")
    headings = re.findall(r"^##+ (.+)$", documents.get("MILESTONES.md", ""), re.MULTILINE)
    recorded = [one for text in headings if begins_milestone(text) and (one := milestone_of(text))]
    archived = [one.milestone for one in archives]
    over = {one.milestone.version for one in archives if one.over or one.milestone.version != version}
    tags = {entry.name for entry in list_below(root, ".git/refs/tags")}
    refs = start_as_text(root, ".git/packed-refs", MAX_REFS)
    tags |= set(re.findall(r" refs/tags/(\S+)$", refs, re.MULTILINE))
    return Evidence(
        version=version,
        name=state.text("milestone_name"),
        phase=normal_phase(state.text("current_phase", "active_phase") or (phase[1] if phase else "")),
        recorded=(*recorded, *archived),
        kept=frozenset(tags | over),
    )


def _phases(root: Path, base: str, sources: _Sources, complete: frozenset[str]) -> tuple[PhaseView, ...]:
    folders = phase_folders(root, f"{base}/phases")
    version = sources.standing.running.version if sources.standing.running else ""
    views = [phase_view(root, sources.roadmap, mention, folders, version) for mention in sources.live]
    # A dependency on a phase of a shipped milestone is met; only a number in use again is not dropped.
    shipped = {mention.number for mention in sources.roadmap.mentions() if mention.shipped}
    met = shipped - {view.number for view in views}
    return tuple(
        attrs.evolve(
            view,
            depends_on=tuple(number for number in view.depends_on if number not in met),
            ticked=view.ticked or _is_in(complete, view.number, [bool(plan.summary) for plan in view.plans]),
        )
        for view in sorted(views, key=lambda view: phase_order(view.number))
    )


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

    @property
    def shown_status(self) -> str:
        """Its status for people; only a phase that is marked as complete is called that."""
        executed = "complete" if self.complete else "executed"
        return {"no_directory": "not started", "complete": executed}.get(self.status, self.status)


@attrs.frozen(kw_only=True)
class Measure:
    """How far a milestone is, by its files: its *phases*, those that ROADMAP.md marks as *complete*, its
    written *plans*, and those that are *executed*. Every number that is shown or written comes from here."""

    phases: int = 0
    complete: int = 0
    plans: int = 0
    executed: int = 0

    @property
    def percent(self) -> int:
        """How many percent of the written plans are executed, rounded as by GSD; 0 without plans."""
        return int(100 * self.executed / self.plans + 0.5) if self.plans else 0

    def __str__(self) -> str:
        plans = f"{self.executed} of {counted(self.plans, 'written plan')} executed"
        done = f"{self.complete} of {counted(self.phases, 'phase')} complete"
        return f"{done}; {plans if self.plans else 'no plan written yet'}"


def measure_of(phases: Iterable[Surveyed]) -> Measure:
    """Return how far these phases of a roadmap are."""
    found = tuple(phases)
    return Measure(
        phases=len(found),
        complete=sum(phase.complete for phase in found),
        plans=sum(phase.plans for phase in found),
        executed=sum(phase.summaries for phase in found),
    )


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


@attrs.define(kw_only=True)
class Survey:
    """The phases of all of a project's roadmaps, with their folders.

    *current* is the version of the milestone in progress, or of the last one, *complete* its phases that
    STATE.md calls complete; *newest* and *note* are those of its :class:`Standing`. *folders* are
    by milestone and phase number; those in ``phases/`` have the milestone ``""``. *path* is that of the
    roadmap with the phases in progress. *base* is the folder with the roadmap: ``.planning``, or that of a
    workstream.
    """

    root: Path
    base: str = PLANNING
    milestones: tuple[Milestone, ...]
    current: str
    newest: str
    note: str
    path: str
    roadmap_phases: tuple[RoadmapPhase, ...]
    complete: frozenset[str] = frozenset()
    folders: Mapping[str, Mapping[str, Folder]] = attrs.field(repr=False)

    def phases(self, *, every: bool = False) -> tuple[Surveyed, ...]:
        """Return the phases of the current milestone in order, or those of all milestones."""
        chosen = (phase for phase in self.roadmap_phases if every or phase.milestone == self.current)
        return tuple(self._surveyed(phase) for phase in chosen)

    def counted(self, change: SetPosition) -> SetPosition:
        """Return the position with the numbers that the files show; those that they do not are ``None``."""
        phases = self.phases()
        measure = measure_of(phases)
        here = next((phase for phase in phases if phase.number == normal_phase(change.phase)), None)
        # The plans of a complete phase that has none have been moved away, and nobody can count them.
        known = all(phase.plans or not phase.complete for phase in phases) if phases else False
        return attrs.evolve(
            change,
            phases=measure.phases or None,
            plan=here.summaries if here else None,
            plans=here.plans if here else None,
            percent=measure.percent if known else None,
            last=last_number(one.number for one in phases) or None,
            done=measure.executed if known else None,
            all_plans=measure.plans if known else None,
            phases_done=measure.complete if phases else None,
            names={phase.number: phase.name for phase in phases},
        )

    def only_in_state(self) -> tuple[str, ...]:
        """Return the phases of the milestone in progress that STATE.md calls complete, and ROADMAP.md not."""
        if any(one.shipped and one.version == self.current for one in self.milestones):
            return ()
        listed = attrs.evolve(self, complete=frozenset[str]()).phases()
        pairs = zip(self.phases(), listed, strict=True)
        return tuple(phase.number for phase, other in pairs if phase.complete != other.complete)

    def view(self, number: str) -> PhaseView:
        """Return a phase with its plans: of the current milestone, of another one, or only on disk.

        Raises :class:`PlanningError`, which lists the known phases, if no phase has that number.
        """
        wanted = normal_phase(number)
        if same := [phase for phase in self.roadmap_phases if phase.number == wanted]:
            phase = next((phase for phase in same if phase.milestone == self.current), same[0])
            folder = self._folder(phase)
            found = {wanted: folder} if folder else {}
            return phase_view(self.root, phase.roadmap, phase.mention, found, phase.milestone)
        if folder := folder_of(self.folders[""], wanted):
            name = re.sub(r"^.*?\d[\d.]*[A-Za-z]?(?=-|$)", "", folder.path.rpartition("/")[2], count=1)
            view = PhaseView(number=wanted, name=name.strip("-").replace("-", " "), project=self.root)
            return on_disk(view, folder, {})
        numbers = {phase.number for phase in self.roadmap_phases}
        numbers |= {folder.number for folder in self.on_disk_only()}
        raise no_such_phase(number, numbers)

    def on_disk_only(self) -> tuple[Folder, ...]:
        """Return the folders of phases that no roadmap names."""
        known = {phase.number for phase in self.roadmap_phases}
        folders = every_folder(self.root, f"{self.base}/phases")
        return tuple(folder for folder in folders if known.isdisjoint(folder.names))

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
        done = [bool(folder.summary_of(name, plan_id(name, folder.number))) for name in plans if folder]
        stated = self.complete if phase.milestone == self.current else frozenset[str]()
        if any(one.shipped and one.version == phase.milestone for one in self.milestones):
            stated |= {EXECUTED}
        return Surveyed(
            number=phase.number,
            name=phase.mention.name,
            milestone=phase.milestone,
            goal=details.goal,
            depends_on=details.depends_on,
            complete=phase.roadmap.is_complete(phase.mention) or _is_in(stated, phase.number, done),
            folder=folder,
            plans=len(plans),
            summaries=sum(done),
        )


def survey(root: Path, base: str = PLANNING) -> Survey:
    """Read all roadmaps of a project: ROADMAP.md and those of shipped milestones.

    With the folder of a workstream as *base*, read that one's. Raises :class:`PlanningError` for a roadmap
    that cannot be read.
    """
    if base == PLANNING:
        refuse_workstream(root)
    paths = {"ROADMAP.md": f"{base}/ROADMAP.md", "STATE.md": f"{base}/STATE.md", "MILESTONES.md": MILESTONES}
    documents: dict[str, str] = {}
    for name, path in paths.items():
        # Of the three, only the roadmap must be readable: the others are further evidence.
        with suppress(PlanningError) if name != "ROADMAP.md" else nullcontext():
            documents[name] = read_text(root, path) if (root / path).exists() else ""
    sources = _sources(root, base, documents)
    standing = sources.standing
    running = standing.running
    live = {mention.number for mention in sources.live}
    milestones = merged(standing.milestones, [running] if running else [])
    listed = {number: one.version for one in milestones for number in one.phases}
    found: dict[tuple[str, str], RoadmapPhase] = {}
    for mention in sources.roadmap.mentions():
        own = mention.number in live and not mention.shipped
        version = "" if mention.near else mention.milestone
        of_another = "" if own else listed.get(mention.number, "")
        milestone = running.version if running and own else version or of_another
        if running and milestone == running.version and mention.shipped:
            continue  # of an earlier milestone with the same version
        if not is_backlog(mention.number) and (own or not sources.is_archived(mention)):
            phase = RoadmapPhase(roadmap=sources.roadmap, mention=mention, milestone=milestone)
            found.setdefault((milestone, mention.number), phase)
    phases = list(found.values())
    in_roadmap = {phase.milestone for phase in phases}
    for version, archive in sources.archives.items():
        if version not in in_roadmap:
            phases += _archived_phases(archive.roadmap, version)
    versions = [milestone.version for milestone in milestones]

    def order(phase: RoadmapPhase) -> tuple[int, tuple[tuple[int, str], ...]]:
        known = phase.milestone in versions
        return versions.index(phase.milestone) if known else len(versions), phase_order(phase.number)

    return Survey(
        root=root,
        base=base,
        milestones=milestones,
        current=running.version if running else "" if live else standing.newest or "".join(versions[-1:]),
        newest=standing.newest,
        note=standing.note,
        path=sources.path or paths["ROADMAP.md"],
        roadmap_phases=tuple(sorted(phases, key=order)),
        complete=_complete_in_state(state_of(documents).body, sources),
        folders={"": phase_folders(root, f"{base}/phases")}
        | {version: phase_folders(root, f"{ARCHIVE}/{version}-phases") for version in versions},
    )


def _archived_phases(roadmap: Roadmap, version: str) -> Iterator[RoadmapPhase]:
    seen: set[str] = set()
    own = [one for one in roadmap.mentions() if one.near or one.milestone in ("", version)]
    # What it folds without a version is of an earlier milestone, unless nothing else is there.
    for mention in [one for one in own if not one.shipped] or own:
        if mention.number not in seen and not is_backlog(mention.number):
            seen.add(mention.number)
            yield RoadmapPhase(roadmap=roadmap, mention=mention, milestone=version)


def _archived_roadmaps(
    root: Path, base: str, known: list[str], names: Collection[str]
) -> Iterator[tuple[str, _Archive]]:
    """Yield the roadmaps in ``milestones/``, by version.

    *names* are those of milestones in STATE.md and MILESTONES.md: any other file needs a version in its name.
    """
    if base != PLANNING:
        return  # all workstreams share that folder, and its files do not say whose they are
    for entry in list_below(root, ARCHIVE):
        match = re.fullmatch(r"((v\d[\w.]*)|[\w.-]+)-ROADMAP\.md", entry.name, re.IGNORECASE)
        if not match or entry.kind != "file":
            continue
        if not match[2] and not any(f"{name} ".startswith(f"{match[1]} ") for name in names):
            continue
        path, version = f"{ARCHIVE}/{entry.name}", same_version(match[1], known)
        text = read_text(root, path)
        head, roadmap = text.split("\n")[:40], parse_roadmap(text)
        named = milestone_of(next((line.lstrip("# ") for line in head if line.startswith("#")), ""))
        name = named.name if named and named.version == version else ""
        milestone = Milestone(version=version, name=name, shipped=False, running=False)
        done = all(roadmap.is_complete(one) for one in roadmap.mentions() if not is_backlog(one.number))
        over = done or any(map(says_shipped, head))
        yield version, _Archive(milestone=milestone, path=path, text=text, roadmap=roadmap, over=over)
