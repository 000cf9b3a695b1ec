"""A server started in a terminal speaks for a person, also after the terminal was closed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gsd_core import SessionRequest, UserError
from gsd_core.processes import RUN_MARKS
from gsd_plugins.sessions import SessionsSettings, host

SERVER = """
import os, signal, sys, time
from pathlib import Path
from gsd_core import UserError, refuse_agents, remember_origin
folder, remember = Path(sys.argv[1]), sys.argv[2] == "yes"
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if remember:
    remember_origin()
(folder / "ready").touch()
while os.getppid() == int(sys.argv[3]):
    time.sleep(0.02)
try:
    refuse_agents("answer a question", run_pid=int(sys.argv[4]))
    said = "allowed"
except UserError as error:
    said = str(error)
(folder / "said.new").write_text(said)
(folder / "said.new").rename(folder / "said")
"""


@pytest.mark.slow
@pytest.mark.parametrize("remembers", ["yes", "no"])
def test_a_server_is_judged_by_where_it_was_started(tmp_path: Path, remembers: str) -> None:
    with subprocess.Popen(["sleep", "120"]) as run:
        shell, terminal = pty.fork()
        if shell == 0:
            command = [sys.executable, "-c", SERVER, str(tmp_path), remembers, str(os.getpid()), str(run.pid)]
            subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            time.sleep(60)
            os._exit(0)
        until(tmp_path / "ready")
        # The terminal is closed.
        os.kill(shell, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(shell, 0)
        until(tmp_path / "said")
        run.kill()

    said = (tmp_path / "said").read_text()
    assert said == "allowed" if remembers == "yes" else "was detached from its parents" in said


def until(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"no {path.name}"
        time.sleep(0.02)


@pytest.mark.parametrize("mark", RUN_MARKS)
def test_an_agent_cannot_touch_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    request = SessionRequest(arguments=("--version",), folder=tmp_path, project=tmp_path)
    monkeypatch.setenv(mark, "x")

    for act in (
        lambda: host.start_session(request, SessionsSettings(slots=1)),
        lambda: host.stop_session("s1"),
        lambda: host.remove_session("s1"),
        lambda: host.Control("s1"),
    ):
        with pytest.raises(UserError, match="only a person may"):
            act()
