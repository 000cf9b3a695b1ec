"""A dispatcher: it says where plans are executed, here in clones in a folder of your own.

Dispatchers are asked in the order of the setting `run.dispatch`, and only if they are listed there.
To use this one for a run: `gsd run --dispatch my_plugin`.
One for several machines has the methods of `gsd_core.Dispatcher`: it puts the unit into a queue, and a worker
on another machine takes it from there and works on it with `UnitProcess`.

Settings in `gsd.toml`:

    [my_plugin]
    folder = "~/.gsd-units"
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs
from gsd_core import Dispatcher, UnitProcesses, implements, setting, settings_of
from gsd_core.hookspecs import gsd_dispatch, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*folder*: where the clones are."""

    folder: str = setting("~/.gsd-units")

    @property
    def path(self) -> Path:
        """The folder's path."""
        return Path(self.folder).expanduser()


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings."""
    yield MyPluginSettings


@implements(gsd_dispatch)
async def dispatcher() -> Dispatcher:
    """Return the dispatcher."""
    return UnitProcesses(folder=settings_of(MyPluginSettings).path)
