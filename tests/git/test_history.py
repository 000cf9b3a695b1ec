"""Commits are found by their trailers, and files are ordered by their commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gsd_core.git import Git, TrailedCommit

Run = Callable[..., str]


def commit(root: Path, path: str, text: str = "x\n", **trailers: str) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    named = {f"GSD-{name.title()}": value for name, value in trailers.items()}
    return asyncio.run(Git(root).commit([path], f"add {path}", trailers=named, verify=False))


def test_the_commits_of_a_step_and_of_its_tasks_are_distinguished(root: Path) -> None:
    task = commit(root, "a", run="r-1", step="1/execute/01-01", task="01-01/1")
    commit(root, "b", run="r-1", step="1/execute/01-01", task="01-01/10")
    step = commit(root, "c", run="r-1", step="1/execute/01-01")
    git = Git(root)

    one = {"GSD-Run": "r-1", "GSD-Step": "1/execute/01-01"}
    assert asyncio.run(git.find(one)) == step
    assert asyncio.run(git.find(one | {"GSD-Task": "01-01/1"})) == task
    assert asyncio.run(git.find(one | {"GSD-Task": "01-01/2"})) is None
    assert asyncio.run(git.find({"GSD-Run": "r-1", "GSD-Step": "1/execute"})) is None


def test_a_message_that_only_mentions_a_trailer_is_not_found(root: Path, sh: Run) -> None:
    (root / "a").touch()
    sh("add", "a")
    sh("commit", "-qm", "docs: x\n\nGSD-Run: r-1 is what we write\n\nand this is the end")

    assert asyncio.run(Git(root).find({"GSD-Run": "r-1 is what we write"})) is None
    assert asyncio.run(Git(root).trailed()) == ()


def test_a_run_lists_its_commits_oldest_first(root: Path, sh: Run) -> None:
    first = commit(root, "a", run="r-1", step="init")
    commit(root, "b", run="r-10", step="init")
    sh("commit", "-q", "--allow-empty", "-m", "someone else's")
    second = commit(root, "c", run="r-1", step="1/execute/01-01", task="01-01/1")
    git = Git(root)

    assert asyncio.run(git.trailed("r-1")) == (
        TrailedCommit(sha=first, run="r-1", step="init", subject="add a"),
        TrailedCommit(sha=second, run="r-1", step="1/execute/01-01", task="01-01/1", subject="add c"),
    )
    assert [commit.run for commit in asyncio.run(git.trailed())] == ["r-1", "r-10", "r-1"]


def test_a_commit_that_head_does_not_reach_is_not_found(root: Path, sh: Run) -> None:
    commit(root, "a", run="r-1")
    sh("checkout", "-q", "-b", "side")
    aside = commit(root, "b", run="r-2")
    git = Git(root)

    assert asyncio.run(git.find({"GSD-Run": "r-2"})) == aside
    sh("checkout", "-q", "-")
    assert asyncio.run(git.find({"GSD-Run": "r-2"})) is None


def test_a_repository_without_a_commit_has_no_history(root: Path) -> None:
    git = Git(root)

    assert asyncio.run(git.find({"GSD-Run": "r-1"})) is None
    assert asyncio.run(git.trailed("r-1")) == ()
    assert asyncio.run(git.order(".")) == {}


def test_a_verdict_older_than_a_summary_is_recognized(root: Path) -> None:
    commit(root, "phases/01-x/01-VERIFICATION.md")
    commit(root, "elsewhere")
    commit(root, "phases/01-x/01-01-SUMMARY.md")
    order = asyncio.run(Git(root).order("phases/01-x"))

    assert order["phases/01-x/01-VERIFICATION.md"] < order["phases/01-x/01-01-SUMMARY.md"]
    assert set(order) == {"phases/01-x/01-VERIFICATION.md", "phases/01-x/01-01-SUMMARY.md"}


def test_the_latest_commit_of_a_file_counts(root: Path) -> None:
    commit(root, "d/a", "1\n")
    commit(root, "d/b\n\x01ä", "1\n")
    assert _latest(root) == "d/b\n\x01ä"
    commit(root, "d/a", "2\n")
    assert _latest(root) == "d/a"


def _latest(root: Path) -> str:
    order = asyncio.run(Git(root).order("d"))
    return max(order, key=lambda path: order[path])


def test_uncommitted_files_are_newest_and_deleted_ones_are_missing(root: Path) -> None:
    for name in ("edited", "deleted", "kept"):
        commit(root, f"d/{name}")
    (root / ".gitignore").write_text("ignored\n")
    (root / "d/ignored").touch()
    (root / "d/new").touch()
    (root / "d/edited").write_text("2\n")
    (root / "d/deleted").unlink()
    order = asyncio.run(Git(root).order("d"))

    assert set(order) == {"d/edited", "d/kept", "d/new", "d/ignored"}
    assert order["d/edited"] == order["d/new"] == order["d/ignored"] > order["d/kept"]


def test_the_time_of_a_commit_is_in_utc(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-31T12:00:00+02:00")
    sha = commit(root, "a")

    assert asyncio.run(Git(root).content_of(sha)).at == datetime(2026, 1, 31, 10, 0, tzinfo=UTC)


def test_a_commit_s_content_is_read_at_once(root: Path, sh: Run) -> None:
    commit(root, "gone")
    sh("mv", "gone", "new")
    sh("commit", "-qm", "Rename\n\nWhy.\n\nGSD-Run: r")
    renamed = asyncio.run(Git(root).content_of(sh("rev-parse", "HEAD")))
    sh("commit", "-q", "--allow-empty", "-m", "Nothing")
    empty = asyncio.run(Git(root).content_of(sh("rev-parse", "HEAD")))

    assert (renamed.body, renamed.paths) == ("Why.", ("gone", "new"))
    assert (renamed.created, renamed.deleted) == (("new",), ("gone",))
    assert (empty.body, empty.paths, empty.created, empty.deleted) == ("", (), (), ())
