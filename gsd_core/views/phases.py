"""The progress of each phase, from the files on disk and the steps of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import attrs

from gsd_core.machine.claims import is_stale, standing
from gsd_core.machine.due import in_range
from gsd_core.machine.state import PhaseSnapshot, Snapshot, State, StepRecord, gap_rounds
from gsd_core.model.ids import CORE_KINDS, phase_order
from gsd_core.planning.survey import Measure
from gsd_core.serializer import Serializer

Progress: TypeAlias = Literal["pending", "in_progress", "completed", "failed", "skipped"]
StepName: TypeAlias = Literal["discuss", "plan", "execute", "verify"]
STEPS: tuple[StepName, ...] = ("discuss", "plan", "execute", "verify")


def measure_of_snapshot(snapshot: Snapshot | None) -> Measure:
    """Return the same as :func:`measure_of` for the files as a run observed them."""
    phases = snapshot.phases if snapshot else ()
    plans = [plan for phase in phases for plan in phase.plans if plan.on_disk]
    return Measure(
        phases=len(phases),
        complete=sum(phase.ticked for phase in phases),
        plans=len(plans),
        executed=sum(plan.summary for plan in plans),
    )


PLAN_COUNTS = Serializer(Measure, "total=plans done=executed")


@attrs.frozen(kw_only=True)
class PhaseRow:
    """The progress of one phase; *wanted*: it is in the range that the user asked for.

    *steps* has the core's steps, and those of plugins that are due or that the run has begun, in the order in
    which they come. *doubted*: ROADMAP.md marks the phase as complete, but the run has more to do for it.
    """

    number: str
    name: str
    status: Progress
    steps: Mapping[str, Progress]
    gap_rounds: int = 0
    plans: int = 0
    plans_done: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    wanted: bool = True
    doubted: bool = False


def phase_rows(state: State) -> tuple[PhaseRow, ...]:
    """Return a row for each phase of the roadmap, in order."""
    phases = state.seen.phases if state.seen else ()
    return tuple(_row(state, phase) for phase in sorted(phases, key=lambda p: phase_order(p.number)))


def _row(state: State, phase: PhaseSnapshot) -> PhaseRow:
    records = [r for r in state.steps.values() if r.id.phase == phase.number]
    steps: dict[str, Progress] = {name: _step_progress(state, phase, name) for name in STEPS}
    steps = _with_plugins_steps(records, phase, steps)
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
        doubted=phase.ticked and status != "completed",
    )


def _with_plugins_steps(
    of_phase: Sequence[StepRecord], phase: PhaseSnapshot, steps: Mapping[str, Progress]
) -> dict[str, Progress]:
    """Return the steps with those of plugins' kinds, each before the step that it comes before."""
    began: dict[str, list[StepRecord]] = {}
    for record in of_phase:
        began.setdefault(record.id.kind, []).append(record)
    places = {step.kind: step.before for step in phase.due}
    kinds = [kind for kind in began if kind not in CORE_KINDS]
    found: dict[str, Progress] = dict(steps)
    for kind in dict.fromkeys([*kinds, *places]):
        records = began.get(kind, [])
        before = places.get(kind) or _followed_by(records, began)
        progress = _plugins_progress(records, is_due=kind in places)
        names = list(found)
        at = names.index(before) if before in names else len(names)
        with_kind: dict[str, Progress] = {**found, kind: progress}
        found = {name: with_kind[name] for name in [*names[:at], kind, *names[at:]]}
    return found


def _followed_by(records: Sequence[StepRecord], began: Mapping[str, Sequence[StepRecord]]) -> str:
    """Return the step of the core that began first after these; empty if none has."""
    first = min((record.started_at for record in records if record.started_at), default=None)
    later = {
        name: min(times)
        for name in STEPS
        if (times := [r.started_at for r in began.get(name, ()) if r.started_at])
        and first is not None
        and min(times) > first
    }
    return min(later, key=lambda name: later[name], default="")


def _plugins_progress(records: Sequence[StepRecord], *, is_due: bool) -> Progress:
    last = max(records, key=lambda record: (record.id.round, record.id.detail), default=None)
    match last.status if last else "":
        case "failed":
            return "failed"
        case "running" | "parked" | "result":
            return "in_progress"
        case "completed" if not is_due:
            return "completed"
        case "skipped" if not is_due:
            return "skipped"
        case _:
            return "pending"


def _phase_progress(
    state: State, phase: PhaseSnapshot, records: list[StepRecord], steps: Mapping[str, Progress]
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
