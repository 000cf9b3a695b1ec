"""The prompt: a human at a real (pseudo) terminal."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from pathlib import Path

import pytest

from gsd_core import Option, Question, RunInfo, UserError
from gsd_plugins.terminal.prompt import parse_line, read_line
from gsd_plugins.terminal.session import TerminalSession
from tests.terminal.pseudo_terminal import DATABASE, inquiry, json_after, on_a_terminal

ASKING = str(Path(__file__).with_name("ask_process.py"))
TOPPINGS = Question(
    id="q-3",
    text="Which toppings?",
    multiple=True,
    free_text=False,
    options=(Option(label="Cheese"), Option(label="Olives"), Option(label="Chili")),
)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("\n", "SQLite"),
        ("2\n", "PostgreSQL"),
        ("postgresql\n", "PostgreSQL"),
        ("a flat file, please\n", "a flat file, please"),
    ],
)
def test_what_is_typed_is_the_answer(typed: str, words: str) -> None:
    with on_a_terminal(ASKING, NO_COLOR="1") as screen:
        shown = screen.until("> ")
        screen.type(typed)
        result = json_after(screen.until("}"))

    assert "Which database?" in shown
    assert "1. SQLite (recommended)" in shown
    assert "a server" in shown
    assert result == {"words": [words], "same": True}


def test_a_plain_terminal_gets_a_numbered_list_and_nothing_is_redrawn() -> None:
    with on_a_terminal(ASKING, "plain", NO_COLOR="1") as screen:
        shown = screen.until("> ")
        screen.type("2\n")
        rest = screen.until("}")

    assert "Press Enter for: SQLite" in shown
    assert "\x1b" not in shown + rest
    assert json_after(rest[rest.index("RESULT") :]) == {"words": ["PostgreSQL"], "same": True}


def test_an_invalid_answer_is_asked_for_again() -> None:
    with on_a_terminal(ASKING, "permission") as screen:
        screen.until("> ")
        screen.type("perhaps\n")
        again = screen.until("> ")
        screen.type("2\n")
        result = json_after(screen.until("}"))

    assert "invalid answer" in again
    assert result["words"] == ["Allow"]


def test_a_permission_shows_its_reason_and_the_whole_command() -> None:
    with on_a_terminal(ASKING, "permission") as screen:
        shown = screen.until("> ").replace("\r\n", "")

    assert "reason: it publishes" in shown
    assert "npm publish && " + "x" * 300 + " # the end" in shown


def test_an_answer_from_elsewhere_ends_the_prompt() -> None:
    with on_a_terminal(ASKING) as screen:
        screen.until("> ")
        screen.type("half an ans")
        screen.until("half an ans")
        os.kill(screen.process.pid, signal.SIGUSR1)
        shown = screen.until("}")

    assert "answered elsewhere" in shown
    assert "SQLite (ada)" in shown
    assert json_after(shown[shown.index("RESULT") :]) == {"words": None, "same": True}


def test_the_end_of_input_is_not_an_answer() -> None:
    with on_a_terminal(ASKING) as screen:
        screen.until("> ")
        screen.type("\x04")
        result = json_after(screen.until("}"))

    assert result["words"] is None


def test_no_one_is_asked_with_no_input() -> None:
    with on_a_terminal(ASKING, "no-input") as screen:
        shown = screen.until("}")

    assert "Which database?" not in shown


def test_no_one_is_asked_if_standard_input_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_text("2\n")

    async def ask() -> object:
        run = RunInfo(id="r-1", project=tmp_path, interactive=True)
        with path.open() as stdin:
            async with TerminalSession().open(run, err=io.StringIO(), stdin=stdin) as session:
                return await session.ask(inquiry())

    assert asyncio.run(ask()) is None


def test_a_line_cannot_be_awaited_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_text("2\n")

    async def read() -> object:
        with path.open() as stdin:
            return await read_line(stdin)

    assert asyncio.run(read()) is None


@pytest.mark.parametrize(
    ("typed", "words"),
    [("1,3", "Cheese, Chili"), ("olives, cheese", "Olives, Cheese"), ("2", "Olives"), ("2,2", "Olives")],
)
def test_several_options_are_separated_by_commas(typed: str, words: str) -> None:
    answer = parse_line(TOPPINGS, typed)

    assert answer.words == words


def test_several_numbers_where_one_option_can_be_chosen_are_refused() -> None:
    with pytest.raises(UserError, match="only one option"):
        parse_line(DATABASE, "1,2")


def test_an_empty_line_is_invalid_if_no_option_is_recommended() -> None:
    with pytest.raises(UserError, match="empty"):
        parse_line(TOPPINGS, "")


@pytest.mark.parametrize("typed", ["0", "4", "-1", "1, 4"])
def test_a_number_that_names_no_option_is_invalid(typed: str) -> None:
    with pytest.raises(UserError, match="from 1 to 3"):
        parse_line(TOPPINGS, typed)
