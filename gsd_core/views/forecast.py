"""How long what is left takes, and what it costs: an interval, from the steps that the project has finished.

A forecast is made of draws. In each, every step that is left takes as long, and costs as much, as a finished
step of its kind, drawn at random with replacement (a bootstrap of whole steps; Efron 1979); the plans of a
phase are put on the slots as a run does it. The interval has the middle 80 % of the draws: it says how much
the past varied, not what has never happened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isnan, nan
from random import Random

import attrs

from gsd_core.machine.claims import standing
from gsd_core.machine.due import in_range, starts_milestone
from gsd_core.machine.schedule import Schedule, works_of
from gsd_core.machine.state import State
from gsd_core.model.counts import counted
from gsd_core.model.ids import COMPLETE, EXECUTE, PLAN, StepId, phase_order
from gsd_core.planning.model import PhaseView, Plan
from gsd_core.planning.waves import plan_dependencies
from gsd_core.serializer import Serializer

from .amounts import dollars_text, duration_text
from .sentences import LIFECYCLE, left_of_lifecycle
from .summary import StepDone

DRAWS = 300
SHARE = 0.8
LEAST = 2
"""With fewer finished steps of a kind, nothing is known about how much they vary."""


@attrs.frozen(kw_only=True)
class Interval:
    """The middle 80 % of the draws, from *low* to *high*, and their *median*: seconds, or dollars."""

    low: float
    median: float
    high: float


@attrs.frozen(kw_only=True)
class Earlier:
    """What would have been forecast when *phase* began, from the steps before, and what it took and cost."""

    phase: str
    seconds: Interval
    took: float
    dollars: Interval | None
    cost: float | None

    @property
    def within(self) -> bool:
        """Whether it took as long as forecast."""
        return self.seconds.low <= self.took <= self.seconds.high


@attrs.frozen(kw_only=True)
class Forecast:
    """The forecast for the *phases* that are left, in *slots*, from so many finished *steps* of each kind.

    Without an interval, *unknown* says what is not known. *earlier* are the forecasts for finished phases.
    """

    phases: tuple[str, ...]
    slots: int
    steps: Mapping[str, int]
    seconds: Interval | None = None
    dollars: Interval | None = None
    unknown: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()


@attrs.frozen(kw_only=True)
class _Effort:
    """The *seconds* and the *dollars* of a step, or of a task; not a number if unknown."""

    seconds: float = 0.0
    dollars: float = 0.0

    def __add__(self, more: _Effort) -> _Effort:
        return _Effort(seconds=self.seconds + more.seconds, dollars=self.dollars + more.dollars)

    def times(self, factor: float) -> _Effort:
        return _Effort(seconds=self.seconds * factor, dollars=self.dollars * factor)


@attrs.frozen(kw_only=True)
class _Left:
    """What is left of a phase: steps of these *kinds*, and *plans*; ``None`` before they are made.

    *spent* is what it took so far beside the steps that each phase has.
    """

    kinds: tuple[str, ...]
    plans: Schedule | None
    spent: _Effort = _Effort()


@attrs.frozen(kw_only=True)
class _Past:
    """The finished steps: *steps* by kind, of plans for each task; *plans* of planned phases.

    *extra* is what each finished phase took beside one step of each kind and its first plans: gap rounds,
    research, steps of plugins.
    """

    steps: Mapping[str, Sequence[_Effort]]
    plans: Sequence[Schedule]
    extra: Mapping[str, _Effort]
    finished: Collection[str]

    def lacks(self, left: Sequence[_Left]) -> tuple[str, ...]:
        """Return what is not known of the steps that are *left*."""
        kinds = {*(kind for one in left for kind in one.kinds)}
        kinds |= {EXECUTE for one in left if one.plans is None or one.plans.works}
        few = [kind for kind in LIFECYCLE if kind in kinds and len(self.steps.get(kind, ())) < LEAST]
        found = [f"fewer than {LEAST} finished steps of {', '.join(few)}"] if few else []
        if not self.plans and any(one.plans is None for one in left):
            found.append("no phase is planned yet")
        return tuple(found)

    def draw(self, left: Sequence[_Left], slots: int, rng: Random) -> _Effort:
        """Return what all that is *left* takes in one draw."""
        total = _Effort()
        for phase in left:
            for kind in phase.kinds:
                total += rng.choice(self.steps[kind])
            schedule = rng.choice(self.plans) if phase.plans is None else phase.plans
            plans = {one.id: rng.choice(self.steps[EXECUTE]).times(one.size) for one in schedule.works}
            seconds = schedule.makespan({name: one.seconds for name, one in plans.items()}, slots)
            total += _Effort(seconds=seconds, dollars=sum(one.dollars for one in plans.values()))
            if self.finished:
                more = self.extra.get(rng.choice(sorted(self.finished)), _Effort())
                rest = more + phase.spent.times(-1)
                total += _Effort(seconds=max(rest.seconds, 0.0), dollars=max(rest.dollars, 0.0))
        return total

    def intervals(self, left: Sequence[_Left], slots: int) -> tuple[Interval, Interval | None]:
        """Return the intervals of the time and of the cost; ``None`` if a cost is unknown."""
        rng = Random(0)  # the same journal, the same forecast
        draws = [self.draw(left, slots, rng) for _ in range(DRAWS)]
        dollars = [draw.dollars for draw in draws]
        cost = None if any(map(isnan, dollars)) else _interval(dollars)
        return _interval([draw.seconds for draw in draws]), cost


def _interval(draws: Sequence[float]) -> Interval:
    found, last = sorted(draws), len(draws) - 1
    low, median, high = (found[round(last * share)] for share in ((1 - SHARE) / 2, 0.5, (1 + SHARE) / 2))
    return Interval(low=low, median=median, high=high)


def forecast(state: State, phases: Sequence[PhaseView], steps: Sequence[StepDone], *, slots: int) -> Forecast:
    """Return the forecast for those *phases* of a project in *state* that are left; *steps* are its steps."""
    steps = [step for step in steps if step.phase]
    past = _past(steps, phases)
    views = {phase.number: phase for phase in phases}
    left: dict[str, _Left] = {}
    for phase in state.seen.phases if state.seen else ():
        wanted = in_range(state, phase.number) and phase.number not in state.skipped
        if wanted and standing(state, phase) == "open":
            kinds = left_of_lifecycle(state, phase)
            view = views.get(phase.number)
            plans = [plan for plan in view.plans if not plan.summary] if view and PLAN not in kinds else None
            if phase.verdict == "gaps_found":
                # What its rounds take is drawn as well.
                kinds, plans = [COMPLETE], []
            left[phase.number] = _Left(
                kinds=tuple(kind for kind in kinds if kind != EXECUTE),
                plans=None if plans is None else _schedule(plans),
                spent=past.extra.get(phase.number, _Effort()),
            )
    lacks = past.lacks([*left.values()])
    if not views or starts_milestone(state):
        lacks = ("the roadmap is not written yet",)
    seconds, dollars = (None, None) if lacks or not left else past.intervals([*left.values()], slots)
    if seconds and dollars is None:
        lacks = ("the cost of some finished steps",)
    return Forecast(
        phases=tuple(left),
        slots=slots,
        steps={kind: len(past.steps.get(kind, ())) for kind in LIFECYCLE},
        seconds=seconds,
        dollars=dollars,
        unknown=lacks,
        earlier=tuple(_earlier(phases, steps, past.finished, slots)),
    )


def _schedule(plans: Sequence[Plan]) -> Schedule:
    return Schedule(works=works_of(plans, plan_dependencies(plans)))


def _past(steps: Sequence[StepDone], phases: Sequence[PhaseView]) -> _Past:
    """Return what the finished *steps* say; *phases* are those whose plans are known."""
    gap_plans = {plan.id for phase in phases for plan in phase.plans if plan.gap_closure}
    found: dict[str, list[_Effort]] = {}
    extra: dict[str, _Effort] = {}
    finished: set[str] = set()
    for step in steps:
        if step.status != "completed":
            continue
        step_id = StepId.parse(step.id)
        effort = _effort(step)
        finished |= {step_id.phase} if step_id.kind == COMPLETE else set()
        if step_id.kind == EXECUTE:
            found.setdefault(EXECUTE, []).append(effort.times(1 / max(1, len(step.tasks))))
        elif step_id.kind in LIFECYCLE and not step_id.round:
            found.setdefault(step_id.kind, []).append(effort)
        if step_id.kind not in LIFECYCLE or step_id.round or step_id.detail in gap_plans:
            extra[step_id.phase] = extra.get(step_id.phase, _Effort()) + effort
    planned = {StepId.parse(step.id).phase for step in steps if StepId.parse(step.id).kind == PLAN}
    plans = [
        [one for one in phase.plans if not one.gap_closure] for phase in phases if phase.number in planned
    ]
    return _Past(
        steps=found, plans=[_schedule(each) for each in plans if each], extra=extra, finished=finished
    )


def _effort(step: StepDone) -> _Effort:
    dollars = float(step.costs.usage.dollars or 0)
    return _Effort(seconds=step.took.total_seconds(), dollars=nan if step.costs.unknown else dollars)


def _earlier(
    phases: Sequence[PhaseView], steps: Sequence[StepDone], finished: Collection[str], slots: int
) -> Iterator[Earlier]:
    """Yield what would have been forecast for each finished phase when it began, with *slots* as now."""
    for phase in sorted(finished, key=phase_order):
        own = [step for step in steps if step.phase == phase and step.spans]
        began = min(begin for step in own for begin, _ in step.spans)
        past = _past([step for step in steps if step.spans and step.spans[-1][1] <= began], phases)
        left = [_Left(kinds=tuple(kind for kind in LIFECYCLE if kind != EXECUTE), plans=None)]
        if past.lacks(left):
            continue
        seconds, dollars = past.intervals(left, slots)
        cost = sum(_effort(step).dollars for step in own)
        yield Earlier(
            phase=phase,
            seconds=seconds,
            took=_worked(own),
            dollars=dollars,
            cost=None if isnan(cost) else cost,
        )


def _worked(steps: Sequence[StepDone]) -> float:
    """Return the seconds in which at least one of the *steps* was worked on."""
    total, until = timedelta(), datetime.min.replace(tzinfo=UTC)
    for begin, end in sorted(span for step in steps for span in step.spans):
        total += max(end - max(begin, until), timedelta())
        until = max(end, until)
    return total.total_seconds()


def forecast_lines(found: Forecast) -> Iterator[str]:
    """Yield the forecast in words."""
    about = f"{counted(sum(found.steps.values()), 'finished step')}, {counted(found.slots, 'slot')}"
    if found.seconds:
        cost = f", {_between(found.dollars, _dollars)}" if found.dollars else ""
        yield f"forecast: {_between(found.seconds, _duration)}{cost} (80 % of the draws from {about})"
    if found.unknown:
        yield f"no forecast of the {'cost' if found.seconds else 'time and cost'}: {'; '.join(found.unknown)}"
    for one in found.earlier:
        took = f"{_duration(one.took)}{'' if one.cost is None else f', {_dollars(one.cost)}'}"
        cost = f", {_between(one.dollars, _dollars)}" if one.dollars else ""
        yield f"earlier forecast, phase {one.phase}: {_between(one.seconds, _duration)}{cost}; it took {took}"
    if found.earlier:
        within = sum(one.within for one in found.earlier)
        yield f"{within} of {counted(len(found.earlier), 'earlier forecast')} contained the time it took"


def _between(found: Interval, text: Callable[[float], str]) -> str:
    return " to ".join(dict.fromkeys([text(found.low), text(found.high)]))


def _duration(seconds: float) -> str:
    return duration_text(timedelta(seconds=seconds))


def _dollars(amount: float) -> str:
    return dollars_text(f"{amount:.4f}")


FORECAST = Serializer(
    Forecast,
    "phases slots steps seconds dollars unknown earlier",
    earlier=Serializer(Earlier, "phase seconds took dollars cost within"),
)
