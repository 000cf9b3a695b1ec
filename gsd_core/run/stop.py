"""Signals: the first one finishes writing and ends the agent, a second within 3 s ends at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType

from attrs import define, field

from gsd_core.processes import end_marked

AT_ONCE = 3.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ERR = 2
SHOW_CURSOR = b"\r\x1b[?25h"
"""A live view hides it, and has no chance any more to show it."""


@define
class Stopper:
    """What a signal does. *received* is the first signal's number, 0 while there was none."""

    run: str
    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[object]
    received: int = 0
    at: float = field(default=float("-inf"))

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Handle a signal; called by the interpreter even if a plugin blocks the loop in Python code."""
        now = time.monotonic()
        if self.received and now - self.at < AT_ONCE:
            self._end_now(number)
        self.received, self.at = self.received or number, now
        self.loop.call_soon_threadsafe(self.task.cancel)

    def _end_now(self, number: int) -> None:
        """End without asking anyone; what is committed in the journal is there."""
        with suppress(Exception):
            end_marked([self.run], grace=timedelta(seconds=0.5))
        with suppress(OSError):
            if os.isatty(ERR):
                os.write(ERR, SHOW_CURSOR)
        os._exit(128 + number)


@contextmanager
def stopping(run: str) -> Generator[Stopper | None]:
    """Handle SIGINT and SIGTERM for the current task while inside; not outside the main thread."""
    task = asyncio.current_task()
    assert task is not None, "a run is a task"
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    stopper = Stopper(run, asyncio.get_running_loop(), task)
    before: dict[signal.Signals, Callable[..., object] | int | None] = {}
    for number in SIGNALS:
        before[number] = signal.signal(number, stopper)
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
