"""Tests of the plugin; run them with pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gsd_core import SessionRequest, UserError
from gsd_core.testing.conformance import check_session_host, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import session_host as plugin

SLEEP = (sys.executable, "-c", "import time; print('started', flush=True); time.sleep(60)")


def request(folder: Path) -> SessionRequest:
    """Return a request for a run in *folder*."""
    return SessionRequest(arguments=("run",), folder=folder, project=folder)


def test_the_hook_returns_a_host(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(folder=str(tmp_path)))

    assert check_settings(plugin) == (plugin.MyPluginSettings,)
    assert isinstance(host := check_session_host(plugin), plugin.Processes)
    assert host.folder == tmp_path


def test_a_session_is_stopped_by_another_process_of_gsd(tmp_path: Path) -> None:
    session = plugin.Processes(tmp_path, command=SLEEP).start(request(tmp_path))
    later = plugin.Processes(tmp_path)

    assert [one.state for one in later.list()] == ["running"]
    assert later.stop(session.id).id == session.id
    assert _ended(later, session.id)
    with pytest.raises(UserError, match="has ended"):
        later.stop(session.id)


def test_each_session_has_a_name_and_its_own_output(tmp_path: Path) -> None:
    hosts = [plugin.Processes(tmp_path, command=(sys.executable, "-c", "print('x')")) for _ in range(2)]
    names = [host.start(request(tmp_path)).id for host in hosts]

    assert names == ["p1", "p2"]
    assert all(_ended(hosts[0], name) for name in names)
    assert [(tmp_path / f"{name}.log").read_text() for name in names] == ["x\n", "x\n"]


def test_a_session_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no session"):
        plugin.Processes(tmp_path).stop("p9")


def test_a_process_that_nobody_has_waited_for_has_ended(tmp_path: Path) -> None:
    host = plugin.Processes(tmp_path, command=SLEEP)
    session = host.start(request(tmp_path))
    # Until somebody waits for it, it stays a zombie, as where process 1 of a container does not wait.
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        _change(tmp_path / f"{session.id}.json", pid=child.pid)
        assert [one.state for one in host.list()] == ["completed"]
    finally:
        child.wait()
        _change(tmp_path / f"{session.id}.json", pid=session.pid)
        host.stop(session.id)


def test_a_later_process_with_the_same_id_is_not_the_session(tmp_path: Path) -> None:
    host = plugin.Processes(tmp_path, command=SLEEP)
    session = host.start(request(tmp_path))
    file = tmp_path / f"{session.id}.json"
    started = json.loads(file.read_text())["pid_started"]

    _change(file, pid_started="1")
    assert [one.state for one in host.list()] == ["completed"]
    with pytest.raises(UserError, match="has ended"):
        host.stop(session.id)

    _change(file, pid_started=started)
    assert host.stop(session.id).state == "running"


def _change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def _ended(host: plugin.Processes, session: str) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if next(one for one in host.list() if one.id == session).state != "running":
            return True
        time.sleep(0.05)
    return False
