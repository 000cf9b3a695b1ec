"""Call the workspace through its hook."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gsd_core import Permanent
from gsd_core.testing import a_step
from gsd_core.testing.conformance import check_settings, check_workspace
from gsd_core.testing.pytest_plugin import UseSettings

from . import workspace as plugin


def test_a_step_runs_in_the_project(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(megabytes=0))

    assert check_workspace(plugin, a_step(tmp_path)) == tmp_path


def test_a_full_disk_is_a_permanent_failure(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(megabytes=10**12))

    with pytest.raises(Permanent, match="not enough disk space for 1/plan"):
        asyncio.run(plugin.with_free_space(a_step(tmp_path)))


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
