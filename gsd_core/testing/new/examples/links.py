"""Links: notifications link to the build that the run works in.

Settings in `gsd.toml`:

    [my_plugin]
    url = "https://ci.example.net/builds/17"
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from gsd_core import Notice, implements, setting, settings_of
from gsd_core.hookspecs import gsd_links, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*url* of the build; it leaves this machine, so it must not contain a token."""

    url: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_links)
def page_of_the_build(notice: Notice) -> Iterable[str]:
    """Link to the build from everything but reminders."""
    url = settings_of(MyPluginSettings).url
    if url and not notice.reminder:
        yield url
