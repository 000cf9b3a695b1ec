"""A plan's SUMMARY, from what was committed and what its executor reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gsd_core import Plan, StepRequest
from gsd_core.planning.summary import render_summary

from .place import day
from .schemas import ReportAnswer
from .worklog import Record


def summary_of(step: StepRequest, plan: Plan, records: Sequence[Record], report: ReportAnswer) -> str:
    """Return the text of the summary: the same after a crash, so nothing that only this attempt knows."""
    created = {path for record in records for path in record.landed.created}
    paths = {path for record in records for path in record.landed.paths}
    last = _last(records)
    return render_summary(
        plan,
        date=last.date().isoformat() if last else day(step),
        duration=last - step.began if last and step.began and last >= step.began else None,
        commits=[(record.task.name, record.landed.commit) for record in records if record.landed.commit],
        created=sorted(created),
        modified=sorted(paths - created),
        accomplishments=[record.task.name for record in records],
        decisions=report.decisions,
        deviations=report.deviations,
        issues=report.issues,
    )


def _last(records: Sequence[Record]) -> datetime | None:
    """Return when the last task was committed, if that is known."""
    committed = [record.landed.at for record in records if record.landed.commit]
    return committed[-1] if committed else None
