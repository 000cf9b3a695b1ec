"""The list of changes that readers follow."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core import Session
from gsd_plugins.sessions.changes import Changes, ShieldedTasks
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = Session(id="s1", project=Path("/p"), command=("run",), state="running", created=NOW, updated=NOW)


def publish(changes: Changes, count: int) -> None:
    changes.publish((SESSION, None, 0) for _ in range(count))


@given(st.integers(1, 20), st.lists(st.integers(0, 30), max_size=8), st.integers(0, 200))
def test_a_reader_gets_every_change_once_or_learns_that_some_are_gone(
    kept: int, counts: list[int], after: int
) -> None:
    changes = Changes(kept=kept)
    for count in counts:
        publish(changes, count)

    found, lost = changes.after(after)

    total = sum(counts)
    numbers = [change.number for change in found]
    assert changes.number == total
    if lost:
        assert after > total or after < total - kept
        assert numbers == list(range(total - len(numbers) + 1, total + 1))
        assert len(numbers) >= min(kept, total)
    else:
        assert numbers == list(range(after + 1, total + 1))


def test_the_memory_is_bounded() -> None:
    changes = Changes(kept=100)
    for _ in range(1000):
        publish(changes, 7)

    found, lost = changes.after(0)

    assert lost
    assert 100 <= len(found) <= 125 + 7


def test_a_reader_that_waits_is_woken_by_the_next_change() -> None:
    async def waited() -> tuple[int, int]:
        changes = Changes(kept=10)
        waiting = asyncio.create_task(changes.wait(0, 60))
        await asyncio.sleep(0)
        publish(changes, 0)
        publish(changes, 2)
        return await waiting, await changes.wait(2, 0.01)

    assert asyncio.run(waited()) == (2, 2)


@pytest.mark.parametrize("number", [49_990, 50_000])
def test_a_position_near_the_end_costs_only_what_is_after_it(number: int) -> None:
    changes = Changes(kept=50_000)
    publish(changes, 50_000)

    found, lost = changes.after(number)

    assert (len(found), lost) == (50_000 - number, False)


def test_what_a_reader_that_is_cancelled_has_found_is_not_lost(tmp_path: Path) -> None:
    async def followed() -> list[str]:
        with Registry() as registry:
            session = registry.add(project=tmp_path, folder=tmp_path, command=["run"]).id
            async with Harness(poll_seconds=3600) as harness:
                for number in range(50):
                    registry.update(session, reason=f"reason {number}")
                    reader = asyncio.create_task(harness.refresh())
                    # It has begun, and a thread reads for it.
                    for _ in range(number % 5 + 1):
                        await asyncio.sleep(0)
                    reader.cancel()
                    await harness.refresh()
                return [change.session.reason for change in harness.changes.after(0)[0]]

    assert asyncio.run(followed()) == ["", *(f"reason {number}" for number in range(50))]


def test_whoever_waits_for_unbroken_work_waits_for_its_threads() -> None:
    async def followed() -> list[str]:
        order: list[str] = []
        is_read = threading.Event()
        reads = ShieldedTasks()

        def read() -> None:
            is_read.wait(30)
            order.append("read")

        reader = asyncio.create_task(reads.run(asyncio.to_thread(read)))
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        assert reader.cancelled()
        closing = asyncio.create_task(reads.wait())
        await asyncio.sleep(0.02)
        assert not closing.done()
        is_read.set()
        await closing
        return [*order, "closed"]

    assert asyncio.run(followed()) == ["read", "closed"]


def test_a_harness_that_is_left_during_a_poll_closes_the_registry_after_it(tmp_path: Path) -> None:
    with Registry() as registry:
        for _ in range(300):
            registry.add(project=tmp_path, folder=tmp_path, command=["run"])

        async def left() -> None:
            for number in range(15):
                async with Harness(poll_seconds=0):
                    # Each poll reads all sessions again.
                    registry.update("s1", reason=str(number))
                    await asyncio.sleep(number / 2000)

        # The loop reports what fails in its threads as well.
        asyncio.run(left())
