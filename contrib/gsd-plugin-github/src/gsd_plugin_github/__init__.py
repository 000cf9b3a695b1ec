"""GitHub for GSD: an issue is an idea, its comments are questions and answers, a pull request is the result.

``gsd github run OWNER/REPO#N`` works on one issue, ``gsd github watch OWNER/REPO`` on those with a label. The
token is in the environment (``GITHUB_TOKEN``), the people who may answer in the user's own settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager

import click

from gsd_core import Answer, Event, Finding, Inquiry, Notice, RunInfo, implements, settings_of
from gsd_core.hookspecs import (
    gsd_answer,
    gsd_cli_commands,
    gsd_doctor,
    gsd_lifespan,
    gsd_notify,
    gsd_on_event,
    gsd_settings,
)

from .settings import TOKEN, GitHubSettings

__all__ = [
    "GitHubSettings",
    "answer",
    "commands",
    "contribute_settings",
    "doctor",
    "lifespan",
    "notify",
    "on_event",
]


@implements(gsd_settings)
def contribute_settings() -> Iterable[type]:
    """Contribute the section ``github``."""
    yield GitHubSettings


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd github``."""
    # Imported late: aiohttp takes a third of a second.
    from .command import group

    yield group


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Use the run's issue, if it has one."""
    chosen = settings_of(GitHubSettings)
    if chosen.issue:
        from .channel import IssueChannel

        yield IssueChannel.open(run, chosen)


@implements(gsd_answer)
async def answer(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Ask in the issue."""
    channel = settings_of(GitHubSettings).channel
    found: Sequence[Answer] | None = await channel.ask(inquiry) if channel else None
    return found


@implements(gsd_on_event)
async def on_event(event: Event) -> None:
    """Show in a question's comment how it was answered."""
    if channel := settings_of(GitHubSettings).channel:
        channel.see(event)


@implements(gsd_notify)
async def notify(notice: Notice) -> None:
    """Post a question that nobody may answer in the issue, and reminders of one that stays open."""
    if channel := settings_of(GitHubSettings).channel:
        await channel.notify(notice)


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Check that there is a token, and somebody who may answer."""
    chosen = settings_of(GitHubSettings)
    if chosen.issue or chosen.users:
        found = bool(os.environ.get(TOKEN))
        message = f"{TOKEN} is {'set' if found else 'not set'}"
        yield Finding(name="github token", ok=found, message=message, fix=f"set {TOKEN}")
