"""``gsd requirements``: traces each requirement from the idea to the evidence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gsd_core.sanitize import one_line

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, print_table, styled

if TYPE_CHECKING:
    from gsd_core.planning.traceability import Trace

COLUMNS = (
    *("requirement", "text", "statements", "phase", "plans", "commits"),
    *("checks", "cases", "evidence", "status"),
)
STYLES = {"Complete": "green", "In Progress": "cyan", "Blocked": "red", "Error": "red", "Pending": "dim"}
REQUIREMENTS = ".planning/REQUIREMENTS.md"
MILESTONES = ".planning/milestones"
MAX_TEXT = 300
MAX_REASON = 300


@gsd_command("requirements", "gsd requirements", "gsd requirements --json", last=json_flag)
def command(ctx: click.Context, as_json: bool) -> None:
    """Trace the requirements: statements of the idea, phase, plans, commits, checks and evidence.

    Of the test cases, those count that fail without the work of their plan; --json says without what.
    Everything is read from the planning files and the history, so no run is needed. The status is
    Complete if a verification has evidence for the requirement, Blocked if something that it needs
    does not hold, and Error if the chain is broken: the requirement is in no phase or plan, no truth
    serves it, or its phase was verified without evidence for it. Otherwise, and in a project that was
    made without such a chain, it is the status in REQUIREMENTS.md.
    """
    from gsd_core.run.tracing import trace_all
    from gsd_core.views.planning import requirements_json

    from .project import planned_root

    root = planned_root(global_options_of(ctx))
    rows = asyncio.run(trace_all(root))
    if as_json:
        print_json(requirements_json(rows))
    elif not rows:
        print_line(_why_none(root))
    else:
        print_table(COLUMNS, [_cells(row) for row in rows], STYLES)
        for row in rows:
            if row.reason:
                line = f"{row.requirement.id}: {one_line(row.reason, MAX_REASON)}"
                print_line(styled(line, "red") if row.status in ("Error", "Blocked") else line)


def _why_none(root: Path) -> str:
    if (root / REQUIREMENTS).exists():
        return f"no requirements in {REQUIREMENTS}"
    archived = sorted((root / MILESTONES).glob("*-REQUIREMENTS.md"))
    last = f"; those of the last milestone are in {MILESTONES}/{archived[-1].name}" if archived else ""
    return f"no {REQUIREMENTS}{last}"


def _cells(row: Trace) -> tuple[str, ...]:
    passed = sum(check.result is not None and check.result.status == "holds" for check in row.checks)
    cases = {case.name: case for check in row.checks for case in check.cases}.values()
    holding = sum(one.status == "holds" for one in row.evidence)
    return (
        row.requirement.id,
        one_line(row.requirement.text, MAX_TEXT),
        ", ".join(row.requirement.statements),
        row.phase,
        ", ".join(row.plans),
        ", ".join(commit[:7] for commit in row.commits),
        f"{passed}/{len(row.checks)}" if row.checks else "",
        f"{sum(case.is_proof for case in cases)}/{len(cases)}" if cases else "",
        f"{holding}/{len(row.evidence)}" if row.evidence else "",
        row.status,
    )
