"""A plan's SUMMARY, from what was committed and what its executor reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gsd_core import Plan, StepRequest
from gsd_core.planning.render import render_summary

from .place import day
from .schemas import ReportAnswer
from .worklog import Record


def summary_of(step: StepRequest, plan: Plan, records: Sequence[Record], report: ReportAnswer) -> str:
    """Return the text of the summary: the same after a crash, so nothing that only this attempt knows."""
    created = {path for record in records for path in record.landed.created}
    paths = {path for record in records for path in record.landed.paths}
    return render_summary(
        plan,
        date=day(step),
        duration=_duration(step, records),
        commits=[(record.task.name, record.landed.commit) for record in records if record.landed.commit],
        created=sorted(created),
        modified=sorted(paths - created),
        accomplishments=[record.task.name for record in records],
        decisions=report.decisions,
        deviations=report.deviations,
        issues=report.issues,
    )


def _duration(step: StepRequest, records: Sequence[Record]) -> timedelta | None:
    """Return the time from the first attempt's start to the last task's commit, if both are known."""
    committed = [record.landed.at for record in records if record.landed.commit]
    last = committed[-1] if committed else None
    if step.began is None or last is None or last < step.began:
        return None
    return last - step.began
