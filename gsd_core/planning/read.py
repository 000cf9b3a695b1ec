"""Reads a project's ``.planning/`` as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.ids import phase_order
from gsd_core.planning.config import read_config
from gsd_core.planning.details import Details, read_details
from gsd_core.planning.folders import Folder, phase_folders, read_text
from gsd_core.planning.frontmatter import Frontmatter, read_frontmatter
from gsd_core.planning.inline import prose
from gsd_core.planning.model import PhaseView, Plan, Planning, Verdict
from gsd_core.planning.plans import parse_plan
from gsd_core.planning.requirements import parse_requirements
from gsd_core.planning.roadmap import Milestone, Roadmap, Section, phases_of, scan
from gsd_core.planning.verdicts import parse_verdict

__all__ = ["PlanningError", "parse_plan", "parse_verdict", "read_planning"]

DOCUMENTS = ("PROJECT.md", "REQUIREMENTS.md", "ROADMAP.md", "STATE.md", "MILESTONES.md")


def read_planning(root: Path) -> Planning:
    """Read the milestone in progress of the project at *root*.

    Without ``.planning/`` there are no phases. Raises :class:`PlanningError` for what cannot be read.
    """
    documents = _documents(root)
    roadmap = scan(documents.get("ROADMAP.md", ""))
    state = _state(documents)
    milestone = roadmap.current(state.text("milestone"))
    return Planning(
        name=_name(documents),
        core_value=_core_value(documents),
        milestone=milestone.version if milestone else state.text("milestone") or "v1.0",
        milestone_name=milestone.name if milestone else state.text("milestone_name"),
        phases=_phases(root, roadmap, milestone),
        requirements=parse_requirements(documents.get("REQUIREMENTS.md", "")),
        config=read_config(root),
        documents=documents,
    )


def _documents(root: Path) -> dict[str, str]:
    paths = {name: f".planning/{name}" for name in DOCUMENTS}
    return {name: read_text(root, path) for name, path in paths.items() if (root / path).is_file()}


def _state(documents: Mapping[str, str]) -> Frontmatter:
    try:
        return read_frontmatter(documents.get("STATE.md", ""), path=".planning/STATE.md")
    except PlanningError:
        return Frontmatter()


def _name(documents: Mapping[str, str]) -> str:
    match = re.search(r"^#[ \t]+(.+?)[ \t]*$", documents.get("PROJECT.md", ""), re.MULTILINE)
    return prose(match[1]) if match else ""


def _core_value(documents: Mapping[str, str]) -> str:
    text = documents.get("PROJECT.md", "").replace("\r\n", "\n")
    match = re.search(r"^##[ \t]+Core Value[ \t]*\n+(.*?)(?=\n#|\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return prose(" ".join(match[1].split())) if match else ""


def _phases(root: Path, roadmap: Roadmap, milestone: Milestone | None) -> tuple[PhaseView, ...]:
    folders = phase_folders(root)
    version = milestone.version if milestone else ""
    shipped = {mark.number for mark in roadmap.marks() if mark.shipped}
    views: list[PhaseView] = []
    for mark in phases_of(roadmap, milestone):
        details = _details(roadmap, mark.number)
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
            milestone=version,
        )
        views.append(_on_disk(view, folders, details))
    ordered = sorted(views, key=lambda view: phase_order(view.number))
    current = {view.number for view in ordered}
    return tuple(_without(view, shipped - current) for view in ordered)


def _details(roadmap: Roadmap, number: str) -> Details:
    section = roadmap.section(number)
    if section is None:
        return read_details((), number)
    return read_details(roadmap.lines[section.line + 1 : section.end], number, section.line + 1)


def _without(view: PhaseView, shipped: set[str]) -> PhaseView:
    """Take away dependencies on phases of milestones that have shipped: they are met."""
    return attrs.evolve(view, depends_on=tuple(n for n in view.depends_on if n not in shipped))


def _on_disk(view: PhaseView, folders: Mapping[str, Folder], details: Details) -> PhaseView:
    folder = folders.get(view.number)
    if folder is None:
        return view
    named = {line.id: line.text for line in details.plans}
    return attrs.evolve(
        view,
        directory=folder.path,
        plans=tuple(_plans(view, folder, named)),
        context=folder.document("CONTEXT"),
        research=folder.document("RESEARCH"),
        verdict=_verdict(folder),
    )


def _plans(view: PhaseView, folder: Folder, named: Mapping[str, str]) -> Iterator[Plan]:
    for name in folder.plan_files():
        path = f"{folder.path}/{name}"
        text = read_text(folder.root, path)
        plan = _parsed(text, path, view.number)
        if "superseded" in text and _superseded(text, path):
            continue
        yield attrs.evolve(
            plan, name=plan.name or named.get(plan.id, ""), summary=folder.summary_of(name, plan.id)
        )


@lru_cache(maxsize=1024)
def _parsed(text: str, path: str, phase: str) -> Plan:
    """Parse a plan once: the tree is read after every step, and plans seldom change."""
    return parse_plan(text, path=path, phase=phase)


def _superseded(text: str, path: str) -> bool:
    return read_frontmatter(text, path=path).text("status").lower() == "superseded"


def _verdict(folder: Folder) -> Verdict | None:
    if not (name := folder.find("VERIFICATION")):
        return None
    path = f"{folder.path}/{name}"
    return parse_verdict(read_text(folder.root, path), path=path)
