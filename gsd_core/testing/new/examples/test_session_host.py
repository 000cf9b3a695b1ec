"""Tests of the plugin; run them with pytest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gsd_core import SessionRequest, UserError
from gsd_core.testing.conformance import check_session_host, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import session_host as plugin


def test_the_hook_returns_a_host(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(output=str(tmp_path)))

    assert check_settings(plugin) == (plugin.MyPluginSettings,)
    assert isinstance(host := check_session_host(plugin), plugin.Processes)
    assert host.output == tmp_path


def test_a_session_is_started_and_stopped(tmp_path: Path) -> None:
    sleep = (sys.executable, "-c", "import time; print('started', flush=True); time.sleep(60)")
    host = plugin.Processes(tmp_path, command=sleep)

    session = host.start(SessionRequest(arguments=("run",), folder=tmp_path, project=tmp_path))

    assert [one.id for one in host.list()] == [session.id]
    assert host.stop(session.id).state == "stopped"
    assert host.stop(session.id).exit != 0


def test_a_session_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no session"):
        plugin.Processes(tmp_path).stop("p9")
