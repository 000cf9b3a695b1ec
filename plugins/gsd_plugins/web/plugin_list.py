"""What commands of gsd print about plugins: the list of them, and what they show about a project.

The commands are other processes, because they import every plugin.
"""

from __future__ import annotations

import asyncio
import json
import math
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from gsd_core import CommandOptions, GsdError, settings_of
from gsd_plugins.sessions import cancel_tasks, run_gsd

from .errors import Refused, require_folder

KEEP_SECONDS = 30.0
"""How old panels may be: a look at them takes about a second of processor time."""

_Reading: TypeAlias = "asyncio.Task[dict[str, Any]]"


@attrs.define
class PrintedAboutPlugins:
    """Reads the list of this installation's plugins once, and panels at most once in :data:`KEEP_SECONDS`.

    Each raises :class:`Refused` if the command fails.
    """

    _read: dict[tuple[str, ...], tuple[float, _Reading]] = attrs.field(
        factory=dict[tuple[str, ...], tuple[float, _Reading]], init=False
    )

    async def plugins(self) -> Sequence[Any]:
        """Return the list of plugins; if it could not be read before, there is another try."""
        found: list[Any] = (await self._get(math.inf, "plugins"))["plugins"]
        return found

    async def panels(self, root: Path) -> dict[str, Any]:
        """Return the panels of the project at *root*."""
        # The command would say so too, after a second.
        await require_folder(root)
        return await self._get(KEEP_SECONDS, "panels", "-C", str(root))

    async def _get(self, seconds: float, *words: str) -> dict[str, Any]:
        now = time.monotonic()
        for key, (until, task) in list(self._read.items()):
            if task.done() and (until < now or (until == math.inf and task.exception())):
                del self._read[key]
        if words not in self._read:
            self._read[words] = (now + seconds, asyncio.create_task(_printed(words), name=words[0]))
        # Others may wait for it too.
        return await asyncio.shield(self._read[words][1])

    async def aclose(self) -> None:
        """End the processes that run."""
        await cancel_tasks(*(task for _, task in self._read.values()))


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
