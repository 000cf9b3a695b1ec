"""One run at a time; the kernel releases the lock of a killed process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gsd_core.errors import Locked
from gsd_core.journal.lock import Owner, ProjectLock, owner

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

HOLD = """
import signal, sys
from pathlib import Path
from gsd_core.journal.lock import ProjectLock
lock = ProjectLock(Path(sys.argv[1]), command="gsd run idea.md")
lock.acquire()
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the project's lock."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_learns_who_holds_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    began = datetime.now(UTC)
    with pytest.raises(Locked) as caught:
        ProjectLock(tmp_path).acquire()

    assert (datetime.now(UTC) - began).total_seconds() < 1
    by = owner(tmp_path)
    assert by is not None
    assert by.since in str(caught.value)
    assert f"pid {holder.pid} on {socket.gethostname()!r}" in str(caught.value)
    assert "gsd run idea.md" in str(caught.value)


def test_a_kill_releases_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert owner(tmp_path) is not None
    holder.kill()
    holder.wait()

    assert owner(tmp_path) is None
    with ProjectLock(tmp_path):
        by = owner(tmp_path)
        assert by is not None
        assert by.pid == os.getpid()


def test_the_owner_is_known_while_the_lock_is_held(tmp_path: Path) -> None:
    directory = tmp_path / "not" / "yet"
    assert owner(directory) is None

    with ProjectLock(directory, command="gsd run", clock=lambda: NOW):
        assert owner(directory) == Owner(
            pid=os.getpid(), host=socket.gethostname(), since="2026-01-02T03:04:05+00:00", command="gsd run"
        )

    assert owner(directory) is None


def test_children_do_not_keep_the_lock(tmp_path: Path) -> None:
    with ProjectLock(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False
        )

    with child, ProjectLock(tmp_path):
        assert child.poll() is None
        assert (by := owner(tmp_path))
        assert by.pid == os.getpid()
        child.communicate()


def test_asking_for_the_owner_does_not_disturb_it(tmp_path: Path) -> None:
    with ProjectLock(tmp_path):
        assert [owner(tmp_path) is not None for _ in range(3)] == [True, True, True]
        with pytest.raises(Locked):
            ProjectLock(tmp_path).acquire()


def test_a_held_lock_with_a_damaged_owner_file_has_an_unknown_owner(tmp_path: Path) -> None:
    with ProjectLock(tmp_path):
        (tmp_path / "owner.json").write_text("{")

        by = owner(tmp_path)
        assert by is not None
        assert by.host == "unknown"
        with pytest.raises(Locked, match="unknown"):
            ProjectLock(tmp_path).acquire()


def test_releasing_a_lock_that_is_not_held_does_nothing(tmp_path: Path) -> None:
    with ProjectLock(tmp_path):
        ProjectLock(tmp_path).release()

        assert owner(tmp_path) is not None
