"""Sessions: runs in the background, each in a process and a terminal of its own, known to one registry.

``gsd run --bg`` starts one, ``gsd ps`` lists them, ``gsd attach`` and ``gsd logs`` show what they print.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from gsd_core import Cap, Event, SessionHost, Spend, implements, setting, settings_of
from gsd_core.hookspecs import (
    gsd_check_budget,
    gsd_cli_commands,
    gsd_on_event,
    gsd_session_host,
    gsd_settings,
)

from .changes import Change as Change
from .changes import cancel_tasks as cancel_tasks
from .changes import end_task as end_task
from .changes import note_questions as note_questions
from .changes import until_one_ends as until_one_ends
from .output import Chunk as Chunk
from .output import whole as whole
from .source import Polled as Polled
from .source import Source as Source
from .starting import CommandRefused as CommandRefused
from .starting import refusal as refusal
from .starting import run_gsd as run_gsd
from .starting import store_idea as store_idea
from .starting import write_private as write_private

if TYPE_CHECKING:
    import click

    from .following import Harness

FOLLOWED = ("run.opened", "run.closed", "question.asked", "question.answered", "question.withdrawn")
MEGABYTE = 1_000_000


@attrs.frozen(kw_only=True)
class SessionsSettings:
    """*slots*: how many agents all sessions may have at once, at least 1; a session has one or more while it
    runs, and waits if none is free. *plan_ahead*: how many phases may be planned and not verified before a
    session plans another one. *park_seconds*: how long a session that only waits for an answer keeps its slot
    if others wait for one. *keep_megabytes*: how much output is kept of each session. *keep_days*: for how
    long a session that has ended is kept; 0 keeps it until ``gsd rm``.
    """

    slots: int = setting(3)
    plan_ahead: int = setting(1)
    park_seconds: int = setting(60)
    keep_megabytes: int = setting(64)
    keep_days: int = setting(30)

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            least = 0 if name in ("plan_ahead", "keep_days") else 1
            if value < least:
                raise ValueError(f"{name} must be at least {least}")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``sessions``."""
    yield SessionsSettings


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd ps``, ``attach``, ``logs`` and ``rm``."""
    from . import cli

    yield from (cli.ps, cli.attach, cli.logs, cli.rm)


@implements(gsd_session_host)
async def local_host() -> SessionHost | None:
    """Run sessions on this machine."""
    from .host import LocalHost

    return LocalHost(settings_of(SessionsSettings))


@implements(gsd_check_budget)
async def share_slots(spend: Spend) -> Cap | None:
    """Let the run of a session execute as many plans side by side as it has slots."""
    session = os.environ.get("GSD_SESSION", "")
    if not (session and spend.wanted):
        return None
    from .state import cap_agents

    return await asyncio.to_thread(cap_agents, session, spend, settings_of(SessionsSettings).slots)


@implements(gsd_on_event)
async def follow_run(event: Event) -> None:
    """Keep the row of the session that this process is: its run, and the question that it waits for."""
    session = os.environ.get("GSD_SESSION", "")
    if session and event.name in FOLLOWED:
        from .state import record_event

        await asyncio.to_thread(record_event, session, event)


def harness() -> Harness:
    """Return a harness, for plugins that show or steer sessions."""
    from .following import Harness

    return Harness()
