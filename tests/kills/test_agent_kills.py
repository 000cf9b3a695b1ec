"""SIGKILL while the real Claude Code works, with a scripted model: the run resumes and does nothing twice."""

from __future__ import annotations

import pytest

from tests.e2e.place import EXAMPLE, REHEARSAL, Place, Started, calm, defects, gate

RUN = ("run", EXAMPLE, *REHEARSAL, "--yes", "--output-format", "stream-json")


def while_a_command_runs(place: Place) -> Started:
    """Start a run and return when its agent is waiting for a command that it started."""
    waits = gate(place)
    waits.close()
    started = place.start(*RUN)
    assert started.until(waits.reached.exists), started.said
    waits.open()
    return started


def between_two_tasks(place: Place) -> Started:
    """Start a run and return when the first task of its plan is committed."""
    started = place.start(*RUN)
    assert started.until(lambda: '"task.committed"' in started.said), started.said
    return started


def assert_finished_once(place: Place) -> None:
    """Resume the run, and check its result against the idea."""
    done = place.gsd("resume", "--yes")

    assert done.exit == 0, done.err
    assert list(defects(place)) == []
    assert len(place.facts("question.asked")) == 1
    assert len(place.facts("question.answered")) == 1


def test_an_agent_that_outlived_gsd_is_ended_by_the_next_start(place: Place) -> None:
    place.make()
    place.environment = calm(QUESTION="1")
    while_a_command_runs(place).kill()
    left = place.leftovers()

    assert left
    assert_finished_once(place)
    assert not [process for process in left if process.is_running()]


@pytest.mark.slow
def test_a_run_killed_with_its_whole_process_group_resumes(place: Place) -> None:
    place.make()
    place.environment = calm(QUESTION="1")
    while_a_command_runs(place).kill(group=True)

    assert_finished_once(place)


@pytest.mark.slow
def test_a_run_killed_between_two_tasks_resumes_with_the_second(place: Place) -> None:
    place.make()
    place.environment = calm(QUESTION="1")
    between_two_tasks(place).kill()

    assert_finished_once(place)
    assert [fact.data["task"] for fact in place.facts("task.committed")] == ["01-01/1", "01-01/2"]


@pytest.mark.slow
def test_a_run_killed_while_a_question_is_open_asks_it_again(place: Place) -> None:
    place.make()
    place.environment = calm(QUESTION="1")
    started = place.start("run", EXAMPLE, *REHEARSAL, "--no-input", GSD_WAIT_FOR_ANSWERS="10m")
    assert started.until(lambda: place.facts("question.asked"))
    started.kill()

    assert_finished_once(place)
