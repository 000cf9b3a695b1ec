"""The menu of a question: what keys do, and how it looks on any terminal."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gsd_core import Option, Question
from gsd_plugins.terminal.keyboard import keys_of
from gsd_plugins.terminal.lines import UNICODE
from gsd_plugins.terminal.menu import Menu, render_menu
from gsd_plugins.terminal.screen import wrapped
from tests.terminal.pseudo_terminal import DATABASE, EVIL

UP, DOWN, LEFT, ESCAPE = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b"
TOPPINGS = Question(
    id="q-3",
    text="Which toppings?",
    multiple=True,
    options=(Option(label="Cheese"), Option(label="Olives"), Option(label="Chili")),
)
MANY = Question(id="q-4", text="Which?", options=tuple(Option(label=f"Option {n}") for n in range(60)))


def press(question: Question, *texts: str) -> Menu:
    menu = Menu.of(question)
    for text in texts:
        for key in keys_of(text):
            menu = menu.press(key)
    return menu


def answered(question: Question, *texts: str) -> str:
    menu = press(question, *texts)
    assert menu.outcome == "answered"
    assert menu.answer is not None
    return menu.answer.words


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["\n"], "SQLite"),
        ([DOWN, "\n"], "PostgreSQL"),
        ([UP, "\n"], "PostgreSQL"),
        ([DOWN, DOWN, "\n"], "SQLite"),
        (["2\n"], "PostgreSQL"),
        (["postgresql\n"], "PostgreSQL"),
        (["a flat  file\n"], "a flat  file"),
        (["a fat file", LEFT * 7, "l\n"], "a flat file"),
        (["x\x7fa file\n"], "a file"),
        (["no no\x17yes\n"], "no yes"),
        (["draft", ESCAPE, "\n"], "SQLite"),
    ],
)
def test_one_option_is_chosen_by_arrow_number_name_or_own_words(typed: Iterable[str], words: str) -> None:
    assert answered(DATABASE, *typed) == words


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ([" ", DOWN, DOWN, " ", "\n"], "Cheese, Chili"),
        ([" ", " ", DOWN, " \n"], "Olives"),
        (["1,3\n"], "Cheese, Chili"),
    ],
)
def test_several_options_are_marked_with_space(typed: Iterable[str], words: str) -> None:
    assert answered(TOPPINGS, *typed) == words


def test_nothing_marked_is_no_answer() -> None:
    menu = press(TOPPINGS, "\n")

    assert menu.outcome == "open"
    assert "Space" in menu.error


def test_escape_drops_the_draft_first_and_leaves_the_question_open_then() -> None:
    menu = press(DATABASE, "a draft", ESCAPE)
    assert (menu.outcome, menu.draft) == ("open", "")

    menu = menu.press("escape")
    assert (menu.outcome, menu.answer) == ("later", None)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [6, 12, 24])
def test_the_menu_fits_and_always_shows_the_option_that_enter_would_choose(width: int, height: int) -> None:
    menu = press(MANY, DOWN * 41)

    lines, (row, column) = render_menu(menu, UNICODE, width, height)

    assert max(line.cell_len for line in lines) < width
    assert len(lines) < max(height, 9)
    assert any("❯ 41. Option 40" in line.plain for line in lines)
    assert (row, column) == (len(lines) - 1, 2)


def test_a_description_is_wrapped_between_words() -> None:
    text = "stored in a directory that synchronizes"
    question = Question(id="q", text="?", options=(Option(label="File", description=text),))

    lines, _ = render_menu(Menu.of(question), UNICODE, 24, 24)

    words = {word for line in lines for word in line.plain.split()}
    assert set(text.split()) <= words


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_a_hint_is_in_one_row(width: int) -> None:
    rows = [line.plain for line in render_menu(Menu.of(TOPPINGS), UNICODE, width, 24)[0]]

    for hint in ("↑↓ choose", "Space marks", "Enter answers", "or type your own answer", "Esc: later"):
        assert any(hint in row for row in rows), rows


def test_hostile_options_and_keys_cannot_control_the_terminal() -> None:
    question = Question(id="q", text="?", options=(Option(label=EVIL, description=EVIL),))

    lines, _ = render_menu(press(question, EVIL), UNICODE, 80, 24)

    assert not any(char in "\x1b\x07\x9b\u202e" for line in lines for char in line.plain)


@given(st.text())
def test_no_input_can_put_a_control_character_into_the_draft(text: str) -> None:
    assert press(DATABASE, text).draft.isprintable()


@given(st.text(alphabet="ab \n漢👍"), st.integers(2, 30))
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    rows = wrapped(text, width)

    assert "".join(rows) == text.replace("\n", "")
    assert all(cell_len(row.rstrip(" ")) <= width for row in rows)
