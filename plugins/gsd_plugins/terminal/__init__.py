"""The terminal: shows a run while it goes on, and asks the human who sits there.

One owner of the one terminal. On a terminal there is a live view on stderr, elsewhere a line for
each event worth one; ``--output-format stream-json`` puts every event on stdout as a line of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from attrs import field, frozen

from gsd_core import Answer, Event, Inquiry, Notice, RunInfo, implements, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_lifespan, gsd_notify, gsd_on_event, gsd_settings

from .stage import Stage


@frozen(kw_only=True)
class TerminalSettings:
    """Nothing to set; what belongs to one run hangs on its settings, as two runs may share a process."""

    _stage: Stage = field(factory=Stage, init=False, eq=False, repr=False)

    @property
    def stage(self) -> Stage:
        """The run's terminal."""
        return self._stage


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute a place for what belongs to one run."""
    yield TerminalSettings


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Own the terminal while *run* lives."""
    yield settings_of(TerminalSettings).stage.open(run)


@implements(gsd_on_event)
async def show(event: Event) -> None:
    """Show an event."""
    await settings_of(TerminalSettings).stage.show(event)


@implements(gsd_answer)
async def ask(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Ask the human at the terminal, if there is one."""
    return await settings_of(TerminalSettings).stage.ask(inquiry)


@implements(gsd_notify)
async def ring(notice: Notice) -> None:
    """Ring the bell for a question and at the end; tell of a crash. The rest was shown as events."""
    settings_of(TerminalSettings).stage.notice(notice)
