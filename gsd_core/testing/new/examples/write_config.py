"""A config writer that proposes a lean workflow.

Plugins return values for GSD's `config.json`; the core merges them, and values in the user's own file win.
If two plugins set the same key, the run does not start and the message names both.

Settings in `gsd.toml`:

    [my_plugin]
    research = true
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from gsd_core import ConfigValue, ProjectInfo, implements, setting, settings_of
from gsd_core.hookspecs import gsd_settings, gsd_write_config


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*research* phases before planning them; *plan_check*: review plans before executing them."""

    research: bool = setting(False)
    plan_check: bool = setting(False)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_write_config)
def propose(project: ProjectInfo) -> Iterable[ConfigValue]:
    """Propose the values of the settings."""
    options = settings_of(MyPluginSettings)
    values = {"research": options.research, "plan_check": options.plan_check}
    for name, value in values.items():
        yield ConfigValue(key=f"workflow.{name}", value=value, reason=f"my_plugin.{name}")
