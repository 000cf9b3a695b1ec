"""Report code that blocks the event loop, and the plugin that it belongs to.

A coroutine that hangs is ended by its time limit; code that does not return to the loop cannot be.
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


@attrs.frozen(kw_only=True)
class Blocked:
    """The loop has been blocked for *limit*, by *plugin* in *hook* if that is known.

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
    """Watches the running loop while it is entered; calls *report* in its own thread.

    Each block is reported once.
    """

    report: Callable[[Blocked], None]
    limit: timedelta = timedelta(seconds=7)
    pause: timedelta = timedelta(seconds=1)
    _ended: threading.Event = attrs.field(init=False, factory=threading.Event)

    def __enter__(self) -> Self:
        watched = (asyncio.get_running_loop(), threading.get_ident())
        threading.Thread(target=self._watch, args=watched, name="gsd watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        pause, limit = self.pause.total_seconds(), self.limit.total_seconds()
        while not self._ended.wait(pause):
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop is closed
                return
            # The second, short wait: a process that was stopped and continued is not blocked.
            if answered.wait(limit) or answered.wait(limit * 0.1) or self._ended.is_set():
                continue
            self.report(self._describe(loop, thread))
            while not answered.wait(pause):
                if self._ended.is_set():
                    return

    def _describe(self, loop: asyncio.AbstractEventLoop, thread: int) -> Blocked:
        task = asyncio.current_task(loop)
        name = blocking_call(thread) or (task.get_name() if task else "")
        plugin, _, hook = name.rpartition(":")
        if not hook.startswith("gsd_"):
            plugin, hook = "", ""
        # The only way to another thread's stack; documented, in spite of its underscore.
        frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
        code = frame.f_code if frame else None
        where = f"{code.co_filename}:{frame.f_lineno} in {code.co_name}" if frame and code else "?"
        return Blocked(plugin=plugin, hook=hook, task=name, where=where, limit=self.limit)
