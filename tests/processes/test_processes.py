"""Processes that an earlier run left behind are ended, and no others."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from gsd_core.errors import ProjectError
from gsd_core.processes import Process, boot_id, end_marked, processes, start_time

STUBBORN = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"ready\\n")  # at once: another process writes to the same pipe
signal.pause()
"""

PARENT = f"""
import os, signal, subprocess, sys
environment = {{k: v for k, v in os.environ.items() if not k.startswith("GSD_TEST_")}}
marked = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=True)
unmarked = subprocess.Popen(
    [sys.executable, "-c", {STUBBORN!r}],
    start_new_session=True, env=environment, stdout=subprocess.PIPE, text=True,
)
unmarked.stdout.readline()
os.write(1, f"{{marked.pid}} {{unmarked.pid}}\\n".encode())
signal.pause()
"""


@pytest.fixture
def name() -> str:
    """A variable's name that nobody else's processes have."""
    return f"GSD_TEST_{secrets.token_hex(6)}"


Started = list[subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Started]:
    """The processes of a test; those that are left are killed in the end."""
    every: Started = []
    yield every
    for process in every:
        process.kill()
        process.wait()
        # Not read to its end: a child that a failed test left behind may have it open.
        if process.stdout:
            process.stdout.close()


def start(started: Started, code: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )
    started.append(process)
    return process


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_marked_process_is_ended(started: Started, name: str) -> None:
    process = start(started, "print('ready', flush=True); import signal; signal.pause()", {name: "r-1"})
    said(process)

    assert end_marked(["r-1"], env_name=name) == (process.pid,)
    assert process.wait() == -signal.SIGTERM


def test_a_process_that_ignores_sigterm_is_killed(started: Started, name: str) -> None:
    process = start(started, STUBBORN, {name: "r-1"})
    said(process)

    end_marked(["r-1"], env_name=name, grace=timedelta(seconds=0.1))

    assert process.wait() == -signal.SIGKILL


def test_children_in_sessions_of_their_own_are_ended_too_marked_or_not(started: Started, name: str) -> None:
    parent = start(started, PARENT, {name: "r-1"})
    lines = {said(parent), said(parent)}
    children = [int(pid) for line in lines - {"ready"} for pid in line.split()]

    ended = end_marked(["r-1"], env_name=name, grace=timedelta(seconds=0.3))

    assert sorted(ended) == sorted([parent.pid, *children])
    assert [start_time(pid) for pid in children] == [None, None]


def test_another_runs_processes_are_left_alone(started: Started, name: str) -> None:
    other = start(started, STUBBORN, {name: "r-2"})
    said(other)

    assert end_marked(["r-1"], env_name=name) == ()
    assert other.poll() is None


def test_processes_of_any_run_are_ended_if_no_run_is_named(started: Started, name: str) -> None:
    process = start(started, "print('ready', flush=True); import signal; signal.pause()", {name: "r-9"})
    said(process)

    assert end_marked(None, env_name=name) == (process.pid,)


def test_spared_processes_are_left_alone(started: Started, name: str) -> None:
    process = start(started, STUBBORN, {name: "r-1"})
    said(process)

    assert end_marked(["r-1"], env_name=name, spare=[process.pid]) == ()
    assert process.poll() is None


def test_the_process_itself_and_its_ancestors_are_never_ended_even_if_marked(
    started: Started, name: str
) -> None:
    call = f"print(end_marked(['r-1'], env_name={name!r}), flush=True)"
    inner = f"from gsd_core.processes import end_marked; {call}"
    outer = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {inner!r}]).returncode)"
    root = str(Path(__file__).parents[2])
    process = start(started, outer, {name: "r-1", "PYTHONPATH": root})

    assert said(process) == "()"
    assert process.wait() == 0


class Reused(psutil.Process):  # type: ignore[misc]
    """A handle from before another process took over the id."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.pid)


def test_a_process_that_took_over_an_id_is_not_ended(started: Started, name: str) -> None:
    process = start(started, STUBBORN, {name: "r-1"})
    said(process)

    before = Process(handle=Reused(process.pid), parent=1, mark="r-1")
    scans = iter([[before]])

    def outdated(env_name: str) -> Iterable[Process]:
        """List the earlier process in the first scan only."""
        return next(scans, ())

    assert end_marked(["r-1"], env_name=name, listed=outdated) == ()
    assert not before.is_running()
    assert process.poll() is None


class Immortal(psutil.Process):  # type: ignore[misc]
    """A process that no signal ends."""

    def send_signal(self, sig: int) -> None:
        """Do nothing."""


def test_a_process_that_cannot_be_ended_is_an_error_that_names_it(started: Started, name: str) -> None:
    process = start(started, STUBBORN, {})
    said(process)

    def immortal(env_name: str) -> Iterable[Process]:
        yield Process(handle=Immortal(process.pid), parent=1, mark="r-1")

    with pytest.raises(ProjectError, match=str(process.pid)):
        end_marked(["r-1"], env_name=name, grace=timedelta(seconds=0.05), listed=immortal)


def test_another_users_processes_are_left_alone(
    started: Started, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(started, STUBBORN, {name: "r-1"})
    said(process)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)

    assert end_marked(["r-1"], env_name=name) == ()
    assert process.poll() is None


def test_a_process_has_one_start_time_while_it_runs(started: Started) -> None:
    process = start(started, STUBBORN, {})
    said(process)
    first = start_time(process.pid)

    assert first is not None
    assert first == start_time(process.pid)
    process.kill()
    process.wait()
    assert start_time(process.pid) is None


def test_a_boot_has_one_id() -> None:
    assert boot_id()
    assert boot_id() == boot_id()


def test_a_mark_on_the_command_line_does_not_count(started: Started, name: str) -> None:
    marked = start(started, STUBBORN, {name: "r-1"})
    said(marked)
    mentions = start(started, STUBBORN + f"# {name}=r-1", {})
    said(mentions)

    found = {process.pid: process.mark for process in processes(name)}

    assert found[marked.pid] == "r-1"
    assert found[mentions.pid] is None


def test_a_process_has_ended_although_its_parent_has_not_noticed(started: Started, name: str) -> None:
    process = start(started, STUBBORN, {name: "r-1"})
    said(process)
    [seen] = [each for each in processes(name) if each.pid == process.pid]
    assert seen.is_running()

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not seen.is_running()
    assert start_time(process.pid) is None
    assert process.pid not in {each.pid for each in processes(name)}


def test_the_own_process_is_listed_with_its_parent() -> None:
    found = {process.pid: process for process in processes("HOME")}

    assert found[os.getpid()].parent == os.getppid()
    assert found[os.getpid()].mark == os.environ["HOME"]
