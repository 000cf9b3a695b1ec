"""SIGKILL while the real Claude Code works, with a scripted model: the run resumes and does nothing twice."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, REHEARSAL, Project, Started, defects, gate, no_problems

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *REHEARSAL, "--yes", "--output-format", "stream-json")


def while_a_command_runs(project: Project) -> Started:
    """Start a run and return when its agent is waiting for a command that it started."""
    waits = gate(project)
    waits.close()
    started = project.start(*RUN)
    assert started.until(waits.reached.exists), started.output
    waits.open()
    return started


def between_two_tasks(project: Project) -> Started:
    """Start a run and return when the first task of its plan is committed."""
    started = project.start(*RUN)
    assert started.until(lambda: '"task.committed"' in started.output), started.output
    return started


def assert_finished_once(project: Project) -> None:
    """Resume the run, and check its result against the idea."""
    done = project.gsd("resume", "--yes")

    assert done.exit == 0, done.err
    assert list(defects(project)) == []
    assert len(project.facts("question.asked")) == 1
    assert len(project.facts("question.answered")) == 1


def test_an_agent_that_outlived_gsd_is_ended_by_the_next_start(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1")
    while_a_command_runs(project).kill()
    left = project.leftovers()

    assert left
    assert_finished_once(project)
    assert not [process for process in left if process.is_running()]


def test_a_run_killed_with_its_whole_process_group_resumes(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1")
    while_a_command_runs(project).kill(group=True)

    assert_finished_once(project)


def test_a_run_killed_between_two_tasks_resumes_with_the_second(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1")
    between_two_tasks(project).kill()

    assert_finished_once(project)
    assert [fact.data["task"] for fact in project.facts("task.committed")] == ["01-01/1", "01-01/2"]


def test_a_run_killed_while_a_question_is_open_asks_it_again(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1")
    started = project.start("run", EXAMPLE, *REHEARSAL, "--no-input", GSD_WAIT_FOR_ANSWERS="10m")
    assert started.until(lambda: project.facts("question.asked"))
    started.kill()

    assert_finished_once(project)
