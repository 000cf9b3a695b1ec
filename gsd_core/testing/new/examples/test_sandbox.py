"""Call the sandbox through its hook, and start a process in it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from gsd_core import SandboxedCommand, SandboxUnavailable
from gsd_core.testing import a_process
from gsd_core.testing.conformance import check_sandbox, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import sandbox as plugin


def test_it_says_what_is_missing(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(program="no-such-program"))

    found = check_sandbox(plugin, a_process(tmp_path))

    assert found == SandboxUnavailable(reason="'no-such-program' is not on PATH", fix="install bubblewrap")


def test_places_are_mounted_in_their_order(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    gsd_use_settings(plugin.MyPluginSettings(program=str(program)))
    process = a_process(tmp_path, "make", "test")

    found = asyncio.run(plugin.confine(process))

    assert isinstance(found, SandboxedCommand)
    assert found.command[0] == str(program)
    assert found.command[-3:] == ("--", "make", "test")
    mounted = [found.command.index(str(place.path)) for place in process.places]
    assert mounted == sorted(mounted)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_process_in_it_cannot_write_outside(tmp_path: Path) -> None:
    process = a_process(tmp_path, "sh", "-c", "true")
    if isinstance(asyncio.run(plugin.confine(process)), SandboxedCommand):
        check_sandbox(plugin, process, starts=True)


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
