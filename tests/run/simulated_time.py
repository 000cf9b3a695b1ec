"""An event loop with simulated time: it passes only while all tasks sleep, and takes no real time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _SimulatedSelector(selectors.SelectSelector):
    """Advances the simulated time where a real selector would wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: nothing is scheduled, so nothing can happen any more")
        self.now += max(timeout, 0)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Starts at 0 and jumps from one timer to the next one."""

    def __init__(self) -> None:
        self._simulated = _SimulatedSelector()
        super().__init__(self._simulated)

    def time(self) -> float:
        """Return the simulated time, in seconds."""
        return self._simulated.now


def run_simulated(main: Coroutine[Any, Any, T]) -> T:
    """Run *main* to its end in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
