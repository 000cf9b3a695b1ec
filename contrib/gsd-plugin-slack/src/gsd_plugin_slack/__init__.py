"""Slack for GSD: a thread for each run, with its progress and its questions, which can be answered there.

The tokens are in the environment (``SLACK_BOT_TOKEN``, ``SLACK_APP_TOKEN``), the channel and the people who
may answer in the settings. The connection is made by Slack's own Bolt in Socket Mode, so the machine needs
no public address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from gsd_core import Answer, Event, Finding, Inquiry, Notice, RunInfo, implements, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_doctor, gsd_lifespan, gsd_notify, gsd_on_event, gsd_settings

from .settings import SlackSettings

__all__ = ["SlackSettings", "answer", "contribute_settings", "doctor", "lifespan", "notify", "on_event"]


@implements(gsd_settings)
def contribute_settings() -> Iterable[type]:
    """Contribute the section ``slack``."""
    yield SlackSettings


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Connect to Slack if a channel is set; a token that is missing ends the start."""
    chosen = settings_of(SlackSettings)
    if chosen.channel:
        # Imported late: Bolt and aiohttp take most of a second.
        from .session import SlackSession

        yield SlackSession.open(run, chosen)


@implements(gsd_answer)
async def answer(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Ask in the run's thread."""
    session = settings_of(SlackSettings).session
    return await session.ask(inquiry) if session else None


@implements(gsd_on_event)
async def on_event(event: Event) -> None:
    """Show an event in the run's thread."""
    if session := settings_of(SlackSettings).session:
        session.see(event)


@implements(gsd_notify)
async def notify(notice: Notice) -> None:
    """Wait until the run's thread shows what happened, so that a failure to send it is recorded."""
    if session := settings_of(SlackSettings).session:
        await session.notify(notice)


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check the tokens, the channel and its members."""
    chosen = settings_of(SlackSettings)
    if chosen.channel:
        from .check_setup import examine

        yield from examine(chosen)
