"""Tests of the plugin; run them with pytest."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gsd_core import UnitProcesses, WorkUnit
from gsd_core.testing.conformance import check_dispatch, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import dispatch as plugin

UNIT = WorkUnit(
    id="u1",
    run="r1",
    step="1/execute/01-01",
    phase="1",
    plan="01-01",
    remote="/nonexistent",
    base="0" * 40,
    branch="gsd/u1",
)


def test_the_hook_returns_a_dispatcher(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(folder=str(tmp_path)))

    assert check_settings(plugin) == (plugin.MyPluginSettings,)
    assert check_dispatch(plugin) == UnitProcesses(folder=tmp_path)


def test_a_unit_whose_remote_cannot_be_reached_ends_with_the_reason(tmp_path: Path) -> None:
    async def work() -> str:
        found = UnitProcesses(folder=tmp_path)
        await found.submit(UNIT)
        assert [fact async for fact in found.facts("u1")] == []
        return (await found.wait("u1")).problem

    assert "/nonexistent" in asyncio.run(work())
