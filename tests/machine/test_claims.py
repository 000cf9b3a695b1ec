"""What planning files claim: believed if it was there before, and not if it appears while the run works."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from gsd_core.codec import unstructure
from gsd_core.machine.claims import dependents, standing, unverified
from gsd_core.machine.due import End, Start, due
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot

from .world import World, answered, crashed, inquiry_of, new_world, run_to_the_end, successors

DONE = PhaseSnapshot(
    number="1",
    ticked=True,
    context=True,
    plans=(PlanSnapshot(id="01-01", summary=True),),
    verdict="passed",
)
NEXT = PhaseSnapshot(number="2", depends_on=("1",))
SECOND = ["2/discuss", "2/plan", "2/execute/02-01", "2/verify", "2/complete"]


def world_with(phase: PhaseSnapshot, **options: Any) -> World:
    """Return a run that was opened in a project with *phase*, and a second one that depends on it."""
    return new_world(options=options, disk=Snapshot(phases=(phase, NEXT)))


def steps(world: World) -> list[str]:
    """Run to the end and return the steps that were done."""
    after, end = run_to_the_end(world)
    assert isinstance(end, End)
    assert end.exit == 0, end
    return [step for step, record in after.state.steps.items() if record.completed]


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({}, []),
        ({"verdict": ""}, []),
        ({"stale": True}, []),
        ({"verdict": "human_needed"}, []),
        ({"verdict": "", "plans": ()}, []),
        (
            {"verdict": "gaps_found", "gaps": ("a",)},
            ["1/plan/r1", "1/execute/01-02", "1/verify", "1/complete"],
        ),
        ({"verdict": "gaps_found", "stale": True}, ["1/verify", "1/complete"]),
        ({"ticked": False, "stale": True}, ["1/verify", "1/complete"]),
        ({"ticked": False, "context": False, "verdict": ""}, ["1/verify", "1/complete"]),
    ],
)
def test_a_phase_from_before_the_run_counts_as_its_files_say_unless_it_has_gaps(
    change: dict[str, Any], first: list[str]
) -> None:
    assert steps(world_with(evolve(DONE, **change))) == [*first, *SECOND]


def test_a_missing_check_mark_comes_after_all_real_work() -> None:
    assert steps(world_with(evolve(DONE, ticked=False))) == [*SECOND, "1/complete"]


def test_a_plan_that_is_not_executed_counts_although_its_phase_is_ticked_and_blocks_no_other() -> None:
    plans = (*DONE.plans, PlanSnapshot(id="01-02"))
    phase = evolve(DONE, plans=plans)
    assert steps(world_with(phase)) == ["1/execute/01-02", "1/verify", "1/complete", *SECOND]
    assert steps(world_with(phase, phases=("2",))) == SECOND

    world, _ = run_to_the_end(world_with(DONE))
    first, second = world.disk.phases
    more = evolve(world.disk, phases=(evolve(first, plans=plans), second))
    world = crashed(evolve(world, disk=more).record("run.closed", {"outcome": "done", "exit": 0}))
    assert first_step(world) == "1/execute/01-02"


def test_the_phases_that_this_run_did_not_verify_are_named() -> None:
    world, _ = run_to_the_end(world_with(evolve(DONE, verdict="")))
    assert unverified(world.state) == ("1",)
    world, _ = run_to_the_end(world_with(DONE))
    assert unverified(world.state) == ("1",)
    world, _ = run_to_the_end(new_world())
    assert unverified(world.state) == ()


def test_a_check_mark_without_a_verdict_is_not_believed_for_a_phase_that_the_user_names() -> None:
    world = world_with(evolve(DONE, verdict=""), phases=("1", "2"))
    assert steps(world) == ["1/verify", "1/complete", *SECOND]
    assert unverified(run_to_the_end(world)[0].state) == ()


def test_a_verified_phase_without_a_check_mark_is_complete_for_those_that_depend_on_it() -> None:
    assert steps(world_with(evolve(DONE, ticked=False), phases=("2",))) == SECOND


def at(step: str) -> World:
    """Return a run that is about to start *step*."""
    world = new_world(1)
    while not (isinstance(item := due(world.state)[0], Start) and str(item.step) == step):
        world = next(successors(world))
    return world


def forged(world: World, **change: Any) -> World:
    """Return the world after somebody changed the phase's files between two calls of agents."""
    [phase] = world.disk.phases
    return evolve(world, disk=evolve(world.disk, phases=(evolve(phase, **change),))).observed()


def first_step(world: World) -> str:
    item = due(world.state)[0]
    assert isinstance(item, Start), item
    return str(item.step)


EXECUTED = (PlanSnapshot(id="01-01", summary=True),)


def test_a_summary_and_a_verdict_that_appear_during_the_run_are_not_believed() -> None:
    world = at("1/execute/01-01")
    assert first_step(forged(world, plans=EXECUTED)) == "1/execute/01-01"
    assert first_step(forged(world, plans=EXECUTED, verdict="passed")) == "1/execute/01-01"
    world = at("1/verify")
    assert first_step(forged(world, verdict="passed")) == "1/verify"
    assert standing(world.state, forged(world, verdict="passed").disk.phases[0]) == "open"


def test_a_verdict_that_hides_the_gaps_of_the_last_verification_is_not_believed() -> None:
    world = at("1/verify")
    with_gaps = next(after for after in successors(world) if after.path[-1] == "result 1")
    world = next(successors(with_gaps))
    assert first_step(world) == "1/plan/r1"
    assert first_step(forged(world, verdict="passed", gaps=())) == "1/verify/r1"


def test_what_appears_in_a_process_that_is_killed_in_an_attempt_is_not_believed_either() -> None:
    world = at("1/execute/01-01").record("attempt.started", {"phase": "1"}, "1/execute/01-01", 1)
    [phase] = world.disk.phases
    done = evolve(phase, ticked=True, plans=EXECUTED, verdict="passed")
    world = crashed(evolve(world, disk=evolve(world.disk, phases=(done,))))
    world = next(successors(world))  # settled
    assert first_step(world) == "1/execute/01-01"
    assert standing(world.state, done) == "open"


def test_what_a_person_did_between_two_processes_is_believed() -> None:
    world = at("1/execute/01-01").record("run.closed", {"outcome": "stopped", "exit": 130})
    [phase] = world.disk.phases
    executed = evolve(world.disk, phases=(evolve(phase, plans=EXECUTED),))
    assert first_step(crashed(evolve(world, disk=executed))) == "1/verify"
    verified = evolve(world.disk, phases=(evolve(phase, plans=EXECUTED, verdict="passed"),))
    assert first_step(crashed(evolve(world, disk=verified))) == "1/complete"


def test_what_appeared_during_a_process_is_not_believed_by_the_next_one_either() -> None:
    world = forged(at("1/execute/01-01"), plans=EXECUTED)
    world = crashed(world.record("run.closed", {"outcome": "stopped", "exit": 130}))
    assert first_step(world) == "1/execute/01-01"


def test_a_check_mark_that_appears_during_the_run_is_not_believed() -> None:
    world = forged(at("1/execute/01-01"), ticked=True)
    assert first_step(world) == "1/execute/01-01"
    world = crashed(world.record("run.closed", {"outcome": "stopped", "exit": 130}))
    assert first_step(world) == "1/execute/01-01"


def test_a_person_may_tick_a_box_between_two_processes_to_leave_a_phase_and_it_is_counted() -> None:
    world = at("1/execute/01-01").record("run.closed", {"outcome": "stopped", "exit": 130})
    [phase] = world.disk.phases
    ticked = evolve(world.disk, phases=(evolve(phase, ticked=True),))
    world = crashed(evolve(world, disk=ticked))
    item = due(world.state)[0]
    assert isinstance(item, End)
    assert item.exit == 0
    assert unverified(world.state) == ("1",)


def test_journals_of_earlier_versions_believe_all_files() -> None:
    world = evolve(at("1/verify"), state=evolve(at("1/verify").state, claims=None))
    assert first_step(forged(world, verdict="passed")) == "1/complete"


def test_skipping_a_phase_leaves_alone_what_is_complete_and_what_depends_only_on_that() -> None:
    phases = (
        PhaseSnapshot(number="1"),
        evolve(DONE, number="2", depends_on=("1",), plans=(PlanSnapshot(id="02-01", summary=True),)),
        PhaseSnapshot(number="3", depends_on=("2",)),
        PhaseSnapshot(number="4", depends_on=("1",)),
        PhaseSnapshot(number="5", depends_on=("4",)),
    )
    world = new_world(disk=Snapshot(phases=phases))
    world = world.record("attempt.started", {"phase": "1"}, "1/discuss", 1)
    world = world.record("step.failed", {"error": {"kind": "Permanent", "message": "no"}}, "1/discuss", 1)
    assert dependents(world.state, "1") == ("4", "5")

    inquiry = inquiry_of("1/discuss", "escalation", "What now?")
    data = {"inquiry": unstructure(inquiry), "occasion": "failed 0"}
    world = answered(world.record("question.asked", data, "1/discuss"), inquiry, "Skip")

    assert world.state.skipped == ("1", "4", "5")
    assert first_step(world) == "3/discuss"
