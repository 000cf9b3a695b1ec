"""A notifier that appends each notification to a file, as one line of JSON.

A run never waits for a notifier; if one fails, the failure is logged and the run continues.

Settings in `gsd.toml`:

    [my_plugin]
    path = "~/gsd-notices.jsonl"
    types = ["question", "error", "crash"]   # all types if omitted
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import attrs
from gsd_core import Notice, implements, setting, settings_of
from gsd_core.hookspecs import gsd_notify, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*path* of the file; if empty, nothing is written. *types* to write; if empty, all."""

    path: str = setting("")
    types: tuple[str, ...] = setting(())


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_notify)
async def append(notice: Notice) -> None:
    """Append the notification if its type is one of those in the settings."""
    options = settings_of(MyPluginSettings)
    if options.path and (not options.types or notice.type in options.types):
        await asyncio.to_thread(_append, options.path, json.dumps(attrs.asdict(notice)))


def _append(path: str, line: str) -> None:
    with Path(path).expanduser().open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
