"""Events for plugins that keep up, lag, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs

from gsd_core import Event
from gsd_core.hookspecs import gsd_on_event
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from tests.hooks import behaviors
from tests.hooks.behaviors import HOUR, INSTANT, event, make


def listening(grace: Any = HOUR, /, **named: Callable[..., Any]) -> tuple[Hooks, list[PluginFailure]]:
    failures: list[PluginFailure] = []
    return attrs.evolve(make(gsd_on_event, grace, **named), report=failures.append), failures


async def until(holds: Callable[[], bool]) -> None:
    """Let the other tasks run until the condition holds."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never held")


def test_every_plugin_receives_every_event_in_order_before_the_end() -> None:
    seen: list[tuple[str, int]] = []

    def notes(name: str) -> Any:
        async def note(event: Event) -> None:
            await asyncio.sleep(0)
            seen.append((name, event.seq))

        return note

    async def main() -> None:
        hooks, _ = listening(a=notes("a"), b=notes("b"))
        async with hooks.subscribe(gsd_on_event) as publish:
            for seq in range(3):
                publish(event(seq))
            assert seen == []

    asyncio.run(main())
    assert sorted(seen) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]


def test_a_slow_plugin_misses_the_oldest_events_is_named_once_and_delays_nobody() -> None:
    seen: dict[str, list[int]] = {"slow": [], "quick": []}

    async def main() -> list[PluginFailure]:
        go_on = asyncio.Event()

        async def slow(event: Event) -> None:
            await go_on.wait()
            seen["slow"].append(event.seq)

        async def quick(event: Event) -> None:
            seen["quick"].append(event.seq)

        hooks, failures = listening(slow=slow, quick=quick)
        async with hooks.subscribe(gsd_on_event, 2) as publish:
            for seq in range(6):
                publish(event(seq))
                await until(lambda: len(seen["quick"]) == seq + 1)  # noqa: B023 - awaited here
            go_on.set()
        return failures

    [failure] = asyncio.run(main())
    assert seen == {"slow": [0, 4, 5], "quick": [0, 1, 2, 3, 4, 5]}
    assert failure == PluginFailure(
        plugin="slow", hook="gsd_on_event", error="is slow: more than 2 events behind, it misses the oldest"
    )


def test_a_plugin_that_keeps_failing_is_unsubscribed_so_that_reports_do_not_loop() -> None:
    calls: list[int] = []

    async def fails(event: Event) -> None:
        calls.append(event.seq)
        raise ValueError("boom")

    async def main() -> list[str]:
        failures: list[str] = []
        publishers: list[Callable[[Event], None]] = []

        def report(failure: PluginFailure) -> None:
            failures.append(failure.error)
            publishers[0](event(len(failures)))

        hooks = attrs.evolve(make(gsd_on_event, p=fails), report=report)
        async with hooks.subscribe(gsd_on_event) as publish:
            publishers.append(publish)
            publish(event(0))
            await until(lambda: len(failures) == 4)
        return failures

    assert asyncio.run(main()) == ["ValueError('boom')"] * 3 + ["failed 3 times and receives no more events"]
    assert calls == [0, 1, 2]


def test_a_plugin_that_hangs_delays_the_end_by_its_grace_at_most() -> None:
    async def main() -> int:
        hooks, _ = listening(INSTANT, p=behaviors.hangs)
        async with hooks.subscribe(gsd_on_event) as publish:
            publish(event(1))
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
