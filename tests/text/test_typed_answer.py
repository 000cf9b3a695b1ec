"""What a human types as an answer: numbers, labels, or their own words."""

from __future__ import annotations

import attrs
import pytest

from gsd_core import Answer, Option, Question, UserError, parse_typed_answer

DATABASE = Question(
    id="q-1", text="Which database?", options=(Option(label="SQLite"), Option(label="Postgre SQL"))
)
SEVERAL = attrs.evolve(DATABASE, multiple=True)
OPEN = Question(id="q-2", text="Which port?")


@pytest.mark.parametrize(
    ("question", "typed", "chosen", "text"),
    [
        (DATABASE, "1", ("SQLite",), ""),
        (DATABASE, " 2 ", ("Postgre SQL",), ""),
        (DATABASE, "postgre  sql", ("Postgre SQL",), ""),
        (DATABASE, "3 databases", (), "3 databases"),
        (SEVERAL, "2,1", ("Postgre SQL", "SQLite"), ""),
        (SEVERAL, "sqlite, 2, SQLite,", ("SQLite", "Postgre SQL"), ""),
        (SEVERAL, "1, but in memory", (), "1, but in memory"),
        (OPEN, "8080", (), "8080"),
    ],
)
def test_an_option_is_named_by_number_or_label(
    question: Question, typed: str, chosen: tuple[str, ...], text: str
) -> None:
    answer = parse_typed_answer(question, typed)

    assert (answer.question, answer.chosen, answer.text) == (question.id, chosen, text)


def test_a_label_that_is_a_number_comes_before_the_number_of_an_option() -> None:
    question = Question(id="q", text="How many?", options=(Option(label="2"), Option(label="1")))

    assert parse_typed_answer(question, "1").chosen == ("1",)


@pytest.mark.parametrize(
    ("question", "typed"), [(DATABASE, "0"), (DATABASE, "3"), (DATABASE, "-1"), (SEVERAL, "1, 3")]
)
def test_a_number_that_names_no_option_is_an_error_with_the_valid_range(
    question: Question, typed: str
) -> None:
    with pytest.raises(UserError, match="from 1 to 2") as caught:
        parse_typed_answer(question, typed)

    assert "1 (SQLite), 2 (Postgre SQL)" in caught.value.hint


@pytest.mark.parametrize("typed", ["", "  ", ","])
def test_an_empty_answer_is_an_error(typed: str) -> None:
    with pytest.raises(UserError):
        parse_typed_answer(attrs.evolve(SEVERAL, free_text=False), typed)


@pytest.mark.parametrize(
    ("option", "note"),
    [
        (Option(label="Star", recommended=True), " (recommended)"),
        (Option(label="Star (Recommended)", recommended=True), ""),
        (Option(label="Star"), ""),
    ],
)
def test_an_option_is_marked_as_recommended_once(option: Option, note: str) -> None:
    assert option.recommended_note == note


@pytest.mark.parametrize(
    ("chosen", "text", "expected"),
    [
        (("SQLite",), "", "SQLite: one file"),
        ((), "the first, in memory", "the first, in memory; option 1 is 'SQLite: one file'"),
        ((), "not 2", "not 2; option 2 is 'Postgre SQL'"),
        (("SQLite",), "later postgre sql", "SQLite: one file; later postgre sql; option 2 is 'Postgre SQL'"),
        ((), "12 files", "12 files"),
        ((), "2, but at most 1 file", "2, but at most 1 file; option 2 is 'Postgre SQL'"),
        ((), "option 2 please", "option 2 please; option 2 is 'Postgre SQL'"),
    ],
)
def test_an_answer_is_explained_with_the_options_that_it_chose_or_speaks_of(
    chosen: tuple[str, ...], text: str, expected: str
) -> None:
    options = (Option(label="SQLite", description="one file"), Option(label="Postgre SQL"))
    question = attrs.evolve(DATABASE, options=options)

    assert question.explain(Answer(question="q-1", chosen=chosen, text=text)) == expected
