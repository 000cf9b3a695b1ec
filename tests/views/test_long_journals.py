"""A reader that begins beside a long journal gets its end, and the status of all of it."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from gsd_core import Inquiry, Option, Question
from gsd_core.journal.codec import unstructure
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
