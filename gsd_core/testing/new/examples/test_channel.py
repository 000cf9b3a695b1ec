"""Answer in the channel as a person would; the last tests do that in whole runs."""

from __future__ import annotations

import asyncio
import getpass
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import pytest
from gsd_core import Answer, Inquiry
from gsd_core.testing import an_event, an_inquiry
from gsd_core.testing.conformance import check_answer, check_on_event, check_settings
from gsd_core.testing.pytest_plugin import RunSmall, UseSettings

from . import channel as plugin

DATABASE = an_inquiry("Which database?", "SQLite", "PostgreSQL")
[QUESTION] = DATABASE.questions


@pytest.fixture
def folder(tmp_path: Path, gsd_use_settings: UseSettings) -> Path:
    """Return the folder of the questions."""
    gsd_use_settings(plugin.MyPluginSettings(folder=str(tmp_path / "questions")))
    return tmp_path / "questions"


def test_an_answer_in_the_folder_is_taken_with_the_name_of_who_gave_it(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{QUESTION.id}.answer").write_text("2\n")

    [answer] = check_answer(plugin, DATABASE)

    assert (answer.chosen, answer.how, answer.by) == (("PostgreSQL",), "human", getpass.getuser())


def test_an_invalid_answer_is_refused_with_the_reason_and_can_be_given_again(folder: Path) -> None:
    async def talk() -> Sequence[Answer] | None:
        asked = asyncio.create_task(plugin.ask_in_the_folder(DATABASE))
        await _exists(folder / f"{QUESTION.id}.question")
        (folder / f"{QUESTION.id}.answer").write_text("7\n")
        await _exists(folder / f"{QUESTION.id}.refused")
        (folder / f"{QUESTION.id}.answer").write_text("sqlite\n")
        return await asked

    [answer] = asyncio.run(talk()) or []

    assert answer.chosen == ("SQLite",)
    assert "no option 7" in (folder / f"{QUESTION.id}.refused").read_text()


def test_a_question_stays_when_the_run_stops_and_is_not_asked_twice(folder: Path) -> None:
    async def stopped() -> int:
        asked = asyncio.create_task(plugin.ask_in_the_folder(DATABASE))
        await _exists(folder / f"{QUESTION.id}.question")
        # Long enough to be asked again.
        await asyncio.sleep(2 * plugin.POLL_SECONDS)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        return (folder / f"{QUESTION.id}.question").stat().st_ino

    first = asyncio.run(stopped())
    second = asyncio.run(stopped())

    assert first == second


def test_a_question_that_was_answered_elsewhere_disappears(folder: Path) -> None:
    folder.mkdir()
    for name in ("one.question", "two.question", "two.answer", "three.question"):
        (folder / name).touch()

    check_on_event(plugin, an_event("question.answered", data={"question": "one"}))
    check_on_event(plugin, an_event("question.withdrawn", data={"questions": ["two"]}))

    assert [path.name for path in folder.iterdir()] == ["three.question"]


def test_permissions_are_declined_and_so_is_everything_without_a_folder(
    folder: Path, gsd_use_settings: UseSettings
) -> None:
    permission: Inquiry = attrs.evolve(DATABASE, kind="permission")
    assert check_answer(plugin, permission, declines=permission) == ()
    assert not folder.exists()

    gsd_use_settings(plugin.MyPluginSettings())
    assert check_answer(plugin, DATABASE, declines=DATABASE) == ()
    check_on_event(plugin, an_event("question.answered", data={"question": "one"}))


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)


def test_a_run_waits_for_the_answer_and_uses_it(tmp_path: Path, gsd_run: RunSmall) -> None:
    person = threading.Thread(target=_answer_in, args=(tmp_path / "questions", "2"))
    person.start()
    ran = gsd_run(
        my_plugin=plugin,
        sections={"my_plugin": {"folder": str(tmp_path / "questions")}},
    )
    person.join()

    [answered] = ran.named("question.answered")
    assert (ran.exit, ran.failures) == (0, ())
    assert (answered.data["by"], answered.data["via"]) == (getpass.getuser(), "my_plugin")
    assert "Database: PostgreSQL" in ran.files[".planning/phases/01-one/01-CONTEXT.md"]
    assert list((tmp_path / "questions").iterdir()) == []


def test_a_run_in_which_nobody_answers_ends_and_the_question_stays(tmp_path: Path, gsd_run: RunSmall) -> None:
    folder = tmp_path / "questions"

    with pytest.raises(AssertionError, match=r"Which database\?"):
        gsd_run(
            my_plugin=plugin,
            sections={"my_plugin": {"folder": str(folder)}},
            limit=timedelta(seconds=5),
        )

    assert [path.suffix for path in folder.iterdir()] == [".question"]


def _answer_in(folder: Path, words: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for question in folder.glob("*.question"):
            question.with_suffix(".answer").write_text(f"{words}\n")
            return
        time.sleep(0.05)


async def _exists(file: Path) -> None:
    for _ in range(1500):
        if await asyncio.to_thread(file.exists):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{file} did not appear")
