"""Code that blocks the event loop is named, from another thread."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

from gsd_core.hookspecs import gsd_find_gaps, gsd_write_config
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.watchdog import Blocked, Watchdog
from tests.hooks.behaviors import HOUR, INSTANT, PHASE, PROJECT, finds_nothing, make

SOON = timedelta(milliseconds=20)


def watched(run: Any) -> Blocked:
    """Block until the watchdog has reported."""
    seen: list[Blocked] = []
    reported = threading.Event()

    def report(blocked: Blocked) -> None:
        seen.append(blocked)
        reported.set()

    async def main() -> None:
        with Watchdog(report, limit=SOON, pause=INSTANT):
            await run(lambda: reported.wait(30))

    asyncio.run(main())
    [blocked] = seen
    return blocked


def test_a_plugin_that_blocks_the_loop_is_named_with_file_and_line() -> None:
    async def run(block: Any) -> None:
        async def blocks(phase: object) -> list[Any]:
            block()
            return []

        await make(gsd_find_gaps, p=blocks).fan_out(gsd_find_gaps, HOUR, PHASE)

    blocked = watched(run)
    assert (blocked.plugin, blocked.hook) == ("p", "gsd_find_gaps")
    assert "threading.py" in blocked.where
    assert str(blocked).startswith("plugin 'p' in gsd_find_gaps has blocked the event loop for 0.02 s, at ")


def test_a_plain_function_that_blocks_is_named_too() -> None:
    async def run(block: Any) -> None:
        def blocks(project: object) -> list[Any]:
            block()
            return []

        make(gsd_write_config, p=blocks).collect(gsd_write_config, str, PROJECT)

    blocked = watched(run)
    assert (blocked.plugin, blocked.hook) == ("p", "gsd_write_config")


def test_no_plugin_is_blamed_if_the_core_blocks_the_loop() -> None:
    async def run(block: Any) -> None:
        block()

    blocked = watched(run)
    assert blocked.plugin == ""
    assert str(blocked).startswith(f"task {blocked.task!r} has blocked the event loop")


def test_a_loop_that_is_not_blocked_is_not_reported() -> None:
    seen: list[Blocked] = []

    async def main(hooks: Hooks) -> None:
        with Watchdog(seen.append, limit=timedelta(seconds=5), pause=timedelta(milliseconds=1)):
            for _ in range(100):
                await hooks.fan_out(gsd_find_gaps, HOUR, PHASE)

    asyncio.run(main(make(gsd_find_gaps, p=finds_nothing)))
    assert seen == []
