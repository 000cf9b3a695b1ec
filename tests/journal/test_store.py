"""What is recorded stays recorded, in order, whatever happens to the process or the disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from gsd_core.codec import structure
from gsd_core.errors import Fenced, JournalError
from gsd_core.journal import schema, store
from gsd_core.journal.schema import MAX_FACT, MOVE_AWAY, Upcaster
from gsd_core.journal.store import Journal, damage_reported
from gsd_core.machine.facts import Record
from gsd_core.model.usage import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gsd" / "journal.db"


def writer(path: Path) -> Journal:
    return Journal.open(path, clock=lambda: NOW)


def reader(path: Path) -> Journal:
    return Journal.open(path, clock=lambda: NOW, writable=False)


def kinds(journal: Journal, **query: Any) -> list[str]:
    return [record.kind for record in journal.events(**query)]


def test_a_fact_comes_back_as_it_was(path: Path) -> None:
    with writer(path) as journal:
        epoch = journal.raise_epoch("r-1")
        data: Mapping[str, Any] = {"text": "ü\ud800\n", "n": [1, None, {"x": True}]}
        seq = journal.append("attempt.started", data, run="r-1", step="1/plan", attempt=2, v=1)

        assert list(journal.events()) == [
            Record(
                seq=seq,
                run="r-1",
                epoch=epoch,
                at=NOW,
                kind="attempt.started",
                v=1,
                step="1/plan",
                attempt=2,
                data=data,
            )
        ]


def test_facts_are_visible_to_another_process_at_once(path: Path) -> None:
    with writer(path) as journal, reader(path) as other:
        assert journal.append("a", {}, run="r") == 1
        assert kinds(other) == ["a"]
        assert journal.append("b", {}, run="r") == 2
        assert kinds(other, after=1) == ["b"]
        assert other.last_seq() == journal.last_seq() == 2


def test_records_are_selected_by_cursor_run_and_kind(path: Path) -> None:
    with writer(path) as journal:
        journal.append("a", {}, run="r-1")
        journal.append("b", {}, run="r-2")
        journal.activity("log.line", {}, run="r-1")
        journal.append("unknown.kind", {}, run="r-1")

        assert kinds(journal) == ["a", "b", "log.line", "unknown.kind"]
        assert kinds(journal, after=2) == ["log.line", "unknown.kind"]
        assert kinds(journal, run="r-1", facts_only=True) == ["a", "unknown.kind"]
        assert kinds(journal, kinds=["a", "b"]) == ["a", "b"]
        assert kinds(journal, kinds=[]) == []


def test_more_records_than_fit_a_batch_come_in_order_while_others_are_appended(path: Path) -> None:
    with writer(path) as journal:
        for _ in range(2500):
            journal.activity("log.line", {}, run="r")
        journal.flush()
        seen: list[int] = []
        for record in journal.events():
            seen.append(record.seq)
            if record.seq == 2000:
                journal.append("late", {}, run="r")

    assert seen == list(range(1, 2502))


def test_activity_is_on_disk_before_the_next_fact(path: Path) -> None:
    with writer(path) as journal, reader(path) as other:
        expected = journal.activity("agent.activity", {"n": 1}, run="r")
        fact = journal.append("a", {}, run="r")

        assert kinds(other) == ["agent.activity", "a"]
        assert (expected, fact) == (1, 2)


def test_activity_is_committed_without_another_fact(path: Path) -> None:
    with writer(path) as journal, reader(path) as other:
        journal.activity("log.line", {}, run="r")
        deadline = datetime.now(UTC) + timedelta(seconds=10)
        while not other.last_seq():
            assert datetime.now(UTC) < deadline

        assert kinds(other) == ["log.line"]


def test_activity_is_on_disk_after_closing(path: Path) -> None:
    with writer(path) as journal:
        journal.activity("log.line", {}, run="r")

    with reader(path) as other:
        assert kinds(other) == ["log.line"]


def test_a_fact_cannot_be_noted_as_activity(path: Path) -> None:
    with writer(path) as journal, pytest.raises(ValueError, match="append"):
        journal.activity("step.result", {}, run="r")


def test_data_that_is_not_json_is_rejected_before_anything_is_written(path: Path) -> None:
    with writer(path) as journal:
        for data in ({"path": Path("x")}, {"n": float("nan")}):
            with pytest.raises(JournalError, match="not JSON"):
                journal.append("a", data, run="r")

        assert journal.last_seq() == 0


def test_a_process_with_an_old_epoch_can_no_longer_write_about_the_run(path: Path) -> None:
    with writer(path) as old, writer(path) as new:
        assert old.raise_epoch("r-1") == 1
        old.append("a", {}, run="r-1")
        assert new.raise_epoch("r-1") == 2
        old.activity("log.line", {}, run="r-1")

        with pytest.raises(Fenced, match="epoch 2"):
            old.append("b", {}, run="r-1")
        old.append("other", {}, run="r-2")
        new.append("c", {}, run="r-1")

        assert [(record.kind, record.epoch) for record in new.events()] == [
            ("a", 1),
            ("other", 0),
            ("c", 2),
        ]


def test_activity_before_the_epoch_is_raised_does_no_harm(path: Path) -> None:
    with writer(path) as journal:
        journal.activity("log.line", {}, run="r")
        journal.raise_epoch("r")

        assert journal.append("a", {}, run="r") == 2


def test_threads_may_write_at_once(path: Path) -> None:
    with writer(path) as journal:

        def write() -> None:
            for _ in range(50):
                journal.activity("log.line", {}, run="r")
                journal.append("a", {}, run="r")

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [record.seq for record in journal.events()] == list(range(1, 401))


def test_a_missing_journal_reads_as_empty_and_is_not_created(path: Path) -> None:
    with reader(path) as journal:
        assert list(journal.events()) == []
        assert journal.last_seq() == 0
        assert journal.take_inbox() == ()
        with pytest.raises(JournalError, match="not open"):
            journal.append("a", {}, run="r")

    assert not path.parent.exists()


def test_a_reader_writes_nothing(path: Path) -> None:
    writer(path).close()
    before = path.read_bytes()
    with reader(path) as journal, pytest.raises(JournalError, match="reading only"):
        journal.append("a", {}, run="r")

    assert path.read_bytes() == before


@pytest.mark.parametrize("open_", [writer, reader])
def test_an_empty_file_is_damage_because_a_journal_is_never_created_in_parts(
    path: Path, open_: Callable[[Path], Journal]
) -> None:
    path.parent.mkdir()
    path.touch()

    with pytest.raises(JournalError, match="is empty") as caught:
        open_(path)
    assert caught.value.hint.startswith("move it away")
    assert path.read_bytes() == b""


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_may_read_a_journal_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with writer(path) as journal:
            journal.append("a", {}, run="r")
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)

    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}


def test_old_activity_is_dropped_and_facts_and_usage_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_ACTIVITY", 100)
    with writer(path) as journal:
        journal.activity("agent.activity", {"text": "first", "usage": {"turns": 1}}, run="r")
        for number in range(500):
            journal.activity("agent.activity", {"text": str(number)}, run="r")
            if number % 10 == 0:
                journal.append("a", {"n": number}, run="r")
        for number in range(5):
            journal.activity("agent.activity", {"text": str(number)}, run="other")
        journal.flush()
        notes = [record for record in journal.events(run="r") if record.kind == "agent.activity"]
        others = list(journal.events(run="other"))
        facts = [record.data["n"] for record in journal.events(facts_only=True)]
        last = journal.append("b", {}, run="r")

    assert 100 <= len(notes) <= 130
    assert notes[0].data["usage"] == {"turns": 1}
    assert notes[-1].data["text"] == "499"
    assert facts == list(range(0, 500, 10))
    assert len(others) == 5
    assert last == 1 + 500 + 50 + 5 + 1


@pytest.mark.parametrize("open_", [writer, reader])
def test_a_file_that_is_no_database_is_not_changed(path: Path, open_: Callable[[Path], Journal]) -> None:
    path.parent.mkdir()
    path.write_text("This is text, and it is longer than SQLite's header.\n" * 20)
    before = path.read_bytes()

    with pytest.raises(JournalError, match=str(path)) as caught:
        open_(path)

    assert caught.value.hint.startswith("move it away")
    assert path.read_bytes() == before


@pytest.mark.parametrize("open_", [writer, reader])
def test_another_database_is_not_changed(path: Path, open_: Callable[[Path], Journal]) -> None:
    path.parent.mkdir()
    sql(path, "CREATE TABLE cookies(x)")
    before = path.read_bytes()

    with pytest.raises(JournalError, match="cookies"):
        open_(path)

    assert path.read_bytes() == before


def test_a_damaged_file_is_an_error_with_a_hint(path: Path) -> None:
    with writer(path) as journal:
        for _ in range(200):
            journal.append("a", {"text": "x" * 500}, run="r")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    with pytest.raises(JournalError, match="damaged") as caught, reader(path) as journal:
        kinds(journal)

    assert caught.value.hint.startswith("move it away")


def test_a_damaged_record_is_named(path: Path) -> None:
    with writer(path) as journal:
        journal.append("a", {}, run="r")
    sql(path, "UPDATE event SET data = '{\"cut of'")

    with reader(path) as journal, pytest.raises(JournalError, match="damaged at seq 1"):
        kinds(journal)


def test_a_newer_journal_can_be_read_and_is_not_written(path: Path) -> None:
    with writer(path) as journal:
        journal.append("a", {}, run="r")
    sql(path, "UPDATE meta SET schema = 2, created_by = 'gsd 9'")
    sql(path, "ALTER TABLE event ADD COLUMN later TEXT")

    with pytest.raises(JournalError, match="gsd 9") as caught:
        writer(path)
    with reader(path) as journal:
        assert kinds(journal) == ["a"]
    assert caught.value.hint.startswith("upgrade")


def test_old_payloads_are_upgraded_version_by_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with writer(path) as journal:
        journal.append("a", {"n": 1}, run="r")
        journal.append("a", {"count": 2}, run="r", v=2)
        journal.append("b", {"n": 1}, run="r")
    upcasters: Mapping[tuple[str, int], Upcaster] = {
        ("a", 1): lambda data: {"count": data["n"]},
        ("a", 2): lambda data: {**data, "unit": "x"},
    }

    monkeypatch.setattr(schema, "UPCASTERS", upcasters)
    with reader(path) as journal:
        assert [(record.v, record.data) for record in journal.events()] == [
            (3, {"count": 1, "unit": "x"}),
            (3, {"count": 2, "unit": "x"}),
            (1, {"n": 1}),
        ]


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(JournalError, match="journal"):
        writer(tmp_path / "file" / "journal.db")


def test_closing_twice_is_fine(path: Path) -> None:
    journal = writer(path)
    journal.close()
    journal.close()

    with pytest.raises(JournalError, match="not open"):
        journal.append("a", {}, run="r")


FULL_DISK = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from gsd_core.errors import JournalError
from gsd_core.journal.store import Journal
journal = Journal.open(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
written = 0
try:
    while True:
        written = journal.append("a", {"text": "x" * 5000}, run="r")
except JournalError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(written, journal.append("b", {}, run="r"))
"""


def test_a_full_disk_is_an_error_and_what_was_recorded_stays(path: Path) -> None:
    """A limit on the size of files is as close as a test gets to a full disk."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    written, after = map(int, run(FULL_DISK, str(path)).split())

    with reader(path) as journal:
        assert after == written + 1
        assert kinds(journal) == ["a"] * written + ["b"]
        assert written > 10


KILLED = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from gsd_core.journal.store import Journal
journal = Journal.open(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
journal.raise_epoch("r")
while True:
    journal.activity("log.line", {}, run="r")
    print(journal.append("a", {}, run="r"), flush=True)
"""


def test_no_fact_is_lost_to_a_kill(path: Path) -> None:
    reported: list[int] = []
    for round_ in range(1, 6):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ROOT},
            text=True,
        )
        assert process.stdout is not None
        reported += [int(process.stdout.readline()) for _ in range(20 * round_)]
        process.send_signal(signal.SIGKILL)
        # The last line may have been cut by the kill.
        reported += [
            int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")
        ]
        process.communicate()

    with reader(path) as journal:
        facts = [record.seq for record in journal.events(facts_only=True)]
        assert [record.seq for record in journal.events()] == list(range(1, journal.last_seq() + 1))
    assert set(reported) <= set(facts)
    assert len(facts) - len(reported) <= 5


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def sql(path: Path, statement: str) -> None:
    connection: Any = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("key", ["NULL", "'x'", "x'ff'"])
def test_a_digest_ends_for_rows_of_any_type_and_differs_for_other_rows(path: Path, key: str) -> None:
    with writer(path):
        pass
    database: Any = apsw.Connection(str(path))
    database.execute("DROP TABLE inbox")
    database.execute("CREATE TABLE inbox(id, key, at, kind, data, by, consumed)")
    digests: list[str] = []
    for data in ("x'00'", "x'01'"):
        # More than a batch of rows.
        values = ", ".join([f"({key}, 1, 2, 3, {data}, 5, 6)"] * 1100)
        database.execute(f"DELETE FROM inbox; INSERT INTO inbox VALUES {values}")
        with reader(path) as journal:
            digests.append(journal.digest())
    database.close()

    assert digests[0] != digests[1]


def test_a_fact_that_is_too_large_is_refused_and_what_was_recorded_stays(path: Path) -> None:
    with writer(path) as journal:
        journal.append("run.started", {}, run="r-1")
        # As ASCII, each of these characters takes six bytes.
        with pytest.raises(JournalError, match=r"'attempt\.started' has 12\.6 MB of data") as caught:
            journal.append("attempt.started", {"found": "\u00e9" * (MAX_FACT // 6)}, run="r-1")
        journal.append("attempt.started", {"found": "\u00e9" * (MAX_FACT // 6 - 10)}, run="r-1")

    assert ".gitignore" in caught.value.hint
    with reader(path) as journal:
        assert kinds(journal) == ["run.started", "attempt.started"]


def test_sqlite_has_no_bug_that_corrupts_a_wal_file_with_several_writers() -> None:
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_a_journal_that_cannot_be_read_now_is_not_called_damaged(path: Path) -> None:
    busy = JournalError(f"cannot read {path}: database is locked", hint="try again")
    with pytest.raises(JournalError, match="locked") as raised, damage_reported(path):
        raise busy
    assert raised.value is busy

    with pytest.raises(JournalError, match=r"is damaged.*not a Usage") as raised, damage_reported(path):
        structure({"input_tokens": "many"}, Usage)
    assert raised.value.hint == MOVE_AWAY
