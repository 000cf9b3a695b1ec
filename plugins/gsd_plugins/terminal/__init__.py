"""The terminal: shows a run as it progresses, and asks the human in front of it.

This plugin alone writes to the terminal during a run. On a terminal it shows a live view on
stderr, elsewhere a line for each important event. ``--output-format stream-json`` writes every
event to stdout as a line of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager

import attrs

from gsd_core import Answer, Delivery, Event, Inquiry, Notice, RunInfo, implements, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_lifespan, gsd_notify, gsd_on_event, gsd_settings
from gsd_plugins.budget import BudgetSettings

from .activity import activity_text as activity_text
from .session import TerminalSession


@attrs.frozen(kw_only=True)
class TerminalSettings:
    """No settings; holds the session of one run, because two runs may share a process."""

    session: TerminalSession = attrs.field(factory=TerminalSession, init=False, eq=False, repr=False)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the object that holds one run's session."""
    yield TerminalSettings


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Use the terminal for as long as *run* lasts."""
    yield settings_of(TerminalSettings).session.open(run, cap=settings_of(BudgetSettings).max_usd)


@implements(gsd_on_event)
async def show(event: Event) -> None:
    """Show an event."""
    await settings_of(TerminalSettings).session.show(event)


@implements(gsd_answer)
async def ask(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Ask the human at the terminal, if there is one."""
    return await settings_of(TerminalSettings).session.ask(inquiry)


@implements(gsd_notify)
async def notify(notice: Notice) -> Sequence[Delivery]:
    """Ring the bell for a question and at the end, and print a crash; events show everything else."""
    settings_of(TerminalSettings).session.notify(notice)
    return ()  # a bell is no delivery: nobody may be there
