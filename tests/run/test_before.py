"""Before anything is written: what is not fit to begin with is said, and nothing is touched."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.errors import GsdError, IdeaError, JournalError, Locked, ProjectError
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.run import RunRequest, run_project

from . import harness as h

OTHER = h.idea("# Ledger\n\nWho paid what.\n")


def refused(asked: RunRequest) -> GsdError:
    """Return the error that the run ends with before it begins."""
    with pytest.raises(GsdError) as caught:
        h.do(asked)
    return caught.value


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def dirty(root: Path) -> Path:
    h.repository(root)
    (root / "notes.txt").write_text("one\n")
    h.git(root, "add", "notes.txt")
    h.git(root, "commit", "-qm", "notes")
    (root / "notes.txt").write_text("two\n")
    return root


def test_changed_tracked_files_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    root = dirty(tmp_path / "project")
    before = contents(root)

    error = refused(h.request(root, h.one_phase(), given=h.idea()))

    assert isinstance(error, ProjectError)
    assert "notes.txt" in str(error)
    assert "--allow-dirty" in error.hint
    assert set(contents(root)) == set(before)


def test_allowed_dirty_files_stay_as_they_are_and_out_of_every_commit(tmp_path: Path) -> None:
    root = dirty(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), run={"allow_dirty": True}))

    assert end.outcome == "done"
    assert h.git(root, "status", "--porcelain").split("\n")[0] == " M notes.txt"
    assert h.git(root, "log", "--format=%s", "--", "notes.txt").split("\n")[0] == "notes"


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()

    error = refused(h.request(tmp_path / "project", h.one_phase(), given=h.idea()))

    assert (type(error), "git init" in error.hint) == (ProjectError, True)
    assert list((tmp_path / "project").iterdir()) == []


def test_a_git_that_knows_no_identity_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = h.repository(tmp_path / "project")
    h.git(root, "config", "--unset", "user.name")
    h.git(root, "config", "--unset", "user.email")
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)

    error = refused(h.request(root, h.one_phase(), given=h.idea()))

    assert isinstance(error, ProjectError)
    assert "user.email" in error.hint
    assert not (root / ".git" / "gsd").exists()


def test_without_an_idea_there_is_nothing_to_begin(tmp_path: Path) -> None:
    error = refused(h.request(h.repository(tmp_path / "project"), h.one_phase()))

    assert (type(error), "no idea" in str(error)) == (IdeaError, True)


def test_another_idea_than_the_one_under_way_is_refused_naming_both(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))

    error = refused(h.request(root, h.one_phase(), given=evolve(OTHER, name="ledger.md")))

    assert isinstance(error, IdeaError)
    assert "'idea.md' is under way here; 'ledger.md' is another idea" in str(error)


def test_the_same_idea_after_its_end_is_done_without_any_agent(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    agent = h.Watched(h.one_phase())
    commits = h.git(root, "rev-list", "--count", "HEAD")

    end = h.do(h.request(root, agent, given=h.idea()))

    assert (end.outcome, end.exit, agent.tasks) == ("done", 0, [])
    assert h.git(root, "rev-list", "--count", "HEAD") == commits


def test_another_idea_after_the_end_is_refused_and_so_is_one_after_a_part(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    part = Options(phases=("1",))
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=part))

    midway = refused(h.request(root, h.one_phase(), given=OTHER))
    h.do(h.request(root, h.one_phase(phases=2)))
    after = refused(h.request(root, h.one_phase(), given=OTHER))

    assert "is under way here" in str(midway)
    assert "complete for 'idea.md'" in str(after)


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))
    with closing(sqlite3.connect(h.journal(root))) as database, database:
        database.execute("UPDATE meta SET schema = 999")
    commits = h.git(root, "rev-list", "--count", "HEAD")

    error = refused(h.request(root, h.one_phase()))

    assert isinstance(error, JournalError)
    assert "999" in str(error)
    assert h.git(root, "rev-list", "--count", "HEAD") == commits


def meanwhile(root: Path, work: Callable[[], Awaitable[None]]) -> None:
    """Do *work* while a run is on the project."""

    async def waits(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "planner":
            await work()
        return None

    h.do(h.request(root, h.Watched(h.one_phase(), waits), given=h.idea()))


def test_a_second_run_on_the_project_ends_at_once_with_who_holds_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    errors: list[tuple[str, float]] = []

    async def second() -> None:
        began = time.monotonic()
        with pytest.raises(Locked) as caught:
            await asyncio.create_task(run_project(h.request(root, h.one_phase())))
        errors.append((str(caught.value), time.monotonic() - began))

    meanwhile(root, second)

    [(error, took)] = errors
    assert f"pid {os.getpid()} on {socket.gethostname()!r} since 20" in error
    assert took < 1
