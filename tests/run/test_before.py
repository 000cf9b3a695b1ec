"""A run that cannot start is refused with a reason, before anything is written."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from attrs import evolve

from gsd_core.errors import GsdError, IdeaError, JournalError, Locked, ProjectError
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import Depth
from gsd_core.run.preflight import MOST_PHASES
from gsd_core.run.runtime import RunRequest
from gsd_core.run.start import run_project
from gsd_plugins.native.depth import DIVISIONS
from tests.cli.bench import call

from . import harness as h

pytestmark = pytest.mark.slow

OTHER = h.idea("# Ledger\n\nWho paid what.\n")


def refused(asked: RunRequest) -> GsdError:
    """Return the error that refuses the run."""
    with pytest.raises(GsdError) as caught:
        h.do(asked)
    return caught.value


def contents(root: Path) -> dict[str, bytes]:
    """Return all files, except those that SQLite creates next to the journal even for a reader."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if not path.name.startswith("journal.db-")}


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
    assert ".planning/" not in error.hint
    assert set(contents(root)) == set(before)


def test_with_allow_dirty_changed_files_stay_unchanged_and_out_of_every_commit(tmp_path: Path) -> None:
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


def test_a_git_without_an_identity_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_first_run_needs_an_idea(tmp_path: Path) -> None:
    error = refused(h.request(h.repository(tmp_path / "project"), h.one_phase()))

    assert (type(error), "no idea" in str(error)) == (IdeaError, True)


def test_a_second_idea_is_refused_naming_both(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))

    error = refused(h.request(root, h.one_phase(), given=evolve(OTHER, name="ledger.md")))

    assert isinstance(error, IdeaError)
    assert "'idea.md'" in str(error)
    assert "'ledger.md' is a different idea" in str(error)


def test_running_a_finished_idea_again_calls_no_agent(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    agent = h.Watched(h.one_phase())
    commits = h.git(root, "rev-list", "--count", "HEAD")

    end = h.do(h.request(root, agent, given=h.idea()))

    assert (end.outcome, end.exit, agent.tasks) == ("done", 0, [])
    assert h.git(root, "rev-list", "--count", "HEAD") == commits


def test_a_second_idea_is_refused_in_a_half_finished_project(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    part = Options(phases=("1",))
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=part))

    error = refused(h.request(root, h.one_phase(), given=OTHER))

    # In a finished one it begins the next milestone: tests/run/test_milestones.py.
    assert "is in progress here" in str(error)


def test_a_request_to_stop_an_earlier_process_does_not_stop_the_next_one(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))
    h.put(h.journal(root), "stop", {}, by="tester")

    end = h.do(h.request(root, h.one_phase(question=True)))

    assert (end.outcome, h.facts(root, "control.asked")) == ("done", [])


@pytest.mark.parametrize("newer", ["UPDATE meta SET schema = 999", "UPDATE event SET v = 999 WHERE seq = 2"])
def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path, newer: str) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False))
    with closing(sqlite3.connect(h.journal(root))) as database, database:
        database.execute(newer)
    commits = h.git(root, "rev-list", "--count", "HEAD")

    error = refused(h.request(root, h.one_phase()))

    assert isinstance(error, JournalError)
    assert "999" in str(error)
    assert h.git(root, "rev-list", "--count", "HEAD") == commits


def during_a_run(root: Path, work: Callable[[], Awaitable[None]]) -> None:
    """Do *work* while a run is active in the project."""

    async def waits(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "planner":
            await work()
        return None

    h.do(h.request(root, h.Watched(h.one_phase(), waits), given=h.idea()))


def test_a_second_run_in_the_project_ends_immediately_naming_the_first_one(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    errors: list[tuple[str, float]] = []

    async def second() -> None:
        began = time.monotonic()
        with pytest.raises(Locked) as caught:
            await asyncio.create_task(run_project(h.request(root, h.one_phase())))
        errors.append((str(caught.value), time.monotonic() - began))

    during_a_run(root, second)

    [(error, took)] = errors
    assert f"pid {os.getpid()} on {socket.gethostname()!r} since 20" in error
    assert took < 1


FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--no-input")


@pytest.mark.parametrize("options", [Options(), Options(phases=("1",))], ids=["finished", "unfinished"])
@pytest.mark.parametrize(
    "flags", [("--phases", "9"), ("--phases", "1,9"), ("--only", "9"), ("--phases", "8-9")]
)
def test_phases_that_do_not_exist_are_refused_naming_those_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Options, flags: tuple[str, str]
) -> None:
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=options))
    before, facts = contents(root), h.facts(root)

    result = call("run", "-C", root, *FAKE, *flags)

    assert result.exit_code == 2
    assert "9 do" in result.stderr
    assert "the roadmap has 1, 2" in result.stderr
    assert f"gsd -C {root} -p gsd_plugins.rehearsal.fake phases" in result.stderr
    assert contents(root) == before
    assert h.facts(root) == facts


def test_an_impossible_template_for_branches_is_refused_before_the_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=Options(phases=("1",))))
    config = root / ".planning" / "config.json"
    config.write_text('{"git": {"branching_strategy": "phase", "phase_branch_template": "work"}}')
    before, facts = contents(root), h.facts(root)

    result = call("run", "-C", root, *FAKE, "--yes")

    assert result.exit_code == 2
    assert "git.phase_branch_template: expected {phase} or {slug} in it, got 'work'" in result.stderr
    assert contents(root) == before
    assert h.facts(root) == facts


def test_a_range_may_go_beyond_the_last_phase(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea(), options=Options(phases=("1",))))

    end = h.do(h.request(root, h.one_phase(phases=2), options=Options(phases=("2", "3", "4"))))

    assert (end.outcome, end.reason) == ("done", "1 phase complete")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--only", "99"), "phase 99 does not exist"),
        (("--phases", "1,9"), "phase 9 does not exist"),
        (("--phases", "40-50"), "phases 40, 41"),
        (("--only", "0"), "phase 0 does not exist"),
        (("--only", "6", "--depth", "quick"), "at depth quick, a new roadmap has at most the phases 1 to 5"),
    ],
)
def test_phases_that_no_new_roadmap_can_have_are_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    root = h.repository(tmp_path / "project")
    (tmp_path / "idea.md").write_text(h.IDEA)

    result = call("run", tmp_path / "idea.md", "-C", root, *FAKE, "--yes", *flags)

    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert not h.journal(root).exists() or not h.facts(root)
    assert list(root.iterdir()) == [root / ".git"]


def test_the_limits_of_a_new_roadmap_are_those_of_the_executor() -> None:
    assert {depth: DIVISIONS[depth].phases[1] for depth in get_args(Depth)} == MOST_PHASES


def test_phases_of_the_next_milestone_are_counted_on(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(phases=2), given=h.idea()))

    for number in ("2", "99"):
        asked = h.request(
            root, h.one_phase(), given=OTHER, options=Options(phases=(number,)), run={"only": number}
        )
        assert "at most the phases 3 to 10" in str(refused(asked))
