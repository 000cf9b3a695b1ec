"""Signals: the first one stops the run cleanly, a second one within three seconds ends it immediately.

A first SIGINT lets the agents finish their turns, which are paid for; the next one stops the run cleanly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import termios
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any

from attrs import define, field

from gsd_core.model.counts import counted
from gsd_core.own_process import exit_at_once
from gsd_core.processes import end_marked

from .timeouts import Turns

log = logging.getLogger(__name__)

SECOND_SIGNAL_WITHIN = timedelta(seconds=3)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TURNS_POLL = timedelta(seconds=0.1)
STDERR = 2
SHOW_CURSOR = b"\r\x1b[?25h"
"""A live view hides the cursor, and has no chance to show it again if the process exits."""


@define(eq=False)
class Stopper:
    """What stops one run; *received* is the first signal's number, 0 if there was none.

    *mark* is that of the run's processes. *farewell* returns what a second signal prints: what is left, and
    how to continue. *turns* are those that agents may finish after SIGINT; *waits*: it waits for them now.
    """

    mark: str
    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[object]
    farewell: Callable[[], str]
    turns: Turns = field(factory=Turns)
    received: int = 0
    waits: bool = field(default=False, init=False)

    def stop(self, number: int) -> None:
        """Cancel the run's task, so that the run is closed properly; called in any thread."""
        first, self.received = not self.received, self.received or number
        then = self._leave if first and number == signal.SIGINT else self._cancel
        with suppress(RuntimeError):  # the loop is closed: the run has ended since
            self.loop.call_soon_threadsafe(then)

    def _leave(self) -> None:
        """Cancel the run's task when no agent is in a turn any more."""
        if self.turns.leaving and not self.waits:
            return  # a second signal has ended the wait
        if not (working := self.turns.in_progress):
            self._cancel()
            return
        if not self.waits:
            whose = counted(working, "agent has finished its turn", "agents have finished their turns")
            log.warning("stopping as soon as %s; press Ctrl-C again to stop now", whose)
        self.turns.leaving = self.waits = True
        self.loop.call_later(TURNS_POLL.total_seconds(), self._leave)

    def _cancel(self) -> None:
        self.waits = False
        if self in _running:
            self.task.cancel()


_running: list[Stopper] = []
"""The runs of this process, which share a listener: the signals are those of the process."""
_restore = ExitStack()
"""Puts back the handlers that were there before the first of them."""


@define
class Listener:
    """The handler of :data:`SIGNALS`, which passes them on to all runs of the process.

    *terminal* is the mode of the terminal before the runs, if there is one: single keys are read without
    echo.

    A thread reads the signals from a pipe, into which Python writes each one as it arrives
    (``signal.set_wakeup_fd``). Python calls handlers in the main thread only, and for several signals of one
    number only once, so a plugin that blocks this thread, such as by a long query, would delay the stop.
    """

    terminal: list[Any] | None
    at: float = field(default=float("-inf"))
    pipe: tuple[int, int] = field(factory=os.pipe)

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Handle a signal that is not in the pipe, because a plugin has set another wakeup descriptor."""
        other = signal.set_wakeup_fd(self.pipe[1])
        if other not in (self.pipe[1], -1):
            signal.set_wakeup_fd(other)
        if other != self.pipe[1]:
            self._arrived(number)

    def read_signals(self) -> None:
        """Handle the signals in the pipe until the number 0."""
        while number := os.read(self.pipe[0], 1)[0]:
            if number in SIGNALS:
                self._arrived(number)

    def _arrived(self, number: int) -> None:
        """Stop the runs; on a second signal, exit."""
        now = time.monotonic()
        if any(stopper.waits for stopper in _running):
            self.at = float("-inf")
        if now - self.at < SECOND_SIGNAL_WITHIN.total_seconds():
            self._exit(number)
        self.at = now
        for stopper in tuple(_running):
            stopper.stop(number)

    def _exit(self, number: int) -> None:
        """Exit without any cleanup in Python, which the blocking plugin would hold up.

        Facts are on disk once they are recorded, so nothing is lost. The agents' processes do not end
        with ours; the next start would find them, but the user expects them to be gone now.
        """
        runs = tuple(_running)
        with suppress(Exception):
            end_marked([stopper.mark for stopper in runs], grace=timedelta(seconds=0.5))
        with suppress(OSError):
            if os.isatty(STDERR):
                os.write(STDERR, SHOW_CURSOR)
        if self.terminal is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(STDERR, termios.TCSANOW, self.terminal)
        for stopper in runs:
            with suppress(Exception):
                os.write(STDERR, f"\n{stopper.farewell()}\n".encode(errors="replace"))
        exit_at_once(128 + number)


@contextmanager
def stopping(mark: str, farewell: Callable[[], str], turns: Turns | None = None) -> Generator[Stopper | None]:
    """Handle :data:`SIGNALS` for the current task of the run with *mark*.

    *farewell* and *turns* are as in :class:`Stopper`. The handlers are restored when the last run of the
    process leaves.

    Yields ``None`` outside the main thread, where Python cannot install handlers.
    """
    task = asyncio.current_task()
    assert task is not None, "a run is a task"
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    stopper = Stopper(mark, asyncio.get_running_loop(), task, farewell, turns or Turns())
    _running.append(stopper)
    try:
        if len(_running) == 1:
            _restore.enter_context(_listening())
        yield stopper
    finally:
        _running.remove(stopper)
        if not _running:
            _restore.close()


@contextmanager
def _listening() -> Generator[None]:
    """Listen to :data:`SIGNALS`; SIGHUP stays ignored if it is, as under ``nohup``."""
    terminal: list[Any] | None = None
    with suppress(OSError, termios.error):
        terminal = termios.tcgetattr(STDERR)
    listener = Listener(terminal)
    os.set_blocking(listener.pipe[1], False)
    reader = threading.Thread(target=listener.read_signals, name="gsd-signals", daemon=True)
    reader.start()
    before: dict[signal.Signals, Callable[..., object] | int | None] = {}
    wakeup = signal.set_wakeup_fd(listener.pipe[1], warn_on_full_buffer=False)
    for number in SIGNALS:
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, listener)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.write(listener.pipe[1], bytes(1))
        reader.join()
        for end in listener.pipe:
            os.close(end)
