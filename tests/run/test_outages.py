"""Outages: a run waits for a service that does not answer, says so, and loses and repeats nothing."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from gsd_core import (
    Activity,
    AgentHost,
    AgentResult,
    AgentTask,
    Event,
    Outage,
    Permanent,
    RunStep,
    StepRequest,
    StepResult,
    Transient,
    Usage,
    implements,
)
from gsd_core.hookspecs import gsd_on_event, gsd_wrap_step
from gsd_core.machine.facts import Record
from gsd_core.machine.state import State
from gsd_core.testing import FakeClock
from gsd_plugins import retry

from . import harness as h

pytestmark = pytest.mark.slow

SOON = {"retry": {"wait": 0.01, "max_wait": 0.02, "outage": 60}}


@define(eq=False)
class Down:
    """A service that is down for each role's first *times* calls, after *turns* turns of an agent."""

    times: int
    roles: tuple[str, ...] = ("executor",)
    turns: int = 0
    until: timedelta | None = None
    calls: dict[str, int] = field(factory=dict[str, int])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        number = self.calls[task.role] = self.calls.get(task.role, 0) + 1
        if task.role not in self.roles or number > self.times:
            return None
        for _ in range(self.turns):
            await host.progress(Activity(kind="text"), Usage(input_tokens=10, turns=1))
        raise Outage("overloaded (529)", until=h.now() + self.until if self.until else None)


def answers(root: Path) -> list[tuple[str, str]]:
    """Return the step and the key of each answer that was paid for and recorded."""
    closed = [fact for fact in h.facts(root, "agent.closed") if fact.data["ended"] == "done"]
    return [(fact.step, fact.data["key"]) for fact in closed]


def do(root: Path, down: Any, sections: Any = SOON, **more: Any) -> Any:
    agent = h.Watched(h.one_phase(), down)
    return h.do(h.request(root, agent, given=h.idea(), sections=sections, **more))


def test_a_run_survives_an_outage_of_every_service_and_gets_the_same_answers(tmp_path: Path) -> None:
    calm, stormy = h.repository(tmp_path / "calm"), h.repository(tmp_path / "stormy")

    expected = do(calm, Down(0))
    end = do(stormy, Down(6, roles=("roadmapper", "planner", "executor", "verifier"), turns=1))

    assert (end.outcome, end.exit) == ("done", 0)
    assert answers(stormy) == answers(calm)
    assert h.trailed(stormy) == h.trailed(calm)
    assert end.commits == expected.commits


def test_each_attempt_after_an_outage_resumes_the_same_conversation(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = h.Watched(h.one_phase(), Down(5))

    end = h.do(h.request(root, agent, given=h.idea(), sections=SOON))

    used = [task.conversation for task in agent.of("executor") if task.conversation]
    assert end.exit == 0
    assert len(used) == 6
    assert len({conversation.id for conversation in used}) == 1
    assert [conversation.resume for conversation in used] == [False] + [True] * 5


def test_an_outage_that_does_not_end_exits_with_75_and_names_the_setting(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, Down(10**6), {"retry": {"wait": 0.02, "max_wait": 0.02, "outage": 0.1}})
    waits = h.facts(root, "timer.set")
    later = h.do(h.request(root, h.one_phase()))

    planned = [datetime.fromisoformat(fact.data["until"]) - fact.at for fact in waits]
    assert (end.outcome, end.exit) == ("failed", 75)
    # Each wait is between a half and the whole of the setting.
    assert 5 <= len(waits) <= 12
    assert sum(planned, timedelta()) >= timedelta(seconds=0.08)
    assert "retry.outage" in h.facts(root, "step.failed")[-1].data["error"]["hint"]
    assert later.exit == 0


def test_without_a_time_for_outages_the_first_one_ends_the_run(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    down = Down(10**6)

    end = do(root, down, {"retry": {"outage": 0}})

    assert (end.exit, down.calls["executor"]) == (75, 1)
    assert h.facts(root, "timer.set") == []


def test_a_second_outage_has_the_whole_time_again_once_an_answer_came_in_between(tmp_path: Path) -> None:
    # The limit allows about four waits; each role needs three.
    sections = {"retry": {"wait": 0.05, "max_wait": 0.05, "outage": 0.16}}
    root = h.repository(tmp_path / "project")

    end = do(root, Down(3, roles=("roadmapper", "planner", "executor", "verifier")), sections)

    assert end.exit == 0


def test_a_time_that_the_service_names_is_waited_for(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, Down(1, until=timedelta(seconds=1.2)))

    [timer], [fired] = h.facts(root, "timer.set"), h.facts(root, "timer.fired")
    assert end.exit == 0
    assert fired.at - timer.at > timedelta(seconds=0.9)


@define(eq=False)
class Watcher:
    """Keeps the events of one name."""

    name: str
    events: list[Event] = field(factory=list[Event])

    @implements(gsd_on_event)
    async def watch(self, event: Event) -> None:
        if event.name == self.name:
            self.events.append(event)


def test_a_wait_is_an_event_that_says_for_what_and_until_when(tmp_path: Path) -> None:
    root, watcher = h.repository(tmp_path / "project"), Watcher("step.waiting")

    do(root, Down(2), watcher=watcher)

    assert [event.data["why"] for event in watcher.events] == ["overloaded (529)"] * 2
    for event in watcher.events:
        assert event.step.startswith("1/execute/")
        assert datetime.fromisoformat(event.data["until"]) >= event.at


@pytest.mark.parametrize("by", [timedelta(hours=5), timedelta(days=400)])
def test_a_clock_that_is_set_back_does_not_make_a_wait_longer(tmp_path: Path, by: timedelta) -> None:
    root, clock, down = h.repository(tmp_path / "project"), FakeClock(start=h.now()), Down(1)
    asked = h.request(root, h.Watched(h.one_phase(), down), given=h.idea(), sections={"retry": {"wait": 0.4}})

    def set_back(_: State, record: Record) -> None:
        if record.kind == "timer.set":
            clock.advance(-by)

    started = time.monotonic()
    end = h.do(evolve(asked, clock=clock.now, observers=(set_back,)))

    assert (end.exit, down.calls["executor"]) == (0, 2)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("by", [timedelta(hours=25), timedelta(days=400)])
def test_a_clock_that_is_set_forward_does_not_use_up_the_time_for_waiting(
    tmp_path: Path, by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, clock, down = h.repository(tmp_path / "project"), FakeClock(start=h.now()), Down(3)
    # The machine has one clock; the plugin reads it by itself.
    monkeypatch.setattr(retry, "Clock", partial(retry.Clock, now=clock.now))
    asked = h.request(
        root, h.Watched(h.one_phase(), down), given=h.idea(), sections={"retry": {"wait": 0.05}}
    )

    def set_forward(_: State, record: Record) -> None:
        if record.kind == "timer.set":
            clock.advance(by)

    end = h.do(evolve(asked, clock=clock.now, observers=(set_forward,)))

    assert (end.exit, down.calls["executor"]) == (0, 4)


@define(eq=False)
class Postpones:
    """A wrapper that has the first step wait before its first attempt."""

    done: bool = False

    @implements(gsd_wrap_step)
    async def postpone(self, step: StepRequest, call_next: RunStep) -> StepResult:
        if not self.done:
            self.done = True
            raise Transient("the machine is being backed up", until=h.now() + timedelta(seconds=0.05))
        return await call_next(step)


def test_a_wrapper_may_have_a_step_wait_before_its_first_attempt(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, Down(0), postpones=Postpones())

    assert end.exit == 0
    assert len(h.facts(root, "timer.set")) == 1


def test_a_permanent_failure_is_not_waited_for(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def fail(task: AgentTask, host: AgentHost) -> AgentResult | None:
        raise Permanent("invalid request")

    end = do(root, fail)

    assert end.exit == 1
    assert h.facts(root, "timer.set", "timer.fired") == []
