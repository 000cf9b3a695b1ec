"""Rate limits: one pace for the agent calls of all runs of this user on this machine.

When a service refuses an agent because of a rate limit or an overload, it would refuse the others as well. So
a file in gsd's state folder, which all processes share, says how often each agent plugin may be called, and
every call gets its turn there (``gsd_check_budget``); the errors of steps say that a service refuses
(``gsd_wrap_step``). A usage limit closes the service for all until it ends; the first call after that is
alone for a while, because it shows whether the limit has ended.

The pace is that of CUBIC (RFC 9438), with calls a second instead of a window: down to a part of what the
service accepted last, back to that within ``recovery``, and then faster and faster.

The file only avoids calls that would be refused. If it cannot be read, locked or written, or if what it says
is impossible, calls are made as if there was none.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import attrs

from gsd_core import (
    GsdError,
    Interference,
    Outage,
    Postpone,
    Postponed,
    RunStep,
    Spend,
    StepRequest,
    StepResult,
    Transient,
    at_most,
    implements,
    setting,
    settings_of,
    state_folder,
)
from gsd_core.hookspecs import gsd_check_budget, gsd_settings, gsd_wrap_step

REDUCED = 0.8
"""The part of the accepted calls a second that is left after a refusal."""
FORGOTTEN = 6
"""After so many times ``recovery`` without a refusal, when it would be 26 times as high, there is no pace."""
FIRST_GAP = 2.0
"""The seconds between two calls after the first refusal, if no call was accepted before."""
LONGEST = timedelta(hours=6).total_seconds()
"""No call waits longer than this because of the file, whatever it says."""
LAPSE = 60.0
"""A turn that was not taken is free again after so many seconds: the run may be gone."""
REHEARSAL = "rehearsal"
"""The agent that plays its limits, and has none."""
FILE, MAX_BYTES = "rate-limits.json", 1_000_000
LOCK_TRIES, LOCK_PAUSE = 20, 0.02


@attrs.frozen(kw_only=True)
class GovernorSettings:
    """How agent calls share a rate limit.

    *recovery* is how long it takes after a refusal until calls are as frequent again as before, and *slowest*
    the longest time between two calls. Limits are shared by the runs with the same agent and the same
    *account*, which is a word of your choice for an account that not all projects use.
    """

    recovery: timedelta = setting(
        timedelta(seconds=20),
        help="how long agent calls are less frequent after a refusal",
        harmless=at_most(timedelta(minutes=5)),
    )
    slowest: timedelta = setting(
        timedelta(seconds=15),
        help="the longest time between two agent calls after refusals",
        harmless=at_most(timedelta(minutes=5)),
    )
    account: str = setting("", help="a name for the account, if not all projects use the same one")


@attrs.define(kw_only=True)
class Pace:
    """How often an agent may be called; times are in seconds since 1970.

    *rate* is how many calls a second the service accepted when it refused one at *since*; 0 is no limit. No
    new turn is before *next*. *turns* are the times of the callers that wait, *started* the callers and times
    of the latest calls that were not refused.
    """

    rate: float = 0.0
    since: float = 0.0
    next: float = 0.0
    turns: dict[str, float] = attrs.field(factory=dict[str, float])
    started: list[tuple[str, float]] = attrs.field(factory=list[tuple[str, float]])

    def speed(self, at: float, settings: GovernorSettings) -> float:
        """Return how many calls a second may start *at* a time; 0 is no limit."""
        recovered = max(at - self.since, 0.0) / max(settings.recovery.total_seconds(), 0.001)
        if recovered > FORGOTTEN:
            return 0.0
        return self.rate * (1 - (1 - REDUCED) * (1 - recovered) ** 3)

    def turn(self, caller: str, now: float, settings: GovernorSettings) -> float:
        """Return when *caller* may make a call: now, or a time that is kept for it."""
        self.turns = {who: at for who, at in self.turns.items() if at > now - LAPSE}
        if caller not in self.turns:
            at = self.turns[caller] = max(self.next, now)
            speed = self.speed(at, settings)
            self.next = at + (min(1 / speed, settings.slowest.total_seconds()) if speed else 0.0)
        return self.turns[caller]

    def start(self, caller: str, now: float, settings: GovernorSettings) -> None:
        """Note that *caller* makes its call now."""
        self.turns.pop(caller, None)
        self.started = [*self._recent(now, settings), (caller, now)]

    def refuse(self, caller: str, now: float, until: float, settings: GovernorSettings) -> None:
        """Slow down: the service refused the last call of *caller*, and accepts none before *until*."""
        before = self.speed(now, settings) or 2 / FIRST_GAP
        self.started = self._recent(now, settings)
        refused = next((one for one in reversed(self.started) if one[0] == caller), None)
        if refused:
            self.started.remove(refused)
        accepted = len(self.started) / max(now - self.started[0][1], 0.1) if self.started else before / 2
        self.rate = max(accepted, 1 / max(settings.slowest.total_seconds(), 0.001))
        self.since = max(now, until)
        after = refused[1] + 1 / self.speed(now, settings) if refused else now
        self._not_before(max(until, after))

    def close(self, until: float, settings: GovernorSettings) -> None:
        """Let nobody make a call before *until*, and then one by one."""
        # Others meet the same limit, and say so later.
        if until > self.since + 1:
            self.rate, self.since = 1 / max(settings.slowest.total_seconds(), 0.001), until
            self._not_before(until)

    def _not_before(self, until: float) -> None:
        self.next = max(self.next, until)
        self.turns = {who: at for who, at in self.turns.items() if at >= until}

    def _recent(self, now: float, settings: GovernorSettings) -> list[tuple[str, float]]:
        return [one for one in self.started if one[1] > now - settings.recovery.total_seconds()]


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings of the governor."""
    yield GovernorSettings


@implements(gsd_check_budget)
async def wait_for_turn(spend: Spend) -> Postpone | None:
    """Let a call wait for its turn."""
    settings, caller = settings_of(GovernorSettings), f"{spend.run} {spend.step}"
    agents = [agent for agent in spend.agents if agent != REHEARSAL]

    def take(paces: dict[str, Pace], now: float) -> float:
        found = [paces.setdefault(f"{agent} {settings.account}", Pace()) for agent in agents]
        at = max(pace.turn(caller, now, settings) for pace in found)
        if at > now:
            return at
        for pace in found:
            pace.start(caller, now, settings)
        return 0.0

    if not agents or not (at := await _shared(take)):
        return None
    names = " or ".join(map(repr, agents))
    reason = f"the rate limit of the agent {names}, which all runs on this machine share"
    return Postpone(reason=reason, until=datetime.fromtimestamp(at, UTC))


@implements(gsd_wrap_step)
async def note_refusals(step: StepRequest, call_next: RunStep) -> StepResult:
    """Run the step; after a refusal, all calls are less frequent, and the step is told its turn."""
    try:
        return await call_next(step)
    except (Interference, Postponed):
        raise
    except Transient as error:
        agent, is_outage = error.plugin, isinstance(error, Outage)
        until = error.until.timestamp() if error.until else 0.0
        if (is_outage or until) and agent != REHEARSAL and until <= time.time() + LONGEST:
            settings, caller = settings_of(GovernorSettings), f"{step.run} {step.id}"

            def refused(paces: dict[str, Pace], now: float) -> float:
                pace = paces.setdefault(f"{agent} {settings.account}", Pace())
                if is_outage:
                    pace.refuse(caller, now, until, settings)
                else:
                    pace.close(until, settings)
                return pace.turn(caller, now, settings)

            at = await _shared(refused)
            if at > until:
                error.until = datetime.fromtimestamp(at, UTC)
        raise


async def _shared(change: Callable[[dict[str, Pace], float], float]) -> float:
    """Return what *change* makes of the paces and the time; 0 if the file cannot be used."""
    with suppress(OSError, GsdError):
        path = state_folder() / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        # Neither through a link nor waiting at a pipe that somebody put there.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
            for _ in range(LOCK_TRIES):
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                # A process that is stopped while it has the lock must not hold up the others.
                await asyncio.sleep(LOCK_PAUSE)
            else:
                return 0.0
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return 0.0
            now = time.time()
            paces = load_paces(os.pread(file.fileno(), MAX_BYTES, 0), now)
            found = change(paces, now)
            data = {"saved": now, "paces": {name: attrs.asdict(pace) for name, pace in paces.items()}}
            # A disk that is full leaves a file that cannot be read, which is as good as none.
            with suppress(OSError):
                text = json.dumps(data).encode()
                os.ftruncate(file.fileno(), os.pwrite(file.fileno(), text, 0))
            return found
    return 0.0


def load_paces(text: bytes, now: float) -> dict[str, Pace]:
    """Return the paces in *text*; none if they are impossible, or from a time that is still to come."""
    try:
        data = json.loads(text or b"{}")
        paces = {str(name): Pace(**values) for name, values in data.get("paces", {}).items()}
        for pace in paces.values():
            pace.started = [(str(who), at) for who, at in pace.started]
            times = [*pace.turns.values(), *(at for _, at in pace.started)]
            # Of a clock that was set back, no time means anything. The comparisons are false for NaN, too.
            if not all(0 <= one <= now + LONGEST for one in (pace.rate, pace.since, pace.next, *times)):
                return {}
        return paces if 0 <= data.get("saved", 0) <= now + 1 else {}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
