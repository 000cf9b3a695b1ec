"""A reader that begins beside a long journal gets its end, and the status of all of it."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gsd_core import Inquiry, Option, Question, project_details
from gsd_core.codec import unstructure
from gsd_core.errors import JournalError
from gsd_core.journal.store import Journal
from gsd_core.project import Project

NOTES = 300


def write(project: Path) -> Journal:
    """Write a question, then many notes of what an agent did."""
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    folder = project / ".git" / "gsd"
    folder.mkdir()
    journal = Journal.open(folder / "journal.db", clock=lambda: datetime.now(UTC))
    journal.append("run.started", {"idea": None, "workflow": "native", "base": {}}, run="r")
    question = Question(id="q-1", text="Which?", options=(Option(label="a"), Option(label="b")))
    inquiry = unstructure(Inquiry(kind="decision", step="init", questions=(question,)))
    journal.append("question.asked", {"inquiry": inquiry, "occasion": "q-1"}, run="r", step="init")
    for number in range(NOTES):
        journal.activity("agent.activity", {"kind": "text", "text": f"note {number}"}, run="r", step="init")
    journal.flush()
    return journal


def test_the_first_poll_returns_the_end_and_later_ones_everything(tmp_path: Path) -> None:
    with write(tmp_path) as journal:
        project = Project(tmp_path)
        assert [event.data["text"] for event in project.poll(backlog=2)] == ["note 298", "note 299"]
        assert [one["id"] for one in project.status()["questions"]] == ["q-1"]
        for number in range(5):
            journal.append(
                "agent.activity", {"kind": "text", "text": f"later {number}"}, run="r", step="init"
            )
        assert len(project.poll(backlog=2)) == 5
        assert len(Project(tmp_path).poll()) == NOTES + 7
        project.close()


def test_events_of_a_name_are_found_before_and_after_many_others(tmp_path: Path) -> None:
    with write(tmp_path) as journal:
        journal.append("step.skipped", {"reason": "not needed"}, run="r", step="1/discuss")
        details = Project(tmp_path).details()
        page = asyncio.run(details.events(limit=1, names=("run.started", "question.asked", "step.skipped")))
        assert ([event.name for event in page.events], page.more) == (["run.started"], True)
        rest = asyncio.run(details.events(after=page.next, names=("question.asked", "step.skipped")))
        assert [event.name for event in rest.events] == ["question.asked", "step.skipped"]
        last = asyncio.run(details.events(last=1, names=("agent.activity",)))
        assert [event.data["text"] for event in last.events] == [f"note {NOTES - 1}"]
        details.close()


def test_a_run_with_too_many_facts_is_refused_and_not_kept_and_the_next_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_details, "MAX_SIZE", 100 * project_details.FACT_SIZE)
    with write(tmp_path) as journal:
        details = Project(tmp_path).details()
        assert asyncio.run(details.events(last=1)).events
        for number in range(200):
            journal.append("of.another.version", {"number": number}, run="r")
        for _ in range(2):
            with pytest.raises(JournalError, match=r"too large to show: its last run has \d\d facts"):
                asyncio.run(details.events())
        before = journal.last_seq()
        journal.append("run.started", {"idea": None, "workflow": "native", "base": {}}, run="s")
        journal.append("step.skipped", {"reason": "not needed"}, run="s", step="1/discuss")
        page = asyncio.run(details.events(after=before))
        assert [event.name for event in page.events] == ["run.started", "step.skipped"]
        details.close()


def test_a_fact_that_is_too_large_is_not_kept_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_details, "MAX_SIZE", 100 * project_details.FACT_SIZE)
    with write(tmp_path) as journal:
        details = Project(tmp_path).details()
        journal.append("of.another.version", {"text": "x" * project_details.MAX_SIZE}, run="r")
        with pytest.raises(JournalError, match="too large to show"):
            asyncio.run(details.commits())
        details.close()


def test_states_on_the_way_are_few_however_many_facts_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_details, "CHECKPOINT_FACTS", 2)
    monkeypatch.setattr(project_details, "MAX_CHECKPOINTS", 4)
    with write(tmp_path) as journal:
        for number in range(100):
            journal.append("step.skipped", {"reason": f"reason {number}"}, run="r", step="1/discuss")
        details = Project(tmp_path).details()
        after, reasons = NOTES + 2, list[str]()
        while True:
            page = asyncio.run(details.events(after=after, limit=7))
            reasons += [event.data["reason"] for event in page.events]
            after = page.next
            if not page.more:
                break
        assert reasons == [f"reason {number}" for number in range(100)]
        assert len(vars(details)["_folded"].states) <= 4
        details.close()
