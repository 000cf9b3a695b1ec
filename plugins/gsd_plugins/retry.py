"""Retries: repeat an attempt after a transient failure, with exponential backoff and jitter.

In an outage (the service is overloaded, or cannot be reached), it tries again until ``outage`` is used up;
after another transient failure, until there were ``attempts``. This plugin only decides when to try
again. It raises the error again with that time in ``until``, and the core waits: its timer survives
the process, is shown to people, and ends with a stop or an answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import attrs

from gsd_core import (
    Outage,
    Postponed,
    RunStep,
    StepRequest,
    StepResult,
    Transient,
    at_most,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_settings, gsd_wrap_step


@attrs.frozen(kw_only=True)
class RetrySettings:
    """When to try again: the first wait is *wait*, each one is twice as long, up to *max_wait*.

    *outage* is how long a step waits in total for a service that does not answer; 0 does not wait.
    *attempts* is the number of attempts for other transient failures, each of which may cost something.
    """

    outage: timedelta = setting(
        timedelta(minutes=20),
        help="how long to wait for a service in an outage",
        harmless=at_most(timedelta(hours=6)),
    )
    attempts: int = setting(
        2, help="the number of attempts after other transient failures", harmless=at_most(10)
    )
    wait: timedelta = setting(
        timedelta(seconds=2),
        help="the first wait; each one is twice as long",
        harmless=at_most(timedelta(minutes=5)),
    )
    max_wait: timedelta = setting(
        timedelta(seconds=60),
        help="the longest wait between two attempts",
        harmless=at_most(timedelta(minutes=5)),
    )


@attrs.frozen(kw_only=True)
class Clock:
    """The time and the randomness that retries use; *jitter* returns a number between 0 and 1."""

    now: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC))
    jitter: Callable[[], float] = random.random


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the retry settings."""
    yield RetrySettings


@implements(gsd_wrap_step, tryfirst=True)
async def retry_step(step: StepRequest, call_next: RunStep) -> StepResult:
    """Run the step; after a transient failure, tell the core when to run it again."""
    return await retry(step, call_next, settings_of(RetrySettings), Clock())


async def retry(step: StepRequest, call_next: RunStep, settings: RetrySettings, clock: Clock) -> StepResult:
    """Call *call_next*; give a transient error the time of the next attempt, if there is to be one."""
    try:
        return await call_next(step)
    except Postponed:
        raise
    except Transient as error:
        # The exponent is capped because a timedelta overflows.
        longest = min(settings.max_wait, settings.wait * 2.0 ** min(step.retries, 20))
        # Half of it is jitter, so that runs that failed together do not try again together.
        backoff = longest * (1 + clock.jitter()) / 2
        if isinstance(error, Outage):
            if step.waited >= settings.outage:
                if settings.outage and not error.hint:
                    error.hint = f"waited {step.waited} for it; try later, or raise retry.outage"
                # With a time, the core would wait for it and try again, however long the outage lasts.
                error.until = None
                raise
        elif error.until is None and step.retries + 1 >= settings.attempts:
            raise
        # The time that a service names counts, but it must not lead to attempts without a pause.
        error.until = max(error.until or clock.now(), clock.now() + backoff)
        raise
