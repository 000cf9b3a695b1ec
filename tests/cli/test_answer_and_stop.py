"""Commands that reach a run from another process: answer and stop."""

from __future__ import annotations

import os

import pytest
from attrs import evolve

from gsd_core import boot_id, process_start
from gsd_core.journal.lock import ProjectLock
from gsd_plugins.sessions.registry import Registry
from tests.cli.bench import DATABASE, Bench, call, said


@pytest.mark.parametrize(
    ("words", "chosen", "text"),
    [
        (["PostgreSQL"], ["PostgreSQL"], ""),
        (["postgresql"], ["PostgreSQL"], ""),
        (["2"], ["PostgreSQL"], ""),
        (["a", "flat", "file"], [], "a flat file"),
    ],
)
def test_an_answer_is_put_into_the_inbox(
    bench: Bench, words: list[str], chosen: list[str], text: str
) -> None:
    bench.start()
    bench.ask()

    result = call("answer", "q-1", *words, "-C", bench.root)

    assert result.exit_code == 0, result.stderr
    (item,) = bench.inbox()
    assert (item["kind"], item["question"], item["chosen"], item["text"]) == ("answer", "q-1", chosen, text)
    assert "resume" in result.stdout


def test_several_options_are_separated_by_commas(bench: Bench) -> None:
    bench.start()
    bench.ask(evolve(DATABASE, multiple=True))

    call("answer", "q-1", "1,", "PostgreSQL", "-C", bench.root)

    assert bench.inbox()[0]["chosen"] == ["SQLite", "PostgreSQL"]


def test_several_numbers_are_refused_where_one_option_can_be_chosen(bench: Bench) -> None:
    bench.start()
    bench.ask()

    result = call("answer", "q-1", "1,2", "-C", bench.root)

    assert result.exit_code == 2
    assert "only one option" in result.stderr
    assert bench.inbox() == []


def test_an_active_run_takes_the_answer(bench: Bench) -> None:
    bench.start()
    bench.ask()
    with ProjectLock(bench.root / ".git" / "gsd"):
        result = call("answer", "q-1", "1", "-C", bench.root)

    assert f"the active run (pid {os.getpid()}) will use it" in result.stdout


def test_an_invalid_choice_is_an_error_that_lists_the_choices(bench: Bench) -> None:
    bench.start()
    bench.ask(evolve(DATABASE, free_text=False))

    result = call("answer", "q-1", "3", "-C", bench.root)

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: invalid answer to q-1: no option 3; choose a number from 1 to 2",
        "hint: answer with 1 (SQLite), 2 (PostgreSQL)",
    ]
    assert bench.inbox() == []


def test_an_empty_answer_is_an_error(bench: Bench) -> None:
    bench.start()
    bench.ask()

    assert "an empty answer" in call("answer", "q-1", "-C", bench.root).stderr


def test_an_unknown_question_is_an_error_that_lists_the_open_ones(bench: Bench) -> None:
    bench.start()
    bench.ask()

    result = call("answer", "q-2", "1", "-C", bench.root)

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: no question 'q-2' in this project",
        "hint: open questions: q-1",
    ]


def test_an_answer_that_a_run_has_taken_is_final(bench: Bench) -> None:
    bench.start()
    bench.ask()
    answer = {"question": "q-1", "chosen": ["SQLite"], "how": "human", "by": "ada"}
    bench.fact("question.answered", answer=answer)

    result = call("answer", "q-1", "2", "-C", bench.root)

    assert result.exit_code == 2
    assert "already answered: SQLite (by ada)" in result.stderr


def test_an_answer_that_no_run_has_taken_can_be_replaced(bench: Bench) -> None:
    bench.start()
    bench.ask()
    call("answer", "q-1", "1", "-C", bench.root)

    result = call("answer", "q-1", "2", "-C", bench.root)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("replaced the answer to q-1: PostgreSQL")
    assert [item["chosen"] for item in bench.inbox()] == [["SQLite"], ["PostgreSQL"]]
    assert said("answer", "q-1", "1", "-C", bench.root)["replaced"] is True


@pytest.mark.parametrize("state", ["waiting_checkpoint", "idle", "running"])
def test_a_session_that_has_not_ended_takes_the_answer_without_a_command(bench: Bench, state: str) -> None:
    bench.start()
    bench.ask()
    with Registry() as registry:
        session = registry.add(project=bench.root, folder=bench.root, command=["run"])
        process = {"runner": os.getpid(), "runner_started": process_start(os.getpid()), "boot": boot_id()}
        registry.update(session.id, state=state, **process)

    result = call("answer", "q-1", "2", "-C", bench.root)

    # After its first answer it waits for a slot again; an answer may be replaced until it has one.
    assert f"session {session.id} continues by itself" in result.stdout


def test_an_answer_that_no_run_has_taken_is_shown(bench: Bench) -> None:
    bench.start()
    bench.ask()
    call("answer", "q-1", "1", "-C", bench.root)

    status = call("status", "-C", bench.root).stdout

    assert said("questions", "-C", bench.root)["questions"][0]["answer_given"] is True
    assert f"answered; continue the run with: gsd -C {bench.root} resume" in status


@pytest.mark.parametrize("number", ["0", "3", "99"])
def test_a_number_that_names_no_option_is_not_taken_as_free_text(bench: Bench, number: str) -> None:
    bench.start()
    bench.ask()

    result = call("answer", "q-1", number, "-C", bench.root)

    assert result.exit_code == 2
    assert "choose a number from 1 to 2" in result.stderr
    assert bench.inbox() == []


def test_stop_asks_the_active_run_once(bench: Bench) -> None:
    bench.start()
    with ProjectLock(bench.root / ".git" / "gsd"):
        found = said("stop", "-C", bench.root)
        call("stop", "-C", bench.root)

    assert (found["asked"], found["pid"]) == (True, os.getpid())
    assert [item["kind"] for item in bench.inbox()] == ["stop"]


def test_stop_without_a_run_leaves_nothing_that_could_stop_the_next(bench: Bench) -> None:
    bench.start()

    result = call("stop", "-C", bench.root)

    assert (result.exit_code, result.stdout) == (0, "no active run in this project\n")
    assert bench.inbox() == []
