"""``gsd watch``: a real process that shows what another one writes into the journal."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from attrs import define, field

from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.store import Journal
from tests.cli.bench import BEGAN, EVIL, Bench, call

LIMIT = 60


@define
class Watcher:
    """A ``gsd watch`` whose output is read line by line."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str] = field(factory=queue.Queue[str])
    seen: list[str] = field(factory=list[str])

    def until(self, words: str) -> str:
        """Return the next line that contains *words*."""
        while True:
            line = self.lines.get(timeout=LIMIT)
            self.seen.append(line)
            if words in line:
                return line

    def leave(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=LIMIT)


@contextmanager
def watching(bench: Bench, *options: str) -> Generator[Watcher]:
    """Run ``gsd watch`` with its output in a pipe."""
    command = [sys.executable, "-m", "gsd_core", "watch", "-C", str(bench.root), *options]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment,
    )  # fmt: skip
    watcher = Watcher(process)

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            watcher.lines.put(line.rstrip("\n"))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        yield watcher
    finally:
        process.kill()
        process.wait()
        reading.join()
        assert process.stdout is not None
        process.stdout.close()


def activity(bench: Bench, text: str) -> None:
    with Journal.open(bench.journal, clock=lambda: BEGAN) as journal:
        data = {"key": "k", "kind": "tool", "tool": "Bash", "text": text}
        journal.activity("agent.activity", data, run=bench.run, step="2/execute/02-02", attempt=1)


@pytest.mark.slow
def test_it_follows_a_run_that_begins_ends_is_killed_and_is_resumed_and_leaves_it_alone(bench: Bench) -> None:
    with watching(bench, "-v") as watcher:
        with ProjectLock(bench.root / ".git" / "gsd"):
            bench.start()
            bench.work()
            bench.ask()
            activity(bench, f"pytest -q {EVIL}")
            watcher.until("run r-1 started")
            watcher.until("task 02-02/1  abcdef012")
            watcher.until("Which database?")
            watcher.until(f"answer with: gsd -C {bench.root} answer q-1")
            assert "\x1b" not in watcher.until("runs pytest -q")
            bench.close("stopped", 130, "received SIGINT")
            watcher.until("stopped: received SIGINT")
            bench.fact("run.opened", pid=2, version="0.1.0", agent=["fake"], options={}, resumed=True)
            watcher.until("run r-1 resumed")
        # The lock is free, and nothing has closed the run: its process was killed.
        assert f"gsd -C {bench.root} resume" in watcher.until("interrupted: ")
        with Journal.open(bench.journal, clock=lambda: BEGAN, writable=False) as journal:
            before = journal.digest()
        assert watcher.leave() == 0
    with Journal.open(bench.journal, clock=lambda: BEGAN, writable=False) as journal:
        assert journal.digest() == before


@pytest.mark.slow
def test_json_is_that_of_the_log_from_the_last_process_on(bench: Bench) -> None:
    bench.start()
    bench.close("stopped", 130, "received SIGINT")
    bench.fact("run.opened", pid=2, version="0.1.0", agent=["fake"], options={}, resumed=True)
    bench.work()
    with watching(bench, "--json") as watcher:
        watcher.until("agent.closed")
        bench.close()
        watcher.until("run.closed")
        assert watcher.leave(signal.SIGINT) == 0

    logged = call("log", "--json", "-C", bench.root).stdout.splitlines()
    opened = max(n for n, line in enumerate(logged) if json.loads(line)["kind"] == "run.opened")
    assert watcher.seen == logged[opened:]


def test_a_missing_folder_cannot_be_watched(bench: Bench) -> None:
    result = call("watch", "-C", bench.root / "nowhere")

    assert result.exit_code == 2
    assert "error: no folder" in result.stderr
