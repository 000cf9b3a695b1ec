"""A run is answered, followed and stopped by other processes, and resumed."""

from __future__ import annotations

import json

import pytest

from tests.e2e.place import EXAMPLE, FAKE, REHEARSAL, Place, calm, defects, gate
from tests.run.harness import git

RUN = ("run", EXAMPLE, *FAKE)
QUESTION = "Which bullet should each entry in the list start with?"
RESUME = ("resume", *FAKE[:2])


def asking(place: Place) -> None:
    """Create a project whose agent asks its question."""
    place.make()
    place.environment = calm(QUESTION="1")


def bullet(place: Place) -> str:
    """Return the lines of the project's code with the chosen bullet."""
    return git(place.project, "grep", "-h", "BULLET = ", "HEAD")


AGENTS = [pytest.param(FAKE, id="fake"), pytest.param(REHEARSAL, id="rehearsal", marks=pytest.mark.slow)]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_without_a_human_ends_the_run_and_its_answer_finishes_it(
    place: Place, agent: tuple[str, ...]
) -> None:
    asking(place)
    blocked = place.gsd("run", EXAMPLE, *agent, "--no-input")
    (question,) = place.said("questions")["questions"]
    answered = place.gsd("answer", question["id"], "2")
    done = place.gsd("resume", *agent[:-2], "--no-input")

    assert blocked.exit == 3
    assert question["id"] in blocked.err
    assert question["text"] == QUESTION
    assert answered.exit == 0, answered.err
    assert done.exit == 0, done.err
    assert 'BULLET = "-"' in bullet(place)
    assert len(place.facts("question.asked")) == 1
    assert list(defects(place)) == []


def test_answers_come_from_a_file(place: Place) -> None:
    asking(place)
    answers = place.base / "answers.json"
    answers.write_text(json.dumps({QUESTION: "Arrow"}))
    done = place.gsd(*RUN, "--no-input", "--answers", answers)

    assert done.exit == 0, done.err
    assert 'BULLET = "->"' in bullet(place)
    assert list(defects(place)) == []


@pytest.mark.slow
def test_answers_come_from_standard_input(place: Place) -> None:
    asking(place)
    answer = json.dumps({"question": QUESTION, "chosen": ["Dash"]}).encode() + b"\n"
    done = place.gsd(*RUN, "--answers", "-", stdin=answer)

    assert done.exit == 0, done.err
    assert 'BULLET = "-"' in bullet(place)


@pytest.mark.slow
def test_a_run_that_waits_takes_an_answer_from_another_process(place: Place) -> None:
    asking(place)
    started = place.start(*RUN, "--no-input", GSD_WAIT_FOR_ANSWERS="2m")
    assert started.until(lambda: place.facts("question.asked"))
    (question,) = place.said("questions")["questions"]
    answered = place.gsd("answer", question["id"], "Star")
    done = started.wait()

    assert f"pid {started.pid}" in answered.out
    assert done.exit == 0, done.err


def test_a_run_can_be_followed_to_its_end(place: Place) -> None:
    place.make()
    place.environment = calm()
    waits = gate(place)
    waits.close()
    started = place.start(*RUN, "--yes")
    assert started.until(waits.reached.exists)
    follows = place.start("log", "--follow", "--json")
    assert follows.until(follows.has_said(5))
    status = place.said("status")
    waits.open()
    stopped = place.gsd("stop")
    done, followed = started.wait(), follows.wait()

    assert (status["status"], status["owner"]["pid"]) == ("running", started.pid)
    assert (status["current_step"]["id"], status["current_step"]["status"]) == ("1/execute/01-01", "running")
    assert str(started.pid) in stopped.out
    assert done.exit == 130
    assert followed.exit == 0
    assert followed.lines[-1]["kind"] == "run.closed"
    seqs = [line["seq"] for line in followed.lines]
    assert seqs == [fact.seq for fact in place.facts() if fact.seq <= seqs[-1]]


@pytest.mark.slow
def test_a_run_that_was_stopped_from_elsewhere_is_resumed(place: Place) -> None:
    place.make()
    place.environment = calm()
    waits = gate(place)
    waits.close()
    started = place.start(*RUN, "--yes")
    assert started.until(waits.reached.exists)
    waits.open()
    place.gsd("stop")
    stopped = started.wait()
    left = place.leftovers()
    done = place.gsd(*RESUME, "--yes")

    assert stopped.exit == 130
    assert "stopped on request" in stopped.err
    assert left == []
    assert done.exit == 0, done.err
    assert list(defects(place)) == []


def test_stop_without_a_run_reports_that(place: Place) -> None:
    place.make()
    done = place.gsd("stop")

    assert (done.exit, done.out) == (0, "no active run in this project\n")
