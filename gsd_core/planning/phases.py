"""The folders of ``.planning/phases/``, and a phase as the roadmap and its folder together show it.

File names have several forms, and all of them are read: ``01-02-PLAN.md`` of v1.20.5, a bare
``PLAN.md``, ``plans/PLAN-02-name.md`` of gsd-core, date and project prefixes. Sources: the plan
index of GSD v1.20.5 and that of gsd-core 1.14.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import FileRefused, list_below, start_as_text
from gsd_core.model.ids import normal_phase, phase_order

from .markdown import read_text
from .model import PhaseView, Plan, Verdict
from .numbers import CODE, NUMBER, SERIES, TOKEN
from .plan import parse_plan, plan_id
from .roadmap import Mention, Roadmap
from .verification import parse_verdict

PHASES = ".planning/phases"
MAX_FRONTMATTER = 64 * 1024
MAX_CACHED = 100_000
"""Plans up to this size, in characters, are kept after they have been parsed."""

MAX_KNOWN = 60
"""How many known phases an error lists."""

# A folder's name can be read in several ways: 02-01-login is phase 2 with a slug "01-login", or
# phase 2-01. All interpretations are kept, and the roadmap decides.
_CODED = re.compile(rf"^({CODE})-({NUMBER})(?=-|$)")
_SERIES = re.compile(rf"^(?:[A-Z][A-Z0-9_]*-)?({SERIES})(?=-|$)")
_PREFIXED = re.compile(rf"^({TOKEN})(?=-|$)")
_PLAIN = re.compile(rf"^(?:[A-Z][A-Z0-9_]*-)?([A-Z]?{NUMBER})(?=-|$)", re.IGNORECASE)
_PLAN = re.compile(r"^(?:.*-)?PLAN(?:-\d.*)?\.md$", re.IGNORECASE)
# As in gsd-core, these are not counted as plans.
_NO_PLAN = re.compile(r"(?:-OUTLINE|\.pre-bounce|PLAN-REVIEW|SUMMARY(?:-\d.*)?)\.md$", re.IGNORECASE)
_SUMMARY = re.compile(r"(?:^|[-/])SUMMARY(?:-\d+.*)?\.md$", re.IGNORECASE)
_SHORT_ID = re.compile(rf"{TOKEN}-\d{{2}}[A-Za-z]?(?=-)")
_BLOCKED = re.compile(r"^status:[ \t]*[\"']?blocked\b", re.MULTILINE | re.IGNORECASE)
_SUPERSEDED = re.compile(
    r"^status:[ \t]*[\"']?superseded[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE | re.IGNORECASE
)


@attrs.frozen(kw_only=True)
class Folder:
    """A phase's folder: *path* in the project *root*, and the names of its *files*.

    *names* are the numbers that a roadmap may have for it: ``02-01-login`` is phase 2, or 2-01.
    """

    root: Path
    path: str
    number: str
    names: tuple[str, ...]
    files: tuple[str, ...]

    def plan_files(self) -> list[str]:
        """Return the plans' file names in order."""
        names = [name for name in self.files if _PLAN.match(name.removeprefix("plans/"))]
        return [name for name in names if not _NO_PLAN.search(name)]

    def live_plans(self) -> list[str]:
        """Return the file names of the plans that are not superseded."""
        return [name for name in self.plan_files() if not _SUPERSEDED.search(self._frontmatter(name))]

    def summary_of(self, plan_file: str, plan: str) -> str:
        """Return the path of a plan's SUMMARY, empty if there is none, or one that says ``blocked``."""
        name = self._summary_name(plan_file, plan)
        return f"{self.path}/{name}" if name and not _BLOCKED.search(self._frontmatter(name)) else ""

    def _summary_name(self, plan_file: str, plan: str) -> str:
        beside = re.sub(r"PLAN(?=[^/]*\.md$)", "SUMMARY", plan_file, count=1, flags=re.IGNORECASE)
        after = re.sub(r"\.md$", "-SUMMARY.md", plan_file, flags=re.IGNORECASE)
        short = _SHORT_ID.match(plan)
        for name in (beside, after, f"{plan}-SUMMARY.md", f"{short[0]}-SUMMARY.md" if short else ""):
            if name in self.files:
                return name
        # Last resort: a summary whose name, read like that of a plan, gives the same id.
        for name in reversed(self.files):
            as_plan = re.sub(r"SUMMARY(?=[^/]*\.md$)", "PLAN", name, count=1, flags=re.IGNORECASE)
            if _SUMMARY.search(name) and plan_id(as_plan, self.number) == plan:
                return name
        return ""

    def _frontmatter(self, name: str) -> str:
        """Return the frontmatter of a file, as text; empty if it has none or cannot be read."""
        text = start_as_text(self.root, f"{self.path}/{name}", MAX_FRONTMATTER).removeprefix("\ufeff")
        return text[: text.find("\n---", 3)] if text.startswith("---") else ""

    def find(self, kind: str) -> str:
        """Return the name of the phase's own CONTEXT, RESEARCH or VERIFICATION, empty if none."""
        end = f"{kind}.MD"
        for name in self.files:
            prefix = name[: -len(end)]
            if name.upper().endswith(end) and (not prefix or self._is_own_prefix(prefix)):
                return name
        return ""

    def _is_own_prefix(self, prefix: str) -> bool:
        """Return whether the text before a document's kind is the number of the phase, not of a plan."""
        number = prefix.removesuffix("-")
        coded, prefixed = _CODED.fullmatch(number), _PLAIN.fullmatch(number)
        named = (number, coded[2] if coded else "", prefixed[1] if prefixed else "")
        return prefix.endswith("-") and self.number in map(normal_phase, named)

    def document(self, kind: str) -> str:
        """Return the text of the phase's own document of a kind, empty if there is none."""
        name = self.find(kind)
        return read_text(self.root, f"{self.path}/{name}") if name else ""


def no_such_phase(number: str, known: Iterable[str], why_none: str = "") -> PlanningError:
    """Return the error for a phase that is not among the *known* ones; *why_none* says why there are none."""
    listed = ", ".join(sorted(set(known), key=phase_order)[:MAX_KNOWN])
    has = f"the project has {listed}" if listed else why_none or "there is no roadmap"
    return PlanningError(f"phase {number!r} does not exist; {has}", hint="list the phases with: gsd phases")


def phase_folders(root: Path, base: str = PHASES) -> dict[str, Folder]:
    """Return the phases' folders by number; of two folders with the same one, that with plans."""
    found: dict[str, Folder] = {}
    for folder in every_folder(root, base):
        for name in folder.names:
            earlier = found.get(name)
            if earlier is None or (folder.plan_files() and not earlier.plan_files()):
                found[name] = folder
    return found


def every_folder(root: Path, base: str = PHASES) -> list[Folder]:
    """Return all folders whose name begins with a phase number."""
    try:
        entries = list_below(root, base)
    except FileRefused as error:
        hint = "replace the link by a folder: nothing outside of the project is read or written"
        raise PlanningError(f"cannot be read: {error.strerror}", path=base, hint=hint) from error
    return [
        Folder(root=root, path=path, number=names[0], names=names, files=_files(root, path))
        for entry in entries
        if (names := _numbers(entry.name)) and entry.kind == "folder" and (path := f"{base}/{entry.name}")
    ]


def folder_of(folders: Mapping[str, Folder], number: str, code: str = "") -> Folder | None:
    """Return the folder of a phase, preferably the one with its milestone's *code* (``GSD.02``)."""
    found = folders.get(f"{code} {number}" if code else number) or folders.get(number)
    return attrs.evolve(found, number=number) if found else None


def _numbers(name: str) -> tuple[str, ...]:
    """Return the numbers that a folder's name may mean, the likeliest first."""
    if coded := _CODED.match(name):
        number = normal_phase(coded[2])
        return (number, f"{coded[1]} {number}")
    matches = (_PLAIN.match(name), _SERIES.match(name), _PREFIXED.match(name))
    return tuple(dict.fromkeys(normal_phase(match[1]) for match in matches if match))


def _files(root: Path, folder: str) -> tuple[str, ...]:
    """Return the names of the files, those too that cannot be read: a plan is not less planned for it."""
    names = [entry.name for entry in list_below(root, folder) if entry.kind != "folder"]
    nested = list_below(root, f"{folder}/plans")
    return tuple(sorted([*names, *(f"plans/{entry.name}" for entry in nested if entry.kind != "folder")]))


def phase_view(
    root: Path, roadmap: Roadmap, mention: Mention, folders: Mapping[str, Folder], milestone: str
) -> PhaseView:
    """Return the phase that a place of the roadmap names, with the contents of its folder."""
    details = roadmap.details(mention)
    view = PhaseView(
        number=mention.number,
        name=mention.name,
        project=root,
        goal=details.goal,
        depends_on=details.depends_on,
        requirements=details.requirements,
        criteria=details.criteria,
        listed=tuple(line.id for line in details.plans if not line.placeholder),
        ticked=roadmap.is_complete(mention),
        milestone=milestone,
    )
    folder = folder_of(folders, mention.number, mention.code)
    return on_disk(view, folder, {line.id: line.text for line in details.plans}) if folder else view


def on_disk(view: PhaseView, folder: Folder, names: Mapping[str, str]) -> PhaseView:
    """Return the phase with the contents of its folder; *names* are the plans' names in the roadmap."""
    plans = ((name, read_plan(folder, name, view.number)) for name in folder.live_plans())
    return attrs.evolve(
        view,
        directory=folder.path,
        plans=tuple(
            attrs.evolve(
                plan, name=plan.name or names.get(plan.id, ""), summary=folder.summary_of(name, plan.id)
            )
            for name, plan in plans
        ),
        context=folder.document("CONTEXT"),
        research=folder.document("RESEARCH"),
        verdict=read_verdict(folder),
    )


def read_plan(folder: Folder, name: str, phase: str) -> Plan:
    """Return the plan in a file of *folder*; one that cannot be read is marked as ``unreadable``.

    Such a file concerns this plan only: the rest of the project can be read, shown and executed.
    """
    path = f"{folder.path}/{name}"
    try:
        text = read_text(folder.root, path)
        parse = cached_plan if len(text) < MAX_CACHED else cached_plan.__wrapped__
        return parse(text, path, phase)
    except PlanningError as error:
        problem = f"{error} ({error.hint})" if error.hint else str(error)
        return Plan(id=plan_id(path, phase), phase=phase, path=path, unreadable=problem)


@lru_cache(maxsize=512)
def cached_plan(text: str, path: str, phase: str) -> Plan:
    """Parse a plan once: the tree is read after every step, and plans seldom change."""
    return parse_plan(text, path=path, phase=phase)


def read_verdict(folder: Folder) -> Verdict | None:
    """Return the phase's verdict; one that cannot be read for certain has the status ``unknown``."""
    if not (name := folder.find("VERIFICATION")):
        return None
    path = f"{folder.path}/{name}"
    try:
        return parse_verdict(read_text(folder.root, path), path=path)
    except PlanningError as error:
        return Verdict(status="unknown", path=path, flaws=(str(error),))
