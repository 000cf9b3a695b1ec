"""How often the whole journal is read: for what was done so far, and for the summary, not for the state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.run.last_run import read_last_run
from tests.cli.bench import call

from . import harness as h

pytestmark = pytest.mark.slow


@pytest.fixture
def full_reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that gets the journal's path each time a run's facts are read from the first one on."""
    reads: list[Path] = []
    events = Journal.events

    def counted(self: Journal, after: int = 0, **which: Any) -> Iterator[Record]:
        if after == 0 and which.get("kinds") is None:
            reads.append(self.path)
        return events(self, after, **which)

    monkeypatch.setattr(Journal, "events", counted)
    return reads


def finished(root: Path) -> Path:
    h.do(h.request(h.repository(root), h.one_phase(), given=h.idea()))
    return root


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_command_reads_the_journal_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_reads: list[Path], command: str
) -> None:
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    root = finished(tmp_path / "project")
    full_reads.clear()

    result = call(
        command,
        "-C",
        root,
        "-p",
        "gsd_plugins.rehearsal.fake",
        "--agent",
        "fake",
        "--no-input",
        "--max-budget-turns",
        "9",
    )

    assert result.exit_code == 0, result.stderr
    assert full_reads == [h.journal(root)] * 2


def test_a_run_reads_the_journal_for_what_it_did_so_far(tmp_path: Path, full_reads: list[Path]) -> None:
    root = finished(tmp_path / "project")
    full_reads.clear()

    end = h.do(h.request(root, h.one_phase()))

    assert (end.outcome, len(full_reads)) == ("done", 1)


def test_what_another_process_wrote_before_the_lock_was_taken_is_read(
    tmp_path: Path, full_reads: list[Path]
) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))
    with Journal.open(h.journal(root), clock=h.now, writable=False) as journal:
        early = read_last_run(journal)
    h.do(h.request(root, h.one_phase(question=True)))
    agent = h.Watched(h.one_phase(question=True))
    full_reads.clear()

    end = h.do(evolve(h.request(root, agent), last_run=early))

    assert (end.outcome, agent.tasks, len(full_reads)) == ("done", [], 1)
