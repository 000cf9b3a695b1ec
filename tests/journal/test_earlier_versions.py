"""Journals that earlier versions wrote are read: what was paid, what was done, and what is due.

``data/DATE.sql`` is the dump of a journal as gsd was at that date, of a rehearsal of one phase of three,
without the activity of its agents. To add one, run that version, dump its ``journal.db``, and replace the
paths.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.journal.store import Journal
from gsd_core.machine.due import Start, due
from gsd_core.machine.fold import FACT_KINDS, fold
from gsd_core.machine.state import State
from tests.run.harness import git

DUMPS = sorted((Path(__file__).parent / "data").glob("*.sql"))


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the journal of an earlier version, in a repository."""
    git(tmp_path, "init", "-q")
    found = tmp_path / ".git" / "gsd" / "journal.db"
    found.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(found)) as database:
        database.executescript(request.param.read_text("utf-8"))
    return found


def test_the_state_is_that_of_a_run_whose_first_phase_is_done(file: Path) -> None:
    with Journal.open(file, clock=lambda: datetime.now(UTC)) as journal:
        facts = list(journal.events(facts_only=True))
        assert {fact.kind for fact in facts} & FACT_KINDS >= {
            "run.opened",
            "question.answered",
            "step.result",
        }
        state = fold(State(), facts)

    assert (state.closed, state.exit, state.options.phases) == ("done", 0, ("1",))
    done = {step for step, record in state.steps.items() if record.completed}
    assert done >= {"init", "1/discuss", "1/plan", "1/execute/01-01", "1/verify", "1/complete"}
    [record] = state.inquiries.values()
    assert [answer.words.endswith("(Recommended)") for answer in record.answers.values()] == [True]
    assert not record.open
    # What the run would go on with.
    again = evolve(state, closed=None, options=evolve(state.options, phases=None))
    [item, *_] = due(again)
    assert isinstance(item, Start)
    assert str(item.step) == "2/discuss"


@pytest.mark.slow
def test_what_is_shown_is_what_was_done(file: Path) -> None:
    root = file.parents[2]

    def shown(*command: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_core", "-C", str(root), *command, "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))

    status = shown("status")
    assert (status["status"], status["reason"]) == ("done", "1 phase complete")
    cost = shown("cost", "--all")["total"]
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute("SELECT data FROM event WHERE kind = 'agent.closed'").fetchall()
    usages: list[dict[str, Any]] = [json.loads(data)["usage"] or {} for (data,) in rows]
    paid = [Decimal(str(usage.get("dollars") or 0)) for usage in usages]
    assert (cost["calls"], Decimal(cost["dollars"])) == (len(paid), sum(paid))
    assert shown("log")
