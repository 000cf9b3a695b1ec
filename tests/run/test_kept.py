"""What the journal keeps of the last run: it saves reading, and nobody else's is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.journal.store import Journal
from gsd_core.machine.state import State
from gsd_core.model.usage import Usage
from gsd_core.run.last_run import keep_run, kept_run, read_last_run
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals

from . import harness as h

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    return root


def opened(root: Path) -> Journal:
    return Journal.open(h.journal(root), clock=h.now)


def forge(journal: Journal) -> State:
    """Let the journal keep a state that its facts do not say, as the code of today would, and return it."""
    last = read_last_run(journal)
    forged = evolve(last.state, idea_name="forged.md")
    keep_run(journal, last.seq, forged, last.history)
    return forged


def test_of_a_run_only_the_facts_after_what_is_kept_are_read(project: Path) -> None:
    with opened(project) as journal:
        kept = kept_run(journal, project)
        assert kept is not None
        later = list(journal.events(kept.seq, facts_only=True))
        known, read = read_last_run(journal, project), read_last_run(journal)

    assert (kept.id, kept.history.run) == (read.id, read.id)
    assert 0 < kept.seq < known.seq
    assert known.unkept == len(later) < 7 < read.unkept
    assert (known.state, known.history) == (read.state, read.history)


def test_what_a_journal_keeps_is_believed_if_the_user_made_it(project: Path) -> None:
    with opened(project) as journal:
        forged = forge(journal)
        assert read_last_run(journal, project).state == forged
        assert read_last_run(journal).state.idea_name == "idea.md"
        journal.keep(0, "", "")


def test_what_came_with_a_folder_is_not_believed_and_is_gone_once_the_journal_is_trusted(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "somebody-else"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
    with opened(project) as journal:
        forge(journal)
        foreign = read_last_run(journal, project)
        KnownJournals(journals_folder()).add(journal, project, h.now())
        trusted = read_last_run(journal, project)

        assert foreign.state.idea_name == trusted.state.idea_name == "idea.md"
        assert journal.kept() == (0, "", "")


def test_what_is_kept_and_cannot_be_read_is_read_from_the_facts(project: Path) -> None:
    with opened(project) as journal:
        seq, made_by, _ = journal.kept()
        read = read_last_run(journal)
        for data in "", "{", "[]", '{"state": {}}', '{"state": {"run": 1}, "history": {}}':
            journal.keep(seq, made_by, data)

            assert kept_run(journal, project) is None, data
            assert read_last_run(journal, project) == read, data


def test_what_another_version_of_the_code_has_kept_is_not_believed(project: Path) -> None:
    with opened(project) as journal:
        seq, _, data = journal.kept()
        journal.keep(seq, "another", data)

        assert kept_run(journal, project) is None


def test_the_turns_of_a_call_in_progress_count_before_and_after_it_is_kept(project: Path) -> None:
    def turn(journal: Journal, tokens: int) -> None:
        used = {"input_tokens": tokens, "turns": 1}
        journal.activity("agent.activity", {"key": "k", "kind": "turn", "usage": used}, run=run, step="s")

    with opened(project) as journal:
        run = read_last_run(journal).id
        journal.raise_epoch(run)
        turn(journal, 1_000)  # of an earlier call with the same key
        journal.append("agent.opened", {"key": "k", "model": "m"}, run=run, step="s")
        turn(journal, 10)
        journal.flush()
        last = read_last_run(journal)
        keep_run(journal, last.seq, last.state, last.history)
        turn(journal, 5)
        journal.flush()

        for known in read_last_run(journal, project), read_last_run(journal):
            assert known.history.running == {"s k": Usage(input_tokens=15, turns=2)}
        assert json.loads(journal.kept()[2])["history"]["running"]
