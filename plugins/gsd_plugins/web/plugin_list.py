"""What commands of gsd print about plugins: the list of them, and what they show about a project.

The commands are other processes, because they import every plugin.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from gsd_core import CommandOptions, GsdError, settings_of
from gsd_plugins.sessions import cancel_tasks, run_gsd

from .errors import Refused, require_folder

START_DELAY = 1.0
"""How long the server answers requests first: the command takes a second of processor time."""
KEEP_SECONDS = 30.0
"""How old panels may be: each look at them takes almost as much."""


@attrs.define
class PluginList:
    """Reads the list of this installation's plugins once."""

    _task: asyncio.Task[dict[str, Any]] | None = attrs.field(default=None, init=False)

    async def prefetch(self) -> None:
        """Read the list soon, so that the first page that shows it need not wait."""
        await asyncio.sleep(START_DELAY)
        # Whoever asks for it then gets the error, after another try.
        with suppress(Refused):
            await self.get()

    async def get(self) -> Sequence[Any]:
        """Return the list; raise :class:`Refused` if it cannot be read."""
        if self._task is None or (self._task.done() and self._task.exception()):
            self._task = asyncio.create_task(_printed(["plugins"]), name="plugins")
        # Others may wait for it too.
        found: list[Any] = (await asyncio.shield(self._task))["plugins"]
        return found

    async def aclose(self) -> None:
        """End the process, if it runs."""
        if self._task:
            await cancel_tasks(self._task)


async def _printed(words: Sequence[str]) -> dict[str, Any]:
    """Return what ``gsd`` with these *words* and ``--json`` prints; raise :class:`Refused` if it fails."""
    try:
        options = settings_of(CommandOptions).plugin_options
        _, printed, _ = await run_gsd([*options, *words, "--json"], Path.home())
        found: dict[str, Any] = json.loads(printed)
    except (GsdError, OSError, ValueError) as error:
        raise Refused(500, f"gsd {words[0]} failed", f"see: {shlex.join(['gsd', *words])}") from error
    if said := found.get("error"):
        raise Refused(409, str(said["message"]), str(said.get("hint", "")))
    return found


@attrs.define
class Panels:
    """Reads the panels of projects, each at most once in :data:`KEEP_SECONDS`."""

    _read: dict[Path, tuple[float, asyncio.Task[dict[str, Any]]]] = attrs.field(
        factory=dict[Path, "tuple[float, asyncio.Task[dict[str, Any]]]"], init=False
    )

    async def get(self, root: Path) -> dict[str, Any]:
        """Return the panels of the project at *root*; raise :class:`Refused` if they cannot be read."""
        now = time.monotonic()
        over = [one for one, (at, task) in self._read.items() if task.done() and now - at > KEEP_SECONDS]
        for one in over:
            del self._read[one]
        # The command would say so too, after a second.
        await require_folder(root)
        if root not in self._read:
            task = asyncio.create_task(_printed(["panels", "-C", str(root)]), name="panels")
            self._read[root] = (now, task)
        return await asyncio.shield(self._read[root][1])

    async def aclose(self) -> None:
        """End the processes that run."""
        await cancel_tasks(*(task for _, task in self._read.values()))
