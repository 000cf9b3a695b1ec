"""The forecast of what is left, with steps of known durations; and the error of earlier forecasts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core.machine.state import State
from gsd_core.model.ids import StepId
from gsd_core.planning.model import PhaseView, Plan, Planning, Task
from gsd_core.run.snapshot import snapshot_of
from gsd_core.views.forecast import Interval, forecast, forecast_lines
from gsd_core.views.summary import StepDone, summarize
from tests.views.test_views import START, Facts


class Clocked(Facts):
    """A journal's facts, each at a time that the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START

    def step(self, step: str, seconds: float, dollars: str = "0", tasks: int = 0) -> None:
        """Append a step that took so long and cost so much."""
        self._at("attempt.started", step, kind=StepId.parse(step).kind)
        self._at("agent.opened", step, key="k")
        for number in range(tasks):
            self._at("task.committed", step, task=f"t/{number}", commit=f"c{number}")
        self.now += timedelta(seconds=seconds)
        usage = {"dollars": dollars, "basis": "reported", "input_tokens": 1}
        self._at("agent.closed", step, key="k", ended="done", usage=usage)
        self._at("step.completed", step)

    def _at(self, kind: str, step: str, /, **data: Any) -> None:
        self.add(kind, step, **data)
        self.records[-1] = attrs.evolve(self.records[-1], at=self.now)


def plan(name: str, tasks: int, *after: str, done: bool = False, file: str = "") -> Plan:
    about: Any = {"files_modified": (file,) if file else (), "summary": "s" if done else ""}
    listed = tuple(Task(number=number + 1, name="t") for number in range(tasks))
    return Plan(id=name, phase=name[0], tasks=listed, depends_on=after, **about)


def phase(number: str, *plans: Plan, done: bool = False) -> PhaseView:
    return PhaseView(
        project=Path("p"), number=number, name="P", plans=plans, ticked=done, context="c" if plans else ""
    )


def lived(phases: int, *, per_task: float = 10, dollars: str = "0.5") -> Clocked:
    """Return the facts of finished phases, each of two plans with one and two tasks."""
    facts = Clocked()
    for number in map(str, range(1, phases + 1)):
        facts.step(f"{number}/discuss", 4, dollars)
        facts.step(f"{number}/plan", 6, dollars)
        facts.step(f"{number}/execute/{number}a", per_task, dollars, tasks=1)
        facts.step(f"{number}/execute/{number}b", 2 * per_task, dollars, tasks=2)
        facts.step(f"{number}/verify", 7, dollars)
        facts.step(f"{number}/complete", 1)
    return facts


def finished(phases: int) -> list[PhaseView]:
    return [
        phase(number, plan(f"{number}a", 1, done=True), plan(f"{number}b", 2, done=True), done=True)
        for number in map(str, range(1, phases + 1))
    ]


def state_of(phases: list[PhaseView]) -> State:
    return State(seen=snapshot_of(Planning(phases=tuple(phases))))


def steps_of(facts: Facts) -> tuple[StepDone, ...]:
    return summarize(facts.records).steps


@pytest.mark.parametrize(
    ("slots", "file", "seconds"),
    # With 10 s a task: one plan after the other 20 + 10 + 30 + 10. In two slots `b` follows `a`, beside `c`,
    # and then comes `d`: also with more slots, if it changes the same file as `c`. Then verify and complete.
    [(1, "y", 70 + 8), (2, "y", 40 + 8), (9, "x", 40 + 8), (9, "y", 30 + 8)],
)
def test_steps_that_always_took_the_same_are_forecast_exactly(slots: int, file: str, seconds: float) -> None:
    left = phase("3", plan("3a", 2), plan("3b", 1, "3a"), plan("3c", 3, file="x"), plan("3d", 1, file=file))
    phases = [*finished(2), left]
    found = forecast(state_of(phases), phases, steps_of(lived(2)), slots=slots)

    assert found.seconds == Interval(low=seconds, median=seconds, high=seconds)
    # Four plans of 7 tasks; a task cost 0.50 in the plans with one, 0.25 in those with two. Verify: 0.50.
    assert found.dollars
    assert 7 * 0.25 + 0.5 <= found.dollars.low <= found.dollars.high <= 7 * 0.5 + 0.5
    assert (found.phases, found.unknown) == (("3",), ())
    assert found.steps == {"discuss": 2, "plan": 2, "execute": 4, "verify": 2, "complete": 2}


def test_a_phase_without_plans_gets_those_of_another_one() -> None:
    phases = [*finished(2), phase("3")]
    found = forecast(state_of(phases), phases, steps_of(lived(2)), slots=1)

    assert found.seconds == Interval(low=48, median=48, high=48)
    assert forecast(state_of(phases), phases, steps_of(lived(2)), slots=2).seconds == Interval(
        low=38, median=38, high=38
    )


def test_the_interval_is_the_middle_of_what_steps_took() -> None:
    facts = lived(10)
    for number in range(10):
        facts.step(f"{number + 1}/verify", 100 * number)
    phases = [*finished(10), phase("11", plan("11a", 1, done=True))]
    found = forecast(state_of(phases), phases, steps_of(facts), slots=1)

    # Each verification took 7 s, and one of 0, 100 … 900 s more. 1 s for the last step.
    assert found.seconds
    assert found.seconds.low in (8, 108)
    assert found.seconds.high in (808, 908)
    assert found.seconds.low < found.seconds.median < found.seconds.high


def test_steps_outside_of_phases_and_with_impossible_names_do_not_count() -> None:
    facts = lived(2)
    facts.step("init", 1000)
    strange = attrs.evolve(steps_of(facts)[0], id="../x")
    phases = [*finished(2), phase("3")]
    found = forecast(state_of(phases), phases, [*steps_of(facts), strange], slots=1)

    assert found.seconds == Interval(low=48, median=48, high=48)


def test_gap_rounds_of_the_past_are_drawn_by_phase() -> None:
    facts = lived(2)
    for number in "12":
        facts.step(f"{number}/plan/r1", 50)
        facts.step(f"{number}/verify/r1", 50)
    phases = [*finished(2), phase("3")]

    found = forecast(state_of(phases), phases, steps_of(facts), slots=1)
    assert found.seconds == Interval(low=148, median=148, high=148)


def test_without_enough_steps_it_says_what_it_cannot_tell() -> None:
    phases = [*finished(1), phase("2")]
    found = forecast(state_of(phases), phases, steps_of(lived(1)), slots=1)

    assert (found.seconds, found.dollars, found.earlier) == (None, None, ())
    assert [*forecast_lines(found)] == [
        "no forecast of the time and cost: fewer than 2 finished steps of discuss, plan, verify, complete"
    ]
    [line] = forecast_lines(forecast(State(), [], (), slots=1))
    assert "the roadmap is not written yet" in line


def test_a_cost_that_is_not_known_is_not_forecast() -> None:
    facts = lived(2)
    facts.step("2/verify", 1)
    for index, record in enumerate(facts.records):
        if record.kind == "agent.closed" and record.step == "1/verify":
            usage = {"basis": "unknown", "input_tokens": 1}
            facts.records[index] = attrs.evolve(record, data={**record.data, "usage": usage})
    phases = [*finished(2), phase("3")]
    found = forecast(state_of(phases), phases, steps_of(facts), slots=1)

    assert found.seconds
    assert (found.dollars, found.unknown) == (None, ("the cost of some finished steps",))


def test_earlier_forecasts_are_made_from_what_was_known_then() -> None:
    facts = lived(3)
    # The fourth phase takes three times as long for each task: 18 + 90 s instead of 18 + 30 s.
    slow = lived(4, per_task=30)
    shift = facts.now - slow.records[len(facts.records)].at
    facts.records += [attrs.evolve(one, at=one.at + shift) for one in slow.records[len(facts.records) :]]
    phases = [*finished(4), phase("5")]
    found = forecast(state_of(phases), phases, steps_of(facts), slots=1)

    assert [(one.phase, one.seconds.median, one.took, one.within) for one in found.earlier] == [
        ("3", 48, 48, True),
        ("4", 48, 108, False),
    ]
    assert [*forecast_lines(found)][-1] == "1 of 2 earlier forecasts contained the time it took"
