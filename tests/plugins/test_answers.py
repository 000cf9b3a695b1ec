"""Answers from files and from standard input, through the hook."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core import Answer, ConfigError, Inquiry, Option, Question, bind_settings
from gsd_plugins import answers as plugin
from gsd_plugins.answers import AnswersSettings

DATABASE = Question(
    id="q-db",
    text="Which database shall it use?",
    header="Database",
    options=(Option(label="SQLite"), Option(label="PostgreSQL")),
)
NAME = Question(id="q-name", text="What is it called?", header="Name")
TOPICS = Question(
    id="q-topics", text="Which topics?", multiple=True, options=(Option(label="a"), Option(label="b"))
)


def look_up(source: str, *questions: Question) -> list[Answer] | None:
    inquiry = Inquiry(questions=questions or (DATABASE,))
    with bind_settings({AnswersSettings: AnswersSettings(answers=source)}):
        found = asyncio.run(plugin.look_up(inquiry))
    return list(found) if found is not None else None


def write_answers(folder: Path, content: object, name: str = "answers.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def test_without_the_setting_nothing_is_answered() -> None:
    assert look_up("") is None


@pytest.mark.parametrize(
    "key",
    ["q-db", "Which database shall it use?", "which  database SHALL it use?", "database", "/^Which data/"],
)
def test_a_question_is_found_by_id_text_header_and_regular_expression(key: str, tmp_path: Path) -> None:
    source = write_answers(tmp_path, {"something else": "no", key: "postgresql"})

    found = look_up(source)

    assert found == [Answer(question="q-db", chosen=("PostgreSQL",), by=source, how="file")]


@pytest.mark.parametrize(
    ("key", "how"),
    [("q-look", "file"), ("Is it blue?", "file"), ("Please check", "policy"), ("/blue/", "policy")],
)
def test_a_check_is_looked_at_only_by_who_names_it(key: str, how: str, tmp_path: Path) -> None:
    look = Question(
        id="q-look",
        text="Is it blue?",
        header="Please check",
        options=(Option(label="Works"), Option(label="Does not work")),
        inspection=True,
    )

    found = look_up(write_answers(tmp_path, {key: "Works"}), look)

    assert found is not None
    assert [(answer.chosen, answer.how) for answer in found] == [(("Works",), how)]


def test_a_part_of_the_text_does_not_identify_a_question(tmp_path: Path) -> None:
    assert look_up(write_answers(tmp_path, {"Which data": "SQLite"})) is None


def test_a_text_that_is_not_an_option_is_free_text(tmp_path: Path) -> None:
    found = look_up(write_answers(tmp_path, {"q-db": "DuckDB, please"}))

    assert found is not None
    assert (found[0].chosen, found[0].text) == ((), "DuckDB, please")


def test_several_options_are_chosen_by_a_list(tmp_path: Path) -> None:
    found = look_up(write_answers(tmp_path, {"Which topics?": ["a", "b"]}), TOPICS)

    assert found is not None
    assert found[0].chosen == ("a", "b")


def test_an_answer_may_have_both_options_and_text(tmp_path: Path) -> None:
    found = look_up(write_answers(tmp_path, {"q-topics": {"chosen": ["a"], "text": "and c"}}), TOPICS)

    assert found is not None
    assert (found[0].chosen, found[0].text) == (("a",), "and c")


def test_only_questions_in_the_file_are_answered(tmp_path: Path) -> None:
    found = look_up(write_answers(tmp_path, {"Name": "abacus"}), DATABASE, NAME)

    assert found is not None
    assert [answer.question for answer in found] == ["q-name"]


def test_answers_may_be_toml(tmp_path: Path) -> None:
    source = write_answers(
        tmp_path, '"Which database shall it use?" = "SQLite"\nName = "abacus"\n', "answers.toml"
    )

    found = look_up(source, DATABASE, NAME)

    assert found is not None
    assert [answer.words for answer in found] == ["SQLite", "abacus"]


def test_answers_may_be_json_lines(tmp_path: Path) -> None:
    lines = '{"question": "q-db", "chosen": ["SQLite"]}\n\n{"question": "Name", "text": "abacus"}\n'

    found = look_up(write_answers(tmp_path, lines), DATABASE, NAME)

    assert found is not None
    assert [answer.words for answer in found] == ["SQLite", "abacus"]


def test_a_single_json_line_is_an_answer_and_not_a_mapping(tmp_path: Path) -> None:
    found = look_up(write_answers(tmp_path, '{"question": "q-db", "chosen": ["SQLite"]}\n'))

    assert found is not None
    assert found[0].words == "SQLite"


def test_a_file_may_answer_questions_that_only_a_human_may_answer(tmp_path: Path) -> None:
    action = Question(id="q-a", text="Buy the domain", options=(Option(label="done"),), human_only=True)

    found = look_up(write_answers(tmp_path, {"Buy the domain": "done"}), action)

    assert found is not None
    assert (found[0].chosen, found[0].how) == (("done",), "file")


def test_an_empty_file_answers_nothing(tmp_path: Path) -> None:
    assert look_up(write_answers(tmp_path, "")) is None
    assert look_up(write_answers(tmp_path, {})) is None


@pytest.mark.parametrize(
    ("content", "name", "place"),
    [
        ('{"q-db": "a",\n "b"\n}', "a.json", "line 3"),
        ("no json at all", "a.json", "line 1"),
        ('{"question": "q-db", "text": "a"}\n{"question": \n', "a.jsonl", "line 2"),
        ('{"question": "q-db", "text": "a"}\n["x"]\n', "a.jsonl", "line 2"),
        ('a = "b"\nc = \n', "a.toml", "line 2"),
        ('{"q-db": null}', "a.json", "'q-db'"),
        ('{"": "x"}', "a.json", "question is empty"),
        ('{"/(/": "x"}', "a.json", "not a valid regular expression"),
        ('{"q-db": {"choice": "x"}}', "a.json", "'q-db'"),
        ('[{"question": "q-db", "text": 3}, {"question": 4}]', "a.json", "entry 2"),
    ],
)
def test_an_error_in_a_file_names_its_place(content: str, name: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        look_up(write_answers(tmp_path, content, name))

    assert place in str(error.value)


def test_a_missing_a_binary_and_a_huge_file_are_errors(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    huge = tmp_path / "huge"
    huge.write_bytes(b" " * 1_000_001)

    with pytest.raises(ValueError, match="No such file"):
        look_up(str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="not UTF-8"):
        look_up(str(binary))
    with pytest.raises(ValueError, match="larger than 1 MB"):
        look_up(str(huge))


def test_an_answer_that_fits_no_option_is_an_error(tmp_path: Path) -> None:
    strict = Question(
        id="q-s", text="Yes?", options=(Option(label="yes"), Option(label="no")), free_text=False
    )

    with pytest.raises(ConfigError, match="invalid answer to 'Yes\\?'") as error:
        look_up(write_answers(tmp_path, {"q-s": "maybe"}), strict)

    assert error.value.hint == "options: yes, no"


def piped(lines: str, *questions: Question) -> list[list[Answer] | None]:
    """Ask each question in turn, with *lines* on a pipe as standard input."""
    reading, writing = os.pipe()
    os.write(writing, lines.encode())
    os.close(writing)
    settings = AnswersSettings(answers="-")
    settings.stdin.descriptor = reading

    async def ask(question: Question) -> list[Answer] | None:
        found = await plugin.look_up(Inquiry(questions=(question,)))
        return list(found) if found is not None else None

    async def ask_all() -> list[list[Answer] | None]:
        return [await ask(question) for question in questions]

    try:
        with bind_settings({AnswersSettings: settings}):
            return asyncio.run(ask_all())
    finally:
        os.close(reading)


def words(found: list[list[Answer] | None]) -> list[str | None]:
    return [answers[0].words if answers else None for answers in found]


def test_lines_of_standard_input_answer_in_any_order() -> None:
    lines = '{"question": "Name", "text": "abacus"}\n{"question": "q-db", "chosen": ["SQLite"]}'

    assert words(piped(lines, DATABASE, NAME)) == ["SQLite", "abacus"]


def test_a_line_is_used_up_by_its_answer_and_the_end_of_input_declines() -> None:
    lines = '{"question": "Name", "text": "one"}\n{"question": "Name", "text": "two"}\n'

    assert words(piped(lines, NAME, NAME, NAME)) == ["one", "two", None]


def test_an_error_in_a_line_names_its_number() -> None:
    with pytest.raises(ConfigError, match="stdin, line 2"):
        piped('{"question": "x", "text": "y"}\nnonsense\n', NAME)


def test_waiting_for_a_line_can_be_cancelled_and_repeated() -> None:
    reading, writing = os.pipe()
    settings = AnswersSettings(answers="-")
    settings.stdin.descriptor = reading

    async def ask() -> str:
        waiting = asyncio.create_task(plugin.look_up(Inquiry(questions=(NAME,))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        both = [asyncio.create_task(plugin.look_up(Inquiry(questions=(q,)))) for q in (NAME, DATABASE)]
        await asyncio.sleep(0)
        os.write(writing, b'{"question": "q-db", "text": "DuckDB"}\n{"question": "Name", "text": "n"}\n')
        return ", ".join(answers[0].words for answers in await asyncio.gather(*both) if answers)

    try:
        with bind_settings({AnswersSettings: settings}):
            assert asyncio.run(asyncio.wait_for(ask(), 10)) == "n, DuckDB"
    finally:
        os.close(reading)
        os.close(writing)


ASK = """
import asyncio
from gsd_core import Inquiry, Question, bind_settings
from gsd_plugins.answers import AnswersSettings, look_up
with bind_settings({AnswersSettings: AnswersSettings(answers="-")}):
    found = asyncio.run(look_up(Inquiry(questions=(Question(id="q", text="Name?"),))))
print(found[0].words if found else "declined")
"""


@pytest.mark.parametrize(
    ("content", "printed"), [('{"question": "Name?", "text": "n"}\n', "n"), ("", "declined")]
)
def test_standard_input_may_be_a_regular_file(content: str, printed: str, tmp_path: Path) -> None:
    with Path(write_answers(tmp_path, content)).open() as stdin:
        asked = subprocess.run(
            [sys.executable, "-c", ASK],
            stdin=stdin,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
        )

    assert asked.stdout.strip() == printed


def test_the_settings_are_contributed() -> None:
    assert list(plugin.settings()) == [AnswersSettings]
