"""Time limits that can be paused: for an agent at work, and for plugins that decide about a step.

A limit counts only the time that its owner uses. While the core works for the owner (runs a check, waits
for a human), the limit is paused. Agents call tools in parallel, so pauses overlap. That is why each owner
has one clock, which stops with the first pause and continues after the last one, and both limits are
compared with that clock. If each pause saved and restored the remaining time instead, two overlapping
pauses would count the time between them wrongly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import attrs

from gsd_core.errors import GsdError, PluginError, Transient
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import in_core


@attrs.define(eq=False, kw_only=True)
class PausableTimeouts:
    """Ends a block after *idle* without a beat, or after *hard* in all; pauses do not count.

    For one block: a pause that outlives the block must not affect the next one.
    """

    idle: timedelta
    hard: timedelta = timedelta.max
    _timeout: asyncio.Timeout | None = attrs.field(default=None, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _error: GsdError | None = attrs.field(default=None, init=False)
    _pauses: int = attrs.field(default=0, init=False)
    # The clock, in seconds: the time counted up to the last stop, and the loop's time of the last start.
    _counted: float = attrs.field(default=0.0, init=False)
    _running_since: float | None = attrs.field(default=None, init=False)
    _last_beat: float = attrs.field(default=0.0, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the block within the limits; raise the error of the one that is reached."""
        try:
            async with asyncio.timeout(None) as self._timeout:
                self._start()
                yield
        except TimeoutError as exc:
            if self._error is None:
                raise
            raise self._error from exc
        finally:
            self._stop()
            self._timeout = None

    def beat(self) -> None:
        """Record activity: the idle limit starts over."""
        self._stop()
        self._last_beat = self._counted
        self._start()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock; the end of a pause counts as activity."""
        self._pauses += 1
        self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self.beat()

    @property
    def is_counting(self) -> bool:
        """Whether the block is running, without a pause."""
        return self._timer is not None

    def _start(self) -> None:
        if self._timeout is None or self._pauses or self._error:
            return
        loop = asyncio.get_running_loop()
        self._running_since = loop.time()
        self._timer = loop.call_at(self._running_since + min(self._left()), self._expire)

    def _stop(self) -> None:
        if self._timer is None or self._running_since is None:
            return
        self._timer.cancel()
        self._counted += asyncio.get_running_loop().time() - self._running_since
        self._timer = self._running_since = None

    def _left(self) -> tuple[float, float]:
        """Return how many seconds are left of the idle and of the hard limit."""
        silent = self._counted - self._last_beat
        return self.idle.total_seconds() - silent, self.hard.total_seconds() - self._counted

    def _expire(self) -> None:
        assert self._timeout is not None, "the timer is stopped when the block ends"
        self._stop()
        idle, hard = self._left()
        # Now, while the tasks that would be named still run.
        self._error = self.error(is_idle=idle <= hard)
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def error(self, *, is_idle: bool) -> GsdError:
        """Return the error for the idle or the hard limit."""
        raise NotImplementedError


@attrs.define(eq=False, kw_only=True)
class AgentTimeouts(PausableTimeouts):
    """The limits of one exchange with an agent; *who* names it. Both end it with ``Transient``.

    An agent that hangs once often answers when it is asked again.
    """

    who: str = "the agent"

    def error(self, *, is_idle: bool) -> GsdError:
        """Return the error for the idle or the hard limit."""
        if is_idle:
            return Transient(f"{self.who} reported no activity for {self.idle}")
        return Transient(f"{self.who} took longer than {self.hard}")


@attrs.define(eq=False)
class Turns:
    """The turns that agents are in; once the run is *leaving*, it waits for their ends.

    A turn ends when the agent reports what its model used, and then asks the core for something. The tools
    that it wants to use by then are not started: its conversation continues with them. An agent that waits
    for the core is in no turn; one whose answer is *closing*, which is about to be recorded, still is.
    """

    leaving: bool = attrs.field(default=False, init=False)
    closing: int = attrs.field(default=0, init=False)
    _clocks: list[AgentTimeouts] = attrs.field(factory=list[AgentTimeouts], init=False)

    @property
    def in_progress(self) -> int:
        """How many agents are in a turn now."""
        return sum(clock.is_counting for clock in self._clocks) + self.closing

    @contextmanager
    def of(self, clock: AgentTimeouts) -> Generator[None]:
        """Count the turns of one exchange with an agent."""
        self._clocks.append(clock)
        try:
            yield
        finally:
            self._clocks.remove(clock)

    @contextmanager
    def closes(self) -> Generator[None]:
        """Count an agent's answer as in progress until it is recorded."""
        self.closing += 1
        try:
            yield
        finally:
            self.closing -= 1

    async def begin(self) -> None:
        """Return if another turn may begin; else never, because the run is about to be stopped."""
        if self.leaving:
            await asyncio.Event().wait()


@attrs.define(eq=False, kw_only=True)
class InactivityTimeout(PausableTimeouts):
    """The limit for plugins that decide: how long one may neither return nor call the core.

    How long a whole step may take is not limited: it consists of agent calls, which are. *culprits* names
    the plugins that are at work; it is called when the time is up.
    """

    hook: str
    culprits: Callable[[], str]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the block within the limit; calls of the core from within it pause the limit."""
        token = _current.set(self)
        try:
            async with PausableTimeouts.running(self):
                yield
        finally:
            _current.reset(token)

    def error(self, *, is_idle: bool) -> GsdError:
        """Return the error with the names of the plugins at work."""
        return PluginError(self.culprits(), self.hook, f"did nothing for {self.idle}")


# Each call of a plugin runs in its own context, so this is the limit of the call that is calling back: a
# function that hangs is noticed although the executor that passed it waits for the core.
_current: ContextVar[InactivityTimeout | None] = ContextVar("gsd_inactivity_timeout", default=None)


@contextmanager
def core_at_work() -> Generator[None]:
    """Mark a plugin's call of the core: during it, the plugin is neither to blame nor inactive."""
    timeout = _current.get()
    with in_core(), timeout.paused() if timeout else nullcontext():
        yield


def inactivity_of(hooks: Hooks, spec: Callable[..., Any], limit: timedelta) -> InactivityTimeout:
    """Return the limit for a call of the hook *spec*."""

    def culprits() -> str:
        plugins = hooks.plugins_of(spec)
        names = {task.get_name() for task in asyncio.all_tasks()}
        running = [plugin for plugin in plugins if f"{plugin}:{spec.__name__}" in names]
        # Of several wrappers, the innermost is the one that does not continue.
        return running[-1] if running else ", ".join(plugins)

    return InactivityTimeout(idle=limit, hook=spec.__name__, culprits=culprits)
