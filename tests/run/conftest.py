"""Every run of these tests keeps its state again and again, which has to be what all its facts add up to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_core.errors import JournalError
from gsd_core.journal.store import Journal
from gsd_core.run import runtime
from gsd_core.run.last_run import read_last_run

from . import harness as h


@pytest.fixture(autouse=True)
def what_is_kept_is_what_the_facts_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(runtime, "KEEP_AFTER", 7)
    yield
    for path in tmp_path.glob("*/.git/gsd/journal.db"):
        try:
            with Journal.open(path, clock=h.now, writable=False) as journal:
                known, read = read_last_run(journal, path.parents[2]), read_last_run(journal)
        except JournalError:
            continue  # a test has damaged it
        is_same = (known.state, known.history) == (read.state, read.history)
        assert is_same, path
