"""The matrix of requirements and evidence of a project, from its files and its history; no run is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from gsd_core.git import Git
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.requirements import read_requirements
from gsd_core.planning.survey import read_planning
from gsd_core.planning.traceability import Trace, parse_results, phase_of_requirement, trace
from gsd_core.planning.verification import read_verification

from .snapshot import with_verdicts
from .verification import phase_commits


async def trace_all(root: Path, planning: Planning | None = None) -> tuple[Trace, ...]:
    """Return a row for each requirement of REQUIREMENTS.md, in the order of the file.

    *planning* is what :func:`read_planning` returns for *root*; without it, the files are read.
    """
    if not (planning.requirements if planning else read_requirements(root)):
        return ()
    planning = planning or read_planning(root)
    traced = await traced_phases(root, [phase for phase in planning.phases if phase.plans])
    phases = {phase.number: phase for phase in traced}
    results = {number: parse_results(read_verification(phase)) for number, phase in phases.items()}
    has_statements = bool(planning.statements)
    rows: list[Trace] = []
    for requirement in planning.requirements:
        found = phase_of_requirement(requirement, planning.phases)
        phase = phases.get(found.number, found) if found else None
        own = results.get(phase.number, {}) if phase else {}
        verdict = phase.verdict if phase else None
        rows.append(trace(requirement, phase, own, verdict=verdict, has_statements=has_statements))
    return tuple(rows)


async def traced_phases(root: Path, phases: Sequence[PhaseView]) -> list[PhaseView]:
    """Return the phases with the commits of their plans, and each verdict marked as stale if it is."""
    # The history is read once for all of them: each process of git costs as much as reading many files.
    git = Git(root)
    commits = await phase_commits(git, phases)
    judged = await with_verdicts(git, phases)
    return [attrs.evolve(phase, commits=own) for phase, own in zip(judged, commits, strict=True)]
