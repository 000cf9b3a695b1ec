"""Walk through the machine's states: each has something due, and each can reach an end."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_core.machine.due import End, Start, due
from gsd_core.machine.state import Snapshot, State

from .world import World, make_phases, new_world, run_to_the_end, successors

MAX_STEPS = 200


def shape(world: World) -> bytes:
    """Return what decides the future of a world: everything but times, sequence numbers and attempts."""
    steps = {
        key: evolve(r, attempt=0, epoch=0, base=0, result=0, started_at=None, ended_at=None, generation=0)
        for key, r in world.state.steps.items()
    }
    state = evolve(world.state, seq=0, epoch=0, last_at=None, started_at=None, steps=steps, inquiries={})
    open_ = tuple(key for key, question in world.state.inquiries.items() if question.open)
    # A digest, because the texts of all states together take a gigabyte.
    return hashlib.sha256(repr((state, open_, world.disk)).encode()).digest()


def walk(start: World, problems: int, crashes: int) -> dict[Any, World]:
    """Return every world that is reached with so many problems and crashes, by its shape."""
    found, queue = {_key(start): start}, deque([start])
    while queue:
        for after in successors(queue.popleft()):
            if after.problems > problems or after.crashes > crashes:
                continue
            if (key := _key(after)) not in found:
                found[key] = after
                queue.append(after)
    return found


def _key(world: World) -> Any:
    return shape(world), world.problems, world.crashes


def check_each_has_an_end(worlds: dict[Any, World]) -> None:
    """Check that each world reaches an end if nothing else goes wrong."""
    has_end: set[bytes] = set()
    for (key, _, _), world in worlds.items():
        passed: list[bytes] = []
        while key not in has_end:
            assert len(passed) < MAX_STEPS, f"no end: {' > '.join(world.path[-30:])}"
            passed.append(key)
            next_item = due(world.state)
            assert next_item, " > ".join(world.path)
            if isinstance(next_item[0], End):
                break
            world = next(successors(world))
            key = shape(world)
        has_end.update(passed)


@pytest.mark.parametrize(
    ("problems", "crashes", "skip_verify", "least"),
    [
        pytest.param(1, 1, False, 2_000, marks=pytest.mark.slow),
        (1, 1, True, 150),
        pytest.param(2, 1, False, 4_000, marks=pytest.mark.slow),
        pytest.param(2, 2, False, 15_000, marks=pytest.mark.long),
        pytest.param(2, 2, True, 700, marks=pytest.mark.slow),
    ],
)
def test_every_state_within_the_bound_has_something_due_and_can_reach_an_end(
    problems: int, crashes: int, skip_verify: bool, least: int
) -> None:
    start = new_world(options={"skip_verify": skip_verify, "gap_rounds": 1})

    worlds = walk(start, problems, crashes)

    check_each_has_an_end(worlds)
    assert len(worlds) >= least, f"walked {len(worlds)} states only: not enough can happen in the world"


def test_a_project_without_problems_is_done_with_every_step_once() -> None:
    world, end = run_to_the_end(new_world())

    assert isinstance(end, End)
    assert (end.outcome, end.exit) == ("done", 0)
    assert [r.completed for r in world.state.steps.values()] == [1] * len(world.state.steps)
    assert list(world.state.steps) == [
        "init",
        "1/discuss",
        "1/plan",
        "1/execute/01-01",
        "1/verify",
        "1/complete",
        "2/discuss",
        "2/plan",
        "2/execute/02-01",
        "2/verify",
        "2/complete",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "crashes", "least"), [(1, 1, 3_000)])
def test_the_same_holds_with_the_steps_of_plugins(problems: int, crashes: int, least: int) -> None:
    worlds = walk(new_world(options={"gap_rounds": 1}, own=True), problems, crashes)

    check_each_has_an_end(worlds)
    assert len(worlds) >= least, f"walked {len(worlds)} states only: not enough can happen in the world"


def test_the_steps_of_plugins_come_where_they_belong() -> None:
    world, end = run_to_the_end(new_world(own=True))

    assert isinstance(end, End)
    assert (end.outcome, end.exit) == ("done", 0)
    steps = list(world.state.steps)
    assert (steps[:2], steps[-1]) == (["survey", "init"], "audit/v1.0")
    assert [step for step in steps if step.startswith("1/")][-3:] == ["1/verify", "1/review", "1/complete"]


def test_an_asked_step_is_done_alone_and_leaves_the_run_as_it_was() -> None:
    before, _ = run_to_the_end(new_world(1))
    before = before.record("run.closed", {"outcome": "failed", "exit": 1})
    data = {"options": {"only_asked": True}, "claims": None}
    world = before.record("run.opened", data).record("step.asked", {"text": "again"}, "1/verify/r1")
    started, crashed_at = due(world.state)[0], world
    world, end = run_to_the_end(world)
    after = world.record("run.closed", {"outcome": "done", "exit": 0})
    later = crashed_at.record("run.opened", {"options": {}, "claims": None})

    assert isinstance(started, Start)
    assert str(started.step) == "1/verify/r1"
    assert isinstance(end, End)
    assert (end.outcome, end.reason) == ("done", "1/verify/r1 complete")
    assert after.state.closed == "failed"
    # It is not forgotten if the process that was to do it is killed.
    assert due(later.state)[0] == started


def test_another_asked_step_is_not_done_by_a_process_that_was_asked_for_one() -> None:
    before, _ = run_to_the_end(new_world(1))
    before = before.record("run.closed", {"outcome": "done", "exit": 0})
    alone = {"options": {"only_asked": True}, "claims": None}
    # The process that was asked to close the milestone is killed before it begins.
    world = before.record("run.opened", alone).record("step.asked", {"text": ""}, "close/v1.0")
    world = world.record("run.opened", alone).record("step.asked", {"text": ""}, "audit/v1.0")
    first = due(world.state)

    assert [str(one.step) for one in first if isinstance(one, Start)] == ["audit/v1.0"]
    assert len(first) == 1


def test_a_run_closes_a_milestone_only_after_its_phases() -> None:
    alone = {"options": {"only_asked": True}, "claims": None}
    world = new_world(disk=Snapshot(phases=make_phases(1), milestone="v1.0"))
    world = world.record("run.opened", alone).record("step.asked", {"text": ""}, "close/v1.0")
    world = world.record("run.closed", {"outcome": "stopped", "exit": 130})
    world, _ = run_to_the_end(world.record("run.opened", {"options": {}, "claims": None}))

    done = [str(record.id) for record in world.state.steps.values() if record.completed]
    assert done.index("1/complete") < done.index("close/v1.0")


@pytest.mark.parametrize("own", [False, True])
@given(choices=st.lists(st.integers(0, 20), max_size=120))
@settings(max_examples=2 * settings().max_examples)
def test_an_end_can_be_reached_after_any_events(own: bool, choices: list[int]) -> None:
    world = new_world(own=own)
    for choice in choices:
        after = list(successors(world))
        if not after:
            break
        world = after[choice % len(after)]

    assert due(world.state)
    _, end = run_to_the_end(world)
    assert isinstance(end, End)


def test_gaps_are_planned_executed_and_verified_even_after_the_last_round() -> None:
    world = evolve(new_world(1), disk=new_world(1).disk)
    steps: list[str] = []
    rounds = iter([("a", "b", "c", "d"), ("b", "c", "d"), ("c", "d"), ("d",)])
    while True:
        item = due(world.state)[0]
        if not isinstance(item, Start):
            if is_over(world.state):
                break
            world = next(successors(world))
            continue
        steps.append(str(item.step))
        world = next(successors(world))
        if item.step.kind == "verify":
            gaps = next(rounds)
            record = evolve(world.state.steps[str(item.step)], gaps=gaps)
            world = evolve(
                world, state=evolve(world.state, steps={**world.state.steps, str(item.step): record})
            )

    assert [s for s in steps if "verify" in s] == ["1/verify", "1/verify/r1", "1/verify/r2", "1/verify/r3"]
    assert [s for s in steps if "plan" in s] == ["1/plan", "1/plan/r1", "1/plan/r2", "1/plan/r3"]
    assert due(world.state)[0].__class__.__name__ == "Escalate"


def is_over(state: State) -> bool:
    return due(state)[0].__class__.__name__ in ("Escalate", "End")


def test_facts_that_only_older_or_newer_versions_write_change_nothing() -> None:
    world = new_world(1).record("attempt.started", {"phase": "1"}, "1/discuss", 1)

    for kind in ("attempt.declared", "something.new"):
        after = world.record(kind, {"effect": "once"}, "1/discuss", 1)
        assert after.state == world.state
