"""Notice that code blocks the event loop, and whose it is.

A coroutine that hangs is bounded by its limit; code that does not give the loop back cannot be.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Self

import attrs

from .isolation import blocking_call

_SECOND_LOOK = 0.1  # of the limit: a process that was stopped and goes on is not blocked


@attrs.frozen(kw_only=True)
class Blocked:
    """The loop was not given back for *limit*: by which plugin in which hook, if known, and *where*.

    *task* is the name of the running task, *where* is ``file:line in function``.
    """

    plugin: str
    hook: str
    task: str
    where: str
    limit: timedelta

    def __str__(self) -> str:
        whose = f"plugin {self.plugin!r} in {self.hook}" if self.plugin else f"task {self.task!r}"
        return f"{whose} has blocked the event loop for {self.limit.total_seconds():g} s, at {self.where}"


@attrs.define(eq=False)
class Watchdog:
    """Watches the running loop while it is entered; calls *report*, in a thread of its own.

    Each blockade is reported once.
    """

    report: Callable[[Blocked], None]
    limit: timedelta = timedelta(seconds=7)
    pause: timedelta = timedelta(seconds=1)
    _ended: threading.Event = attrs.field(init=False, factory=threading.Event)

    def __enter__(self) -> Self:
        watch = (asyncio.get_running_loop(), threading.get_ident())
        threading.Thread(target=self._watch, args=watch, name="gsd watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._ended.wait(self.pause.total_seconds()):
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop is closed
                return
            self._await(answered, loop, thread)

    def _await(self, answered: threading.Event, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        limit = self.limit.total_seconds()
        if answered.wait(limit) or answered.wait(limit * _SECOND_LOOK) or self._ended.is_set():
            return
        self.report(self._look(loop, thread))
        while not answered.wait(self.pause.total_seconds()):
            if self._ended.is_set():
                return

    def _look(self, loop: asyncio.AbstractEventLoop, thread: int) -> Blocked:
        task = asyncio.current_task(loop)
        name = blocking_call(thread) or (task.get_name() if task else "")
        plugin, _, hook = name.rpartition(":")
        if not hook.startswith("gsd_"):
            plugin, hook = "", ""
        return Blocked(plugin=plugin, hook=hook, task=name, where=_where(thread), limit=self.limit)


def _where(thread: int) -> str:
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] - documented, underscore or not
    if frame is None:
        return "?"
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
