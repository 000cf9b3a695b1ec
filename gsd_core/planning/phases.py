"""Reads one phase: what the roadmap says of it, and what lies in its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import attrs

from gsd_core.planning.details import Details, read_details
from gsd_core.planning.folders import Folder, folder_of
from gsd_core.planning.model import PhaseView, Plan, Verdict
from gsd_core.planning.plans import parse_plan
from gsd_core.planning.roadmap import Entry, Roadmap, Section
from gsd_core.planning.texts import read_text
from gsd_core.planning.verdicts import parse_verdict

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
