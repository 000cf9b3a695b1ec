"""Walk the machine: every state that is not the end has something due, and an end can be reached."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_core.machine.due import End, Start, due
from gsd_core.machine.state import State

from .world import World, carry_on, new_world, ways


def shape(world: World) -> Any:
    """Return what decides the future of a world: without times, sequence numbers and attempts."""
    steps = {
        key: evolve(r, attempt=0, epoch=0, base=0, result=0, started_at=None, ended_at=None, generation=0)
        for key, r in world.state.steps.items()
    }
    state = evolve(
        world.state, seq=0, epoch=0, last_at=None, opened_at=None, started_at=None, steps=steps, inquiries={}
    )
    open_ = tuple(key for key, question in world.state.inquiries.items() if question.open)
    return repr(state), open_, world.disk


def walk(start: World, troubles: int, crashes: int) -> dict[Any, World]:
    """Return every world within the bound of troubles and crashes, by its shape and by breadth."""
    found, queue = {_place(start): start}, deque([start])
    while queue:
        for after in ways(queue.popleft()):
            if after.trouble > troubles or after.crashes > crashes:
                continue
            if (key := _place(after)) not in found:
                found[key] = after
                queue.append(after)
    return found


def _place(world: World) -> Any:
    return shape(world), world.trouble, world.crashes


def check_each_has_an_end(worlds: dict[Any, World]) -> None:
    """Let all go well from each world on, but not twice from the same."""
    ended: set[Any] = set()
    for (key, _, _), world in worlds.items():
        assert due(world.state), " > ".join(world.path)
        if key not in ended:
            carry_on(world)
            ended.add(key)


@pytest.mark.parametrize(
    ("troubles", "crashes", "skip_verify", "least"),
    [
        (1, 1, False, 2_000),
        (1, 1, True, 150),
        pytest.param(2, 2, False, 15_000, marks=pytest.mark.slow),
        pytest.param(2, 2, True, 700, marks=pytest.mark.slow),
    ],
)
def test_every_state_within_the_bound_has_something_due_and_can_reach_an_end(
    troubles: int, crashes: int, skip_verify: bool, least: int
) -> None:
    start = new_world(options={"skip_verify": skip_verify, "gap_rounds": 1})

    worlds = walk(start, troubles, crashes)

    check_each_has_an_end(worlds)
    assert len(worlds) >= least, f"walked {len(worlds)} states only: the world does not let enough happen"


def test_a_project_without_trouble_is_done_with_every_step_once() -> None:
    world, end = carry_on(new_world())

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


@given(st.lists(st.integers(0, 20), max_size=120))
@settings(max_examples=2 * settings().max_examples)
def test_whatever_happens_an_end_can_be_reached(choices: list[int]) -> None:
    world = new_world()
    for choice in choices:
        after = list(ways(world))
        if not after:
            break
        world = after[choice % len(after)]

    assert due(world.state)
    _, end = carry_on(world)
    assert isinstance(end, End)


def test_gaps_are_planned_executed_and_verified_again_also_after_the_last_round() -> None:
    world = evolve(new_world(1), disk=new_world(1).disk)
    steps: list[str] = []
    rounds = iter([("a", "b", "c", "d"), ("b", "c", "d"), ("c", "d"), ("d",)])
    while True:
        item = due(world.state)[0]
        if not isinstance(item, Start):
            if due_is_the_end(world.state):
                break
            world = next(ways(world))
            continue
        steps.append(str(item.step))
        world = next(ways(world))
        if item.step.kind == "verify":
            gaps = next(rounds)
            record = evolve(world.state.steps[str(item.step)], gaps=gaps)
            world = evolve(
                world, state=evolve(world.state, steps={**world.state.steps, str(item.step): record})
            )

    assert [s for s in steps if "verify" in s] == ["1/verify", "1/verify/r1", "1/verify/r2", "1/verify/r3"]
    assert [s for s in steps if "plan" in s] == ["1/plan", "1/plan/r1", "1/plan/r2", "1/plan/r3"]
    assert due(world.state)[0].__class__.__name__ == "Escalate"


def due_is_the_end(state: State) -> bool:
    return due(state)[0].__class__.__name__ in ("Escalate", "End")
