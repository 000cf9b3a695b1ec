"""A run is answered, followed and stopped by other processes, and resumed."""

from __future__ import annotations

import json

import pytest

from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, defects, door, gate, no_problems
from tests.run.harness import git

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE)
QUESTION = "How should each greeting end?"
RESUME = ("resume", *FAKE[:2])


def asking(project: Project) -> None:
    """Create a project whose agent asks its question."""
    project.create()
    project.environment = no_problems(QUESTION="1")


def ending(project: Project) -> str:
    """Return the lines of the project's code with the chosen ending."""
    return git(project.root, "grep", "-h", "ENDING = ", "HEAD")


AGENTS = [pytest.param(FAKE, id="fake"), pytest.param(REHEARSAL, id="rehearsal", marks=pytest.mark.long)]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_without_a_human_ends_the_run_and_its_answer_finishes_it(
    project: Project, agent: tuple[str, ...]
) -> None:
    asking(project)
    blocked = project.gsd("run", EXAMPLE, *agent, "--no-input")
    (question,) = project.json("questions")["questions"]
    answered = project.gsd("answer", question["id"], "2")
    done = project.gsd("resume", *agent[:-2], "--no-input")

    assert blocked.exit == 3
    assert question["id"] in blocked.out
    assert question["text"] == QUESTION
    assert answered.exit == 0, answered.err
    assert done.exit == 0, done.err
    assert 'ENDING = "."' in ending(project)
    assert len(project.facts("question.asked")) == 1
    assert list(defects(project)) == []


def test_answers_come_from_a_file(project: Project) -> None:
    asking(project)
    answers = project.base / "answers.json"
    answers.write_text(json.dumps({QUESTION: "Smile"}))
    done = project.gsd(*RUN, "--no-input", "--answers", answers)

    assert done.exit == 0, done.err
    assert 'ENDING = " :)"' in ending(project)
    assert list(defects(project)) == []


def test_answers_come_from_standard_input(project: Project) -> None:
    asking(project)
    answer = json.dumps({"question": QUESTION, "chosen": ["Period"]}).encode() + b"\n"
    done = project.gsd(*RUN, "--answers", "-", stdin=answer)

    assert done.exit == 0, done.err
    assert 'ENDING = "."' in ending(project)


def test_a_run_that_waits_takes_an_answer_from_another_process(project: Project) -> None:
    asking(project)
    started = project.start(*RUN, "--no-input", GSD_WAIT_FOR_ANSWERS="2m")
    assert started.until(lambda: project.facts("question.asked"))
    (question,) = project.json("questions")["questions"]
    answered = project.gsd("answer", question["id"], "Exclamation mark")
    done = started.wait()

    assert f"pid {started.pid}" in answered.out
    assert done.exit == 0, done.err


def test_a_run_can_be_followed_to_its_end(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    waits = gate(project)
    waits.close()
    started = project.start(*RUN, "--yes")
    assert started.until(waits.reached.exists)
    follows = project.start("log", "--follow", "--json")
    assert follows.until(follows.has_lines(5))
    status = project.json("status")
    waits.open()
    stopped = project.gsd("stop")
    done, followed = started.wait(), follows.wait()

    assert (status["status"], status["owner"]["pid"]) == ("running", started.pid)
    assert (status["current_step"]["id"], status["current_step"]["status"]) == ("1/execute/01-01", "running")
    assert str(started.pid) in stopped.out
    assert done.exit == 130
    assert followed.exit == 0
    assert followed.lines[-1]["kind"] == "run.closed"
    seqs = [line["seq"] for line in followed.lines]
    assert seqs == [fact.seq for fact in project.facts() if fact.seq <= seqs[-1]]


def test_a_run_that_was_stopped_from_elsewhere_is_resumed(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    waits = gate(project)
    waits.close()
    started = project.start(*RUN, "--yes")
    assert started.until(waits.reached.exists)
    waits.open()
    project.gsd("stop")
    stopped = started.wait()
    left = project.leftovers()
    done = project.gsd(*RESUME, "--yes")

    assert stopped.exit == 130
    assert "stopped: on request" in stopped.out
    assert left == []
    assert done.exit == 0, done.err
    assert list(defects(project)) == []


def test_a_pause_lets_the_step_finish_and_a_second_one_can_cancel_it(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    waits = door(project)
    waits.close()
    started = project.start(*RUN, "--yes")
    assert started.until(waits.reached.exists)
    pauses = project.start("pause", "--json")
    assert pauses.until(lambda: project.facts("control.asked"))
    step = project.json("status")["current_step"]
    waits.open()
    paused, ended = pauses.wait(), started.wait()
    completed = [fact.step for fact in project.facts("step.completed")]

    waits.close()
    resumed = project.start(*RESUME, "--yes")
    assert resumed.until(waits.reached.exists)
    waiting = project.start("pause")
    assert waiting.until(lambda: len(project.facts("control.asked")) == 2)
    waiting.kill()
    cancelled, stopped = project.gsd("pause", "--now"), resumed.wait()

    assert (step["id"], step["status"]) == ("1/execute/01-01", "running")
    assert (paused.exit, ended.exit) == (0, 130), ended.err
    assert "has finished 1/execute/01-01; gsd pause --now cancels the step" in paused.err
    assert "paused on request" in ended.out
    assert completed[-1] == "1/execute/01-01"
    assert json.loads(paused.out)["next_action"].startswith("1/")
    assert (cancelled.exit, stopped.exit) == (0, 130), cancelled.err
    assert [fact.step for fact in project.facts("step.completed")] == completed
    assert "stopped: on request" in stopped.out


def test_a_paused_run_does_not_wait_for_an_answer(project: Project) -> None:
    asking(project)
    started = project.start(*RUN, "--no-input", GSD_WAIT_FOR_ANSWERS="5m")
    assert started.until(lambda: project.facts("question.asked"))
    paused, ended = project.gsd("pause"), started.wait()

    assert (paused.exit, ended.exit) == (0, 130), ended.err
    assert "paused on request" in ended.out
    assert len(project.json("questions")["questions"]) == 1


def test_stop_without_a_run_reports_that(project: Project) -> None:
    project.create()
    done = project.gsd("stop")

    assert (done.exit, done.out) == (0, "no active run in this project\n")
