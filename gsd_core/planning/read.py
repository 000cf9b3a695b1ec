"""Reads a project's ``.planning/`` as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.ids import phase_order
from gsd_core.planning.config import read_config
from gsd_core.planning.folders import phase_folders
from gsd_core.planning.frontmatter import Frontmatter, read_frontmatter
from gsd_core.planning.milestones import Milestone
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.phases import phase_view
from gsd_core.planning.plans import parse_plan
from gsd_core.planning.project import core_value, project_name
from gsd_core.planning.requirements import parse_requirements
from gsd_core.planning.roadmap import Roadmap, phases_of, scan
from gsd_core.planning.texts import read_text
from gsd_core.planning.verdicts import parse_verdict

__all__ = ["PlanningError", "parse_plan", "parse_verdict", "read_planning"]

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
