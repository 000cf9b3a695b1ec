"""A budget policy that limits the number of agent calls.

It is asked before each agent call.
`Stop` ends the run with exit code 5, `Pause` asks a human, and `None` lets the call proceed.
If a budget policy raises or times out, the run stops.

Settings in `gsd.toml`:

    [my_plugin]
    ask_after = 50
    stop_after = 200
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from gsd_core import Pause, Spend, Stop, implements, setting, settings_of
from gsd_core.hookspecs import gsd_check_budget, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*ask_after*, *stop_after*: number of agent calls; 0 means never."""

    ask_after: int = setting(0)
    stop_after: int = setting(200)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_check_budget)
async def limit_calls(spend: Spend) -> Stop | Pause | None:
    """Stop, or ask a human, once the run has made that many calls."""
    limits = settings_of(MyPluginSettings)
    if limits.stop_after and spend.calls >= limits.stop_after:
        return Stop(reason=f"{spend.calls} agent calls were made (my_plugin.stop_after)")
    if limits.ask_after and spend.calls >= limits.ask_after:
        return Pause(reason=f"{spend.calls} agent calls were made (my_plugin.ask_after)")
    return None
