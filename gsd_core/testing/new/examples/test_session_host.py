"""Tests of the plugin; run them with pytest."""

from __future__ import annotations

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
    """Return a request for a session in *folder*."""
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


def _ended(host: plugin.Processes, session: str) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if next(one for one in host.list() if one.id == session).state != "running":
            return True
        time.sleep(0.05)
    return False
