"""Retries: an attempt that failed for a passing reason is made again, after a pause.

Only ``Transient`` is tried again. A wait longer than ``max_wait`` is not ours: the error passes,
and the core sets a timer that survives the process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import field, frozen

from gsd_core import RunStep, StepRequest, StepResult, Transient, implements, setting, settings_of
from gsd_core.hookspecs import gsd_settings, gsd_wrap_step

if TYPE_CHECKING:
    from tenacity import RetryCallState


@frozen(kw_only=True)
class RetrySettings:
    """How often to try in all, and how long to wait: doubled each time, with jitter, up to *max_wait*."""

    attempts: int = setting(2)
    wait: timedelta = setting(timedelta(seconds=2))
    max_wait: timedelta = setting(timedelta(seconds=60))


@frozen(kw_only=True)
class Clock:
    """What retrying needs of the world; *jitter* is between 0 and 1."""

    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the number of attempts and the waits."""
    yield RetrySettings


@implements(gsd_wrap_step, tryfirst=True)
async def try_again(step: StepRequest, call_next: RunStep) -> StepResult:
    """Make the attempt, and again if it failed for a passing reason."""
    return await retry(step, call_next, settings_of(RetrySettings), Clock())


async def retry(step: StepRequest, call_next: RunStep, settings: RetrySettings, clock: Clock) -> StepResult:
    """Run *call_next* until it succeeds, fails for good, or the attempts are used up."""
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

    retrying = AsyncRetrying(
        sleep=clock.sleep,
        stop=stop_after_attempt(max(1, settings.attempts)),
        wait=lambda state: _pause(state, settings, clock).total_seconds(),
        retry=retry_if_exception(lambda error: _worth_waiting(error, settings, clock)),
        reraise=True,
    )
    return await retrying(call_next, step)


def _worth_waiting(error: BaseException, settings: RetrySettings, clock: Clock) -> bool:
    return isinstance(error, Transient) and _until(error, clock) <= settings.max_wait


def _pause(state: RetryCallState, settings: RetrySettings, clock: Clock) -> timedelta:
    """Half of the back-off is jitter, so that runs that failed together do not return together."""
    base = settings.wait * 2.0 ** min(state.attempt_number - 1, 30)
    backoff = min(settings.max_wait, base * (1 + clock.jitter()) / 2)
    error = state.outcome.exception() if state.outcome else None
    return max(backoff, _until(error, clock)) if isinstance(error, Transient) else backoff


def _until(error: Transient, clock: Clock) -> timedelta:
    return error.until - clock.now() if error.until else timedelta(0)
