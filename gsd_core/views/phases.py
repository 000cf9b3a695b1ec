"""The progress of each phase, from the files on disk and the steps of the run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import attrs

from gsd_core.machine.claims import is_stale, standing
from gsd_core.machine.due import in_range
from gsd_core.machine.state import PhaseSnapshot, State, StepRecord, gap_rounds
from gsd_core.model.ids import phase_order

Progress: TypeAlias = Literal["pending", "in_progress", "completed", "failed", "skipped"]
StepName: TypeAlias = Literal["discuss", "plan", "execute", "verify"]
STEPS: tuple[StepName, ...] = ("discuss", "plan", "execute", "verify")


@attrs.frozen(kw_only=True)
class PhaseRow:
    """The progress of one phase; *wanted*: it is in the range that the user asked for."""

    number: str
    name: str
    status: Progress
    steps: Mapping[StepName, Progress]
    gap_rounds: int = 0
    plans: int = 0
    plans_done: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    wanted: bool = True

    @property
    def done(self) -> int:
        """The number of steps that need no more work, including skipped ones."""
        return sum(status in ("completed", "skipped") for status in self.steps.values())


def phase_rows(state: State) -> tuple[PhaseRow, ...]:
    """Return a row for each phase of the roadmap, in order."""
    phases = state.seen.phases if state.seen else ()
    return tuple(_row(state, phase) for phase in sorted(phases, key=lambda p: phase_order(p.number)))


def percent(rows: tuple[PhaseRow, ...]) -> int:
    """Return how many percent of the wanted phases' steps are done, counting skipped steps as done."""
    wanted = [row for row in rows if row.wanted]
    return 100 * sum(row.done for row in wanted) // (len(wanted) * len(STEPS)) if wanted else 0


def _row(state: State, phase: PhaseSnapshot) -> PhaseRow:
    records = [r for r in state.steps.values() if r.id.phase == phase.number]
    steps: dict[StepName, Progress] = {name: _step_progress(state, phase, name) for name in STEPS}
    started = [r.started_at for r in records if r.started_at]
    ended = [r.ended_at for r in records if r.ended_at]
    status = _phase_progress(state, phase, records, steps)
    return PhaseRow(
        number=phase.number,
        name=phase.name,
        status=status,
        steps=steps,
        gap_rounds=len(gap_rounds(state, phase.number)),
        plans=len(phase.plans),
        plans_done=sum(plan.summary for plan in phase.plans),
        started_at=min(started, default=None),
        completed_at=max(ended, default=None) if status == "completed" else None,
        wanted=in_range(state, phase.number),
    )


def _phase_progress(
    state: State, phase: PhaseSnapshot, records: list[StepRecord], steps: Mapping[StepName, Progress]
) -> Progress:
    if phase.ticked and standing(state, phase) != "open":
        return "completed"
    if phase.number in state.skipped:
        return "skipped"
    if any(record.status == "failed" for record in records):
        return "failed"
    started = records or any(status in ("in_progress", "completed") for status in steps.values())
    return "in_progress" if started else "pending"


def _step_progress(state: State, phase: PhaseSnapshot, name: StepName) -> Progress:
    records = state.of(name, phase.number)
    reached = _on_disk(state, phase, name)
    if phase.ticked and standing(state, phase) != "open":
        # A complete phase needs no more work, even if its files suggest otherwise.
        return reached if reached == "completed" else "skipped"
    if any(record.status == "failed" for record in records):
        return "failed"
    if any(record.status in ("running", "parked", "result") for record in records):
        return "in_progress"
    if phase.number in state.skipped and reached != "completed":
        return "skipped"
    return reached


def _on_disk(state: State, phase: PhaseSnapshot, name: StepName) -> Progress:
    """Return the progress of a step according to its files alone."""
    match name:
        case "discuss":
            if phase.context:
                return "completed"
            # With plans, discuss is not due any more.
            return "skipped" if state.options.skip_discuss and phase.plans else "pending"
        case "plan":
            return _share(sum(plan.on_disk for plan in phase.plans), len(phase.plans))
        case "execute":
            return _share(sum(plan.summary for plan in phase.plans), len(phase.plans))
        case "verify":
            if state.options.skip_verify:
                return "skipped"
            if not phase.verdict:
                return "pending"
            # Plans that were executed after the verdict have not been verified.
            passed = phase.verdict == "passed" and not is_stale(state, phase)
            return "completed" if passed else "in_progress"


def _share(done: int, total: int) -> Progress:
    if not done:
        return "pending"
    return "completed" if done == total else "in_progress"
