"""Other processes reach the run, and each of their messages is handled once."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gsd_core.errors import Fenced, JournalError
from gsd_core.journal.inbox import put
from gsd_core.journal.schema import InboxItem
from gsd_core.journal.store import Journal

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path: Path) -> Journal:
    return Journal.open(path, clock=lambda: NOW)


def test_an_item_waits_until_it_is_consumed(path: Path, journal: Journal) -> None:
    with journal:
        first = put(path, "answer", {"question": "q-1"}, "ada", clock=lambda: NOW)
        second = put(path, "stop", {}, "bob", clock=lambda: NOW)

        assert journal.take_inbox() == (
            InboxItem(id=first, kind="answer", data={"question": "q-1"}, by="ada", at=NOW),
            InboxItem(id=second, kind="stop", data={}, by="bob", at=NOW),
        )
        journal.consumed([first])
        assert [item.id for item in journal.take_inbox()] == [second]


def test_an_item_outlives_the_run_that_did_not_take_it(path: Path, journal: Journal) -> None:
    journal.close()
    put(path, "answer", {}, "ada")

    with Journal.open(path, clock=lambda: NOW) as later:
        assert [item.by for item in later.take_inbox()] == ["ada"]


def test_putting_the_same_key_again_has_no_effect(path: Path, journal: Journal) -> None:
    with journal:
        first = put(path, "answer", {"text": "yes"}, "ada", key="k")
        again = put(path, "answer", {"text": "no"}, "ada", key="k")

        assert again == first
        assert [item.data for item in journal.take_inbox()] == [{"text": "yes"}]
        journal.consumed([first])
        put(path, "answer", {"text": "no"}, "ada", key="k")
        assert journal.take_inbox() == ()


def test_a_fact_and_the_item_that_it_settles_are_one_transaction(path: Path, journal: Journal) -> None:
    with journal:
        item = put(path, "answer", {}, "ada")
        journal.append("question.answered", {}, run="r", consumes=[item])

        assert journal.take_inbox() == ()
        assert journal.last_seq() == 1


def test_a_rejected_fact_does_not_consume_the_item(path: Path, journal: Journal) -> None:
    with journal, Journal.open(path, clock=lambda: NOW) as newer:
        item = put(path, "answer", {}, "ada")
        newer.raise_epoch("r")

        with pytest.raises(Fenced):
            journal.append("question.answered", {}, run="r", consumes=[item])
        assert [left.id for left in newer.take_inbox()] == [item]


def test_many_processes_may_put_while_the_run_writes(path: Path, journal: Journal) -> None:
    code = (
        "import sys; from pathlib import Path; from gsd_core.journal.inbox import put\n"
        "for n in range(20): put(Path(sys.argv[1]), 'answer', {'n': n}, sys.argv[2])"
    )
    root = str(Path(__file__).parents[2])
    with journal:
        others = [
            subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=root)
            for name in ("a", "b", "c")
        ]
        while any(other.poll() is None for other in others):
            journal.append("x", {}, run="r")

        assert [other.returncode for other in others] == [0, 0, 0]
        assert sorted((item.by, item.data["n"]) for item in journal.take_inbox()) == [
            (name, number) for name in ("a", "b", "c") for number in range(20)
        ]


def test_without_a_journal_nothing_can_be_put(path: Path) -> None:
    with pytest.raises(JournalError, match="no journal"):
        put(path, "answer", {}, "ada")

    assert not path.exists()
