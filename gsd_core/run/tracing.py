"""The matrix of requirements and evidence of a project, from its files and its history; no run is needed."""

from __future__ import annotations

from pathlib import Path

import attrs

from gsd_core.git import Git
from gsd_core.planning.model import PhaseView
from gsd_core.planning.requirements import read_requirements
from gsd_core.planning.survey import read_planning
from gsd_core.planning.traceability import Trace, parse_results, phase_of_requirement, trace
from gsd_core.planning.verification import read_verification

from .verification import phase_commits, with_verdict


async def trace_all(root: Path) -> tuple[Trace, ...]:
    """Return a row for each requirement of REQUIREMENTS.md, in the order of the file."""
    if not read_requirements(root):
        return ()
    planning = read_planning(root)
    phases = {phase.number: await traced_phase(phase) for phase in planning.phases if phase.plans}
    results = {number: parse_results(read_verification(phase)) for number, phase in phases.items()}
    rows: list[Trace] = []
    for requirement in planning.requirements:
        found = phase_of_requirement(requirement, planning.phases)
        phase = phases.get(found.number, found) if found else None
        number = phase.number if phase else ""
        verdict = phase.verdict if phase else None
        rows.append(
            trace(
                requirement,
                phase,
                results.get(number, {}),
                verdict=verdict,
                has_statements=bool(planning.statements),
            )
        )
    return tuple(rows)


async def traced_phase(phase: PhaseView) -> PhaseView:
    """Return the phase with the commits of its plans, and its verdict marked as stale if it is."""
    commits = await phase_commits(Git(phase.project), phase)
    return attrs.evolve(await with_verdict(phase), commits=commits)
