"""An event listener that appends events to a file, as one line of JSON each.

Each listener has its own queue: a slow one misses events (gaps in `seq`) but never slows the run down.

Settings in `gsd.toml`:

    [my_plugin]
    path = "events.jsonl"
    events = ["step.completed", "run.closed"]
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import attrs
from gsd_core import Event, implements, setting, settings_of
from gsd_core.hookspecs import gsd_on_event, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*path* of the file; if empty, nothing is written. *events* to write; if empty, all."""

    path: str = setting("")
    events: tuple[str, ...] = setting(("step.completed", "step.failed", "cost.changed", "run.closed"))


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_on_event)
async def append(event: Event) -> None:
    """Append the event if it is one of those in the settings."""
    options = settings_of(MyPluginSettings)
    if options.path and (not options.events or event.name in options.events):
        await asyncio.to_thread(_append, options.path, _line(event))


def _line(event: Event) -> str:
    fields = {"seq": event.seq, "at": event.at.isoformat(), "name": event.name, "step": event.step}
    return json.dumps({**fields, "data": dict(event.data)}, default=str)


def _append(path: str, line: str) -> None:
    with Path(path).expanduser().open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
