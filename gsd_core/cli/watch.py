"""``gsd watch``: shows the run of another process as it progresses, and never touches it.

What the run records is enough for the whole view: facts and the agents' activity are in the journal. The
terminal plugin shows it, as in the process that works, because it gets the same events.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_core.errors import ConfigError, GsdError
from gsd_core.hookspecs import RunInfo, gsd_lifespan, gsd_on_event
from gsd_core.model.event import Event
from gsd_core.own_process import data_output
from gsd_core.plugins.calling import Hooks
from gsd_core.settings import Settings, bind_settings, resolve

from .commands import base_command
from .global_options import GlobalOptions, global_options_of, gsd_command
from .options import classes_of
from .output import json_flag, warn
from .plugin_loading import Loaded, hooks_of_only, loaded_plugins
from .run import verbosity_of, verbosity_options
from .streams import background_output

if TYPE_CHECKING:
    from gsd_core.machine.facts import Record

POLL_SECONDS = 0.25
VIEWER = "terminal"
"""The plugin that shows events."""


@gsd_command("watch", "gsd watch -C my-app", "gsd watch --json", last=json_flag)
@verbosity_options
def command(ctx: click.Context, /, as_json: bool, **given: Any) -> None:
    """Watch the run that another process works on, or wait for one.

    It follows the run when it ends, is resumed, or another one starts. q or Ctrl-C leaves, and never touches
    the run. If stdout is not a terminal, it prints lines; with --json, the records of the journal as in
    'gsd log --json', from the beginning of the process that works, or worked last.
    """
    from .log import print_record
    from .project import open_journal, project_root

    options = global_options_of(ctx)
    root = project_root(options)
    with background_output():
        if as_json:
            with suppress(KeyboardInterrupt):
                with open_journal(root) as journal:
                    opened = [record.seq for record in journal.events(kinds=["run.opened"])]
                after = opened[-1] - 1 if opened else 0
                while not getattr(data_output(), "is_gone", False):
                    with open_journal(root) as journal:
                        for record in journal.events(after):
                            after = record.seq
                            print_record(record)
                    time.sleep(POLL_SECONDS)
            return
        hooks, settings = _viewer(loaded_plugins(ctx), options)
        ctx.exit(asyncio.run(_watch(root, options, hooks, settings, verbosity_of(given))))


def _viewer(loaded: Loaded, options: GlobalOptions) -> tuple[Hooks, Settings]:
    """Return the hooks of the terminal alone, and the settings of the run."""
    from .launch import RunOptions, build_settings
    from .project import load

    if not loaded.manager.has_plugin(VIEWER):
        raise ConfigError(f"the plugin {VIEWER!r} shows the run, and it is not loaded", hint="gsd plugins")
    try:
        run = RunOptions(global_options=options, resume=True)
        settings = build_settings(run, loaded, load(options))
    except GsdError as error:
        # An active run can be watched even if a settings file is invalid by now.
        warn([f"the settings do not count: {error}"])
        settings = resolve(classes_of(loaded), [])
    return hooks_of_only(loaded.hooks, [VIEWER]), settings


async def _watch(root: Path, options: GlobalOptions, hooks: Hooks, settings: Settings, verbosity: int) -> int:
    """Show the run until the user leaves; return the exit code."""
    task = asyncio.current_task()
    assert task is not None
    received: list[signal.Signals] = []

    def leave(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)
    follower = _Follower(root, command=base_command(options))
    first, past = follower.begin()
    if not first and not sys.stdout.isatty():
        # The live view says so itself.
        click.echo("waiting for a run; Ctrl-C leaves", err=True)
    info = RunInfo(
        id=follower.state.run,
        project=root,
        no_input=True,
        verbosity=verbosity,
        command=base_command(options),
        plain=options.plain,
        watching=True,
        past=past,
    )
    try:
        with bind_settings(settings.values):
            async with AsyncExitStack() as stack:
                for _, context in hooks.collect(gsd_lifespan, lambda context: str(id(context)), info).items:
                    await stack.enter_async_context(context)
                # No event may be dropped, however long the run has worked already.
                publish = await stack.enter_async_context(hooks.subscribe(gsd_on_event, len(first) + 10_000))
                for event in first:
                    publish(event)
                # What was entered before may have taken the cancellation for its own.
                while not (received or getattr(data_output(), "is_gone", False)):
                    await asyncio.sleep(POLL_SECONDS)
                    for event in await asyncio.to_thread(follower.more):
                        publish(event)
    except asyncio.CancelledError:
        if not received:
            raise
    return 128 + received[0] if received and received[0] != signal.SIGINT else 0


class _Follower:
    """Reads the journal of a project as it grows, and translates its records to events."""

    def __init__(self, root: Path, command: str) -> None:
        from gsd_core.machine.state import State

        self.state = State()
        self._root = root
        self._command = command
        self._seq = 0
        self._is_cut_off = False

    def begin(self) -> tuple[list[Event], int]:
        """Return the events of the last run so far, and the number of the first that is worth a line.

        Of the agents' activity only that of the step in progress.
        """
        from gsd_core.run.last_run import read_last_run

        from .project import open_journal

        with open_journal(self._root) as journal:
            seq, run = journal.last_seq(), read_last_run(journal, self._root).id
            facts = list(journal.events(run=run, facts_only=True))
            begun = [fact.seq for fact in facts if fact.kind == "attempt.started"]
            opened = [fact.seq for fact in facts if fact.kind == "run.opened"]
            recent = begun[-1] if begun else 0
            # In the journal's order: activity has its place between the facts.
            records = [*(fact for fact in facts if fact.seq <= recent), *journal.events(recent, run=run)]
        self._seq = max(seq, records[-1].seq if records else 0)
        return [*self._events(records), *self._cut_off()], opened[-1] if opened else 0

    def more(self) -> list[Event]:
        """Return the events since the last call."""
        from .project import open_journal

        ended = self._cut_off()
        with open_journal(self._root) as journal:
            records = list(journal.events(self._seq))
        if records:
            self._seq, self._is_cut_off = records[-1].seq, False
            ended = []
        return [*ended, *self._events(records)]

    def _events(self, records: list[Record]) -> Iterator[Event]:
        from gsd_core.machine.fold import fold
        from gsd_core.run.publishing import events_of

        for record in records:
            self.state = fold(self.state, [record])
            yield from events_of(self.state, record)

    def _cut_off(self) -> list[Event]:
        """Return the event that says so, once, if the process is gone and has not closed the run."""
        from .project import holder_of, now

        state = self.state
        if not state.run or state.closed or self._is_cut_off or holder_of(self._root):
            return []
        self._is_cut_off = True
        reason = f"its process was killed; continue with: {self._command} resume"
        data = {"outcome": "interrupted", "reason": reason}
        return [Event(seq=self._seq, name="run.closed", at=state.last_at or now(), run=state.run, data=data)]
