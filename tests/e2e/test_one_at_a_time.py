"""A second ``gsd run`` in a project: ends at once, names the active run, and changes nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from tests.e2e.place import EXAMPLE, FAKE, Gate, Place, Started, calm, defects, gate


@pytest.fixture
def waits(place: Place) -> Gate:
    """Block a run in its first command."""
    place.make()
    place.environment = calm()
    found = gate(place)
    found.close()
    return found


def running(place: Place, waits: Gate) -> Started:
    """Start a run and return when it is blocked."""
    started = place.start("run", EXAMPLE, *FAKE, "--yes")
    assert started.until(waits.reached.exists), started.said
    return started


def bare_start(place: Place) -> float:
    """Return how many seconds the bare interpreter takes."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", ""], check=True, cwd=place.base)
    return time.monotonic() - began


VERBS = [
    pytest.param(["run", str(EXAMPLE)], id="run"),
    pytest.param(["resume"], id="resume", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("verb", VERBS)
def test_a_second_run_ends_at_once_and_names_the_first(place: Place, waits: Gate, verb: list[str]) -> None:
    first = running(place, waits)
    since = datetime.now(UTC).strftime("%Y-%m-%d")
    opened = len(place.facts("run.opened"))
    second = place.gsd(*verb, *FAKE, "--yes")
    # One second is the promise; another one is for a machine that does other things, too.
    took = second.took - bare_start(place)
    harm = len(place.facts("run.opened")) - opened
    waits.open()
    first.signal(15)
    stopped = first.wait()
    finished = place.gsd("resume", *FAKE[:2], "--yes")

    assert second.exit == 2
    assert took < 2
    for word in (f"pid {first.pid}", socket.gethostname(), f"since {since}", "gsd stop"):
        assert word in second.err
    assert harm == 0
    assert (stopped.exit, finished.exit) == (143, 0)
    assert list(defects(place)) == []


def test_two_that_start_at_the_same_time_are_one_run(place: Place) -> None:
    place.make()
    place.environment = calm()
    both = [place.start("run", EXAMPLE, *FAKE, "--yes") for _ in range(2)]
    ends = sorted((started.wait() for started in both), key=lambda done: done.exit)

    assert [done.exit for done in ends] in ([0, 2], [0, 0])
    assert ends[1].exit == 0 or "another gsd is running" in ends[1].err
    assert len(place.facts("run.started")) == 1
    assert list(defects(place)) == []


@pytest.mark.slow
def test_a_lock_file_left_by_a_killed_run_does_not_block_the_next(place: Place, waits: Gate) -> None:
    running(place, waits).kill(group=True)
    waits.open()
    owner = place.project / ".git" / "gsd" / "owner.json"
    left = owner.exists()
    done = place.gsd("resume", *FAKE[:2], "--yes")

    assert left
    assert done.exit == 0, done.err
    assert not owner.exists()
    assert place.said("status")["owner"] is None
