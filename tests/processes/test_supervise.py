"""What a command starts ends with it, also what left its session and cleared its environment."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import attrs
import psutil
import pytest

from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Permission, ToolUse
from gsd_core.processes import end_marked, supervised
from gsd_core.run.commands import check
from gsd_core.run.sandbox import Sandbox
from tests.run import harness as h
from tests.run.harness import no_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to an ancestor")

ESCAPE = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if "stubborn" in sys.argv:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # A new program without any variable: no mark is left.
        code = "import signal, sys; print('escaped', flush=True); signal.pause()"
        if "stubborn" in sys.argv:
            code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + code
        null = os.open(os.devnull, os.O_RDWR)
        out = os.open(sys.argv[2], os.O_WRONLY)
        os.dup2(null, 0), os.dup2(out, 1), os.dup2(null, 2)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code, sys.argv[1]], {})
    os._exit(0)
os.wait()
"""


@attrs.define
class Escape:
    """A command that leaves a process behind, whose command line has the *name*."""

    folder: Path
    name: str = attrs.field(factory=lambda: f"escaped-{secrets.token_hex(6)}")

    def command(self, *, stubborn: bool = False) -> list[str]:
        """Return the command; it ends once the other process runs."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        script = self.folder / "escape.py"
        script.write_text(ESCAPE)
        # Reading the pipe first lets the writer open it; the line says that the process is ready.
        shell = (
            f"{sys.executable} -I -S {script} {self.name} {pipe} {'stubborn' if stubborn else ''} & "
            f"read line < {pipe}; wait"
        )
        return ["/bin/sh", "-c", shell]

    def running(self) -> list[int]:
        """Return the processes that escaped and still run."""
        return [
            process.pid
            for process in psutil.process_iter(["cmdline", "status"])
            if self.name in (process.info["cmdline"] or [])[-1:]
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]


@pytest.fixture
def escape(tmp_path: Path) -> Iterator[Escape]:
    found = Escape(tmp_path)
    yield found
    for pid in found.running():
        os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return False


def test_without_it_the_process_survives(escape: Escape) -> None:
    """The command does escape: without this, the tests below prove nothing."""
    subprocess.run(escape.command(), check=True, start_new_session=True, env={"GSD_TEST": escape.name})

    assert escape.running()
    assert end_marked([escape.name], env_name="GSD_TEST") == ()


@pytest.mark.parametrize("stubborn", [False, True])
def test_it_ends_with_the_command(escape: Escape, stubborn: bool) -> None:
    done = subprocess.run(supervised(escape.command(stubborn=stubborn)), check=False, start_new_session=True)

    assert done.returncode == 0
    assert escape.running() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_when_the_command_is_ended(escape: Escape, number: signal.Signals) -> None:
    shell = escape.command()
    shell[2] += "; sleep 600"
    process = subprocess.Popen(supervised(shell), start_new_session=True)
    assert until(lambda: bool(escape.running()))

    os.killpg(process.pid, number)

    assert process.wait(10) == -number
    assert until(lambda: not escape.running())


def test_it_ends_when_gsd_is_killed(escape: Escape) -> None:
    shell = escape.command()
    shell[2] += "; sleep 600"
    code = f"import subprocess; subprocess.run({list(supervised(shell))!r}, start_new_session=True)"
    gsd = subprocess.Popen([sys.executable, "-c", code])
    assert until(lambda: bool(escape.running()))

    gsd.kill()
    gsd.wait()

    assert until(lambda: not escape.running())


def test_it_ends_when_the_command_kills_what_watches_it(escape: Escape) -> None:
    shell = escape.command()
    shell[2] += "; kill -9 $PPID; sleep 600"

    done = subprocess.run(supervised(shell), check=False, start_new_session=True, timeout=20)

    assert done.returncode == -signal.SIGKILL
    assert escape.running() == []


@pytest.mark.parametrize(
    ("command", "code"), [("exit 7", 7), ("kill -TERM $$", -15), ("kill -KILL $$", -9), ("exec nosuch", 127)]
)
def test_the_exit_code_is_that_of_the_command(command: str, code: int) -> None:
    done = subprocess.run(supervised(["/bin/sh", "-c", command]), check=False, capture_output=True)
    assert done.returncode == code


def test_it_is_transparent(tmp_path: Path) -> None:
    """Streams, descriptors, working directory and environment are those of the caller."""
    reading, writing = os.pipe()
    os.write(writing, b"secret")
    os.close(writing)
    done = subprocess.run(
        supervised(["/bin/sh", "-c", f"cat; cat /dev/fd/{reading}; pwd; echo $X; echo err >&2"]),
        check=True,
        input=b"input ",
        capture_output=True,
        pass_fds=(reading,),
        cwd=tmp_path,
        env={"X": "x"},
    )
    os.close(reading)
    assert done.stdout.decode().split() == ["input", f"secret{tmp_path}", "x"]
    assert done.stderr == b"err\n"


def test_output_ends_when_the_command_closes_it() -> None:
    process = subprocess.Popen(
        supervised(["/bin/sh", "-c", "echo x; exec >&-; sleep 600"]),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.read() == b"x\n"
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
    process.stdout.close()


@attrs.frozen
class AllowAll:
    """A gate that allows every command."""

    step: str = "1/execute/01-01"
    mark: str = "r-1"

    @property
    def sandbox(self) -> Sandbox:
        return no_sandbox()

    async def decide(self, use: ToolUse) -> Permission:
        return Allow()


@pytest.mark.parametrize(("then", "limit"), [("", 20.0), ("; sleep 600", 1.5)])
def test_a_plans_check_leaves_nothing_behind(escape: Escape, tmp_path: Path, then: str, limit: float) -> None:
    """The command ends on its own, or its time is up."""
    command = escape.command()[2] + then

    result = asyncio.run(check(AllowAll(), command, tmp_path, timedelta(seconds=limit)))

    assert (result.exit == 0) == (then == "")
    assert until(lambda: not escape.running(), 3)


@pytest.mark.slow
def test_an_agents_call_leaves_nothing_behind(escape: Escape, tmp_path: Path) -> None:
    """The agent plugin starts its process as the host says, and it is ended with its group."""
    root = h.repository(tmp_path / "project")
    command = escape.command()
    command[2] += "; echo escaped; sleep 600"
    seen: list[int] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor" or seen:
            return None
        how = await host.confine(command, {"PATH": os.environ["PATH"]})
        process = await asyncio.create_subprocess_exec(
            *how.command, env=how.environment, start_new_session=True, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        seen.extend(escape.running())
        os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()
        return None

    end = h.do(h.request(root, h.Watched(h.one_phase(), before), given=h.idea()))

    assert end.exit == 0
    assert len(seen) == 1
    assert until(lambda: not escape.running(), 3)
