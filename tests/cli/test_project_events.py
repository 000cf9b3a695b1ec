"""What another process is told about a project whose journal is damaged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from gsd_core.errors import JournalError
from gsd_core.project import Project
from tests.cli.bench import Bench


def test_events_before_a_damaged_record_are_told_once_and_the_damage_each_time(bench: Bench) -> None:
    bench.start()
    bench.work()
    good, names = bench.count, _names(Project(bench.root))
    bench.ask()
    change(bench, "UPDATE event SET data = '{\"cut of' WHERE seq > ?", (good,))
    project = Project(bench.root)

    assert _names(project) == names
    for _ in range(2):
        with pytest.raises(JournalError, match=f"damaged at seq {good + 1}"):
            project.poll()
    status = project.status()

    assert status["questions"] == []
    assert status["phases"]
    change(bench, "DELETE FROM event WHERE seq > ?", (good,))
    bench.ask()
    assert _names(project) == ("question.asked",)
    assert len(project.status()["questions"]) == 1
    project.close()


def change(bench: Bench, statement: str, values: tuple[int, ...]) -> None:
    # Not sqlite3: two copies of SQLite in one process take each other's locks away.
    connection: Any = apsw.Connection(str(bench.journal))
    with closing(connection):
        connection.execute(statement, values)


def _names(project: Project) -> tuple[str, ...]:
    return tuple(event.name for event in project.poll())


def test_an_empty_project_has_no_events(tmp_path: Path) -> None:
    assert Project(tmp_path).poll() == ()
