"""The plugins of this installation, as ``gsd plugins --json`` lists them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from gsd_core import CommandOptions, GsdError, settings_of
from gsd_plugins.sessions import run_gsd

from .errors import Refused

START_DELAY = 1.0
"""How long the server answers requests first: the command takes a second of processor time."""


@attrs.define
class PluginList:
    """Reads the list once, in another process, because that imports every plugin."""

    _task: asyncio.Task[list[Any]] | None = attrs.field(default=None, init=False)

    async def prefetch(self) -> None:
        """Read the list soon, so that the first page that shows it need not wait."""
        await asyncio.sleep(START_DELAY)
        # Whoever asks for it then gets the error, after another try.
        with suppress(Refused):
            await self.get()

    async def get(self) -> Sequence[Any]:
        """Return the list; raise :class:`Refused` if it cannot be read."""
        if self._task is None or (self._task.done() and self._task.exception()):
            self._task = asyncio.create_task(_read(), name="plugins")
        # Others may wait for it too.
        return await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """End the process, if it runs."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _read() -> list[Any]:
    try:
        options = settings_of(CommandOptions).plugin_options
        _, printed, _ = await run_gsd([*options, "plugins", "--json"], Path.home())
        found: list[Any] = json.loads(printed)["plugins"]
    except (GsdError, OSError, ValueError, KeyError) as error:
        raise Refused(500, "cannot list the plugins", "see: gsd plugins") from error
    return found
