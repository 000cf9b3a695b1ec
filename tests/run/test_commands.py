"""A check ends when its shell ends, and leaves no process behind."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from attrs import define, field

from gsd_core.model.agent import Allow, Deny, Permission, ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.run.commands import OUTPUT_LIMIT, check
from gsd_core.run.sandbox import Sandbox
from tests.run.harness import no_sandbox

LONG = timedelta(seconds=60)


@define
class Gate:
    step: str = "1/execute/01-01"
    mark: str = "r-test"
    verdict: Permission = field(factory=Allow)

    @property
    def sandbox(self) -> Sandbox:
        return no_sandbox()

    async def decide(self, use: ToolUse) -> Permission:
        return self.verdict


def run(command: str, tree: Path, limit: timedelta = LONG) -> CheckResult:
    return asyncio.run(check(Gate(), command, tree, limit))


@pytest.fixture
def nap() -> Iterator[str]:
    """The seconds of a sleep that no other process has; what still sleeps so at the end is ended."""
    seconds = f"3{random.randrange(10**6):06d}"
    yield seconds
    for process in asleep(seconds):
        process.kill()


def asleep(seconds: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if seconds in (process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize(
    "start",
    [
        "sleep {0} &",
        "(sleep {0} &);",
        "nohup sleep {0} >/dev/null 2>&1 &",
        pytest.param(
            "setsid sleep {0} &", marks=pytest.mark.skipif(not shutil.which("setsid"), reason="no setsid")
        ),
        pytest.param(
            "setsid sh -c 'setsid sleep {0} & wait' >/dev/null 2>&1 & sleep 0.3;",
            marks=pytest.mark.skipif(not shutil.which("setsid"), reason="no setsid"),
        ),
    ],
)
def test_a_child_in_the_background_does_not_block_and_is_ended(tmp_path: Path, nap: str, start: str) -> None:
    began = time.monotonic()
    result = run(f"{start.format(nap)} echo served", tmp_path)

    assert (result.exit, result.output) == (0, "served")
    assert time.monotonic() - began < LONG.total_seconds() / 2
    assert asleep(nap) == []


@pytest.mark.slow
def test_a_server_that_ignores_signals_is_ended(tmp_path: Path, nap: str) -> None:
    (tmp_path / "server.py").write_text(
        "import os, signal, subprocess\n"
        "os.setsid()\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.run(['sleep', '{nap}'])\n"
    )
    result = run(f"{sys.executable} server.py & sleep 1; echo asked", tmp_path)

    assert (result.exit, result.output) == (0, "asked")
    assert asleep(nap) == []


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path, nap: str) -> None:
    result = run(f"echo begun; sleep {nap} & sleep {nap}", tmp_path, timedelta(seconds=1))

    assert result.exit is None
    assert not result.ok
    assert result.output.startswith("begun\ntimed out after")
    assert asleep(nap) == []


def test_a_cancelled_check_leaves_no_process(tmp_path: Path, nap: str) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(check(Gate(), f"setsid sleep {nap} & sleep {nap}", tmp_path, LONG))
        async with asyncio.timeout(30):
            while not asleep(nap):  # noqa: ASYNC110 - there is no event for another process's start
                await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert asleep(nap) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("inner", [False, True], ids=["the command", "a child of its shell"])
def test_a_command_that_somebody_ended_is_run_again(
    tmp_path: Path, nap: str, number: signal.Signals, inner: bool
) -> None:
    command = f"test -e again && exit 0; touch again; sleep {nap}" + ("; exit $?" if inner else "")

    async def ended() -> CheckResult:
        task = asyncio.create_task(check(Gate(), command, tmp_path, LONG))
        async with asyncio.timeout(30):
            while not (found := asleep(nap)):  # noqa: ASYNC110 - there is no event for another process's start
                await asyncio.sleep(0.05)
        found[0].send_signal(number)
        return await task

    assert asyncio.run(ended()).ok


def test_a_command_that_a_signal_ends_each_time_fails_with_its_name(tmp_path: Path) -> None:
    result = run("echo x >> runs; kill -9 $$", tmp_path)

    assert (result.ok, (tmp_path / "runs").read_text()) == (False, "x\nx\nx\n")
    assert "SIGKILL ended it 3 times" in result.output
    assert run("echo x >> crashes; kill -SEGV $$", tmp_path).exit == -signal.SIGSEGV
    assert (tmp_path / "crashes").read_text() == "x\n"  # a crash is the command's own


@pytest.mark.parametrize(
    ("command", "succeeds"),
    [("cat", True), ("read line", False), ("read line < /dev/tty", False), ("python3 -c 'input()'", False)],
)
def test_a_command_that_wants_input_does_not_wait_for_it(
    tmp_path: Path, command: str, succeeds: bool
) -> None:
    assert run(command, tmp_path).ok is succeeds


def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    result = run("yes 'a line' | head -n 3000000; echo the end", tmp_path)

    assert result.exit == 0
    assert result.output.endswith("a line\nthe end")
    assert len(result.output) <= OUTPUT_LIMIT


def test_a_child_that_keeps_printing_does_not_keep_the_check(tmp_path: Path) -> None:
    assert run("yes & sleep 0.2", tmp_path).exit == 0


def test_a_summary_far_above_the_kept_output_counts(tmp_path: Path) -> None:
    passed = "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured"
    none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"
    result = run(f"echo '{passed}'; yes '{none}' | head -n 1000", tmp_path)

    assert passed not in result.output
    assert result.ok


@pytest.mark.parametrize("command", ["echo \0", f"echo {'x' * 3_000_000}"])
def test_a_command_that_cannot_be_started_is_a_result(tmp_path: Path, command: str) -> None:
    result = run(command, tmp_path)

    assert result.exit is None
    assert result.output.startswith("could not be started")


def test_a_refused_command_does_not_run(tmp_path: Path) -> None:
    gate = Gate(verdict=Deny(reason="no"))
    result = asyncio.run(check(gate, "touch made", tmp_path, LONG))

    assert (result.exit, result.ok) == (None, False)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("command", "passes"),
    [
        ("test -x run.sh", True),
        ("test -x ./run.sh && grep -q exit run.sh", True),
        ("./run.sh", False),
        ("A=1 timeout 5 sh -e run.sh", False),
        ("cd . && bash ./run.sh", False),
        ("if ./run.sh; then true; fi", False),
    ],
)
def test_a_check_that_only_looks_at_a_script_does_not_run_it(
    tmp_path: Path, command: str, passes: bool
) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "run.sh").chmod(0o755)

    assert run(command, tmp_path).ok is passes


@pytest.mark.parametrize(
    ("script", "passes"),
    [
        ("#!/bin/sh\nexit 0\n", False),
        ("#!/bin/sh\necho 'all 12 tests passed'\n", False),
        (f"#!/bin/sh\n{sys.executable} -m unittest -q broken; exit 0\n", False),
        (f"#!/bin/sh\n{sys.executable} -m unittest -q fine\n", True),
    ],
)
def test_a_wrapper_that_cannot_fail_does_not_pass(tmp_path: Path, script: str, passes: bool) -> None:
    for name, value in (("broken", "1"), ("fine", "2")):
        text = (
            "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n"
            f"        self.assertEqual({value}, 2)\n"
        )
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "check.sh").write_text(script)
    result = run("sh check.sh", tmp_path)

    assert result.exit == 0
    assert result.ok is passes


SHELLS_DIFFER = (
    "echo {a,b}",
    "echo $'a\\x41'",
    "echo 'a\\tb'",
    "x=abc; echo ${x//b/c}",
    "[[ a == a ]] && echo yes",
    "cat <<< here",
    "cat <(echo piped)",
    "false &> file && echo yes || echo no",
    "function f { echo f; }; f",
    "a=(1 2); echo ${a[1]}",
    "x=1; x+=2; echo $x",
    "set -o pipefail; false | true; echo $?",
    "echo ${BASH_VERSION:+bash}",
    "((1 < 2)) && echo less",
    "echo one |& cat",
    "source /dev/stdin <<< 'echo sourced'",
)
THEY_AGREE = ("echo a  b", "x='a  b'; echo \"$x\" $x", "false || echo no", "for i in 1 2; do echo $i; done")


def test_a_check_runs_as_bash_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy parses bash: a command that another shell reads differently would get past it."""
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(tmp_path / "startup"))
    for name in ("startup", ".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("echo() { command echo startup; }\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    tree = tmp_path / "tree"
    tree.mkdir()
    found: dict[str, dict[str, tuple[int | None, str]]] = {}
    for command in (*SHELLS_DIFFER, *THEY_AGREE):
        result = run(command, tree)
        found[command] = {"check": (result.exit, result.output)}
        for shell in ("bash", "dash"):
            if program := shutil.which(shell):
                ran = subprocess.run(
                    [program, "-c", command],
                    cwd=tree,
                    env={"PATH": "/usr/bin:/bin"},
                    capture_output=True,
                    text=True,
                )
                found[command][shell] = (ran.returncode, (ran.stdout + ran.stderr).strip())

    assert [command for command, by in found.items() if by["check"] != by["bash"]] == []
    if "dash" in found[SHELLS_DIFFER[0]]:
        assert [
            command for command in SHELLS_DIFFER if found[command]["check"] == found[command]["dash"]
        ] == []
        assert [command for command in THEY_AGREE if found[command]["check"] != found[command]["dash"]] == []
