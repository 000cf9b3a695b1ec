"""Retries: repeat an attempt after a transient failure, with exponential backoff and jitter.

Only ``Transient`` errors are retried. If the wait would exceed ``max_wait``, the error is passed on:
the core then sets a timer, which survives the process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import attrs

from gsd_core import RunStep, StepRequest, StepResult, Transient, implements, setting, settings_of
from gsd_core.hookspecs import gsd_settings, gsd_wrap_step

if TYPE_CHECKING:
    from tenacity import RetryCallState


@attrs.frozen(kw_only=True)
class RetrySettings:
    """The maximum number of attempts, and the first wait, which doubles each time up to *max_wait*."""

    attempts: int = setting(2)
    wait: timedelta = setting(timedelta(seconds=2))
    max_wait: timedelta = setting(timedelta(seconds=60))


@attrs.frozen(kw_only=True)
class Clock:
    """The time, sleep and randomness that retries use; *jitter* returns a number between 0 and 1."""

    now: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC))
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the retry settings."""
    yield RetrySettings


@implements(gsd_wrap_step, tryfirst=True)
async def retry_step(step: StepRequest, call_next: RunStep) -> StepResult:
    """Run the step, and retry it after a transient failure."""
    return await retry(step, call_next, settings_of(RetrySettings), Clock())


async def retry(step: StepRequest, call_next: RunStep, settings: RetrySettings, clock: Clock) -> StepResult:
    """Call *call_next* until it succeeds, fails permanently, or no attempts are left."""
    # Imported here, because this plugin is always loaded, also for commands that run nothing.
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

    def is_worth_retrying(error: BaseException) -> bool:
        return isinstance(error, Transient) and _time_left(error, clock) <= settings.max_wait

    def wait(state: RetryCallState) -> float:
        # Half of the backoff is jitter, so that runs that failed together do not retry together.
        # The exponent is capped because a timedelta overflows.
        base = settings.wait * 2.0 ** min(state.attempt_number - 1, 30)
        backoff = min(settings.max_wait, base * (1 + clock.jitter()) / 2)
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Transient):
            backoff = max(backoff, _time_left(error, clock))
        return backoff.total_seconds()

    retrying = AsyncRetrying(
        sleep=clock.sleep,
        stop=stop_after_attempt(max(1, settings.attempts)),
        wait=wait,
        retry=retry_if_exception(is_worth_retrying),
        reraise=True,
    )
    return await retrying(call_next, step)


def _time_left(error: Transient, clock: Clock) -> timedelta:
    return error.until - clock.now() if error.until else timedelta(0)
