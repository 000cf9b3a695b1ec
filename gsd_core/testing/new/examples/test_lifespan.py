"""Call the resource through its hook."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gsd_core.testing import a_run
from gsd_core.testing.conformance import check_lifespan, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import lifespan as plugin


async def read_during_run(root: Path, path: Path) -> str:
    """Return the file's text while the run is active."""
    [context] = plugin.run_marker(a_run(root))
    async with context:
        return await asyncio.to_thread(path.read_text)


def test_the_file_exists_only_during_the_run(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    path = tmp_path / "running"
    gsd_use_settings(plugin.MyPluginSettings(path=str(path)))

    assert asyncio.run(read_during_run(tmp_path, path)) == "r-test\n"
    assert not path.exists()


def test_the_hook_keeps_its_contract(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(path=str(tmp_path / "running")))

    check_lifespan(plugin, a_run(tmp_path))


def test_without_a_path_there_is_no_file(tmp_path: Path) -> None:
    check_lifespan(plugin, a_run(tmp_path))

    assert list(tmp_path.iterdir()) == []
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
