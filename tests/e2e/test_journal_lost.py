"""What happens to a run whose journal is removed, replaced or damaged while an agent works."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, gate, no_problems

pytestmark = pytest.mark.slow

HIDDEN = "an answer that nobody can read"


def remove(project: Project) -> None:
    shutil.rmtree(project.journal_file.parent)


def replace(project: Project) -> None:
    kept = project.journal_file.with_name("copy.db")
    shutil.copyfile(project.journal_file, kept)
    kept.replace(project.journal_file)


def cut(project: Project) -> None:
    os.truncate(project.journal_file, 0)


def damage(project: Project) -> None:
    with closing(sqlite3.connect(project.journal_file)) as journal, journal:
        journal.execute(
            "INSERT INTO inbox(key, at, kind, data, by) VALUES('k', 'today', 'answer', '{}', ?)", (HIDDEN,)
        )


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (remove, "removed or replaced"),
        (replace, "removed or replaced"),
        (cut, "removed or replaced"),
        (damage, "is damaged"),
    ],
)
def test_a_run_ends_at_once_when_its_journal_cannot_be_used_any_more(
    project: Project, happens: Callable[[Project], None], said: str
) -> None:
    project.create()
    project.environment = no_problems()
    blocked = gate(project)
    blocked.close()
    started = project.start("run", EXAMPLE, *FAKE, "--yes")
    # A check waits at the gate, for as long as nobody opens it.
    assert started.until(blocked.reached.exists)

    happens(project)
    ended = started.wait(limit=20)
    if happens is cut:
        project.journal_file.unlink()  # the fixture reads it in the end

    assert ended.exit not in (0, -signal.SIGKILL), ended.err
    assert said in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
