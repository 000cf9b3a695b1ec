"""Signals to a process with several runs, such as a program that runs ``run_project`` twice at a time."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gsd_core.run.stop import TURNS_POLL, stopping
from gsd_core.run.timeouts import Turns

PROGRAM = """
import asyncio, signal, sys
from gsd_core.run.stop import SIGNALS, stopping

before = [signal.getsignal(number) for number in SIGNALS]

def wakeup():
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    return descriptor

async def run(name, leave):
    task = asyncio.current_task()
    with stopping(f"no-process-{name}", lambda: f"farewell of {name}") as stopper:
        print(name, "runs", flush=True)
        try:
            await leave.wait()
        except asyncio.CancelledError:
            task.uncancel()
        print(name, "received", stopper.received, flush=True)
        while stopper.received and "stay" in sys.argv:
            await asyncio.sleep(0.01)
    print(name, "left", flush=True)

async def main():
    at_first = wakeup()
    leave = {name: asyncio.Event() for name in "abc"}
    runs = {name: asyncio.create_task(run(name, leave[name])) for name in "abc"}
    await asyncio.sleep(0)
    leave[sys.argv[1]].set()
    await runs[sys.argv[1]]
    await asyncio.gather(*runs.values())
    assert wakeup() == at_first

asyncio.run(main())
assert [signal.getsignal(number) for number in SIGNALS] == before
print("restored", flush=True)
"""


@pytest.fixture(params=["a", "c"])
def leaver(request: pytest.FixtureRequest) -> str:
    """The run that leaves before the signal: the first that came, or the last."""
    return str(request.param)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(process: subprocess.Popen[str], last: str) -> list[str]:
    assert process.stdout is not None

    def lines() -> Iterator[str]:
        assert process.stdout is not None
        while (line := process.stdout.readline().strip()) not in (last, ""):
            yield line

    return [*lines(), last]


def test_a_signal_stops_the_runs_that_are_left_and_the_handlers_are_restored(leaver: str) -> None:
    with start(leaver) as process:
        until(process, f"{leaver} left")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)

    stay = [name for name in "abc" if name != leaver]
    said = [f"{name} received {signal.SIGTERM.value}" for name in stay] + [f"{name} left" for name in stay]
    assert (process.returncode, err) == (0, "")
    assert sorted(out.splitlines()) == sorted([*said, "restored"])


def test_a_second_signal_ends_the_process_with_the_farewells_of_the_runs_that_are_left(leaver: str) -> None:
    first, last = (name for name in "abc" if name != leaver)
    with start(leaver, "stay") as process:
        until(process, f"{leaver} left")
        process.send_signal(signal.SIGINT)
        until(process, f"{last} received {signal.SIGINT.value}")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

    assert (process.returncode, out) == (128 + signal.SIGINT, "")
    assert err == f"\nfarewell of {first}\n\nfarewell of {last}\n"


def test_a_second_signal_ends_the_wait_for_a_turn_and_nothing_asks_for_a_third(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> bool:
        turns = Turns()
        with stopping("no-process", str, turns) as stopper, turns.closes():
            assert stopper is not None
            stopper.stop(signal.SIGINT)
            await asyncio.sleep(TURNS_POLL.total_seconds())
            assert stopper.waits
            stopper.stop(signal.SIGINT)
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            # An agent takes a while to end.
            await asyncio.sleep(3 * TURNS_POLL.total_seconds())
            return stopper.waits

    assert asyncio.run(run()) is False
    assert caplog.text.count("press Ctrl-C again to stop now") == 1
