"""A settings section with a flag of `gsd run`, and a check that the value makes sense.

Every field of a settings class has a default, and `settings_of(Class)` returns the values.
Two runs in one process each get their own.

Settings in `gsd.toml`:

    [my_plugin]
    guide = "docs/rules.md"
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs
from gsd_core import Finding, implements, setting, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*guide*: a document that must exist before a run starts; if empty, none is needed."""

    guide: str = setting("", flag="--my-plugin-guide", help="document that must exist")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``, and the flag to ``gsd run``."""
    yield MyPluginSettings


@implements(gsd_doctor)
def guide_exists() -> Iterable[Finding]:
    """Report whether the guide exists, if one is set."""
    guide = settings_of(MyPluginSettings).guide
    if guide:
        exists = Path(guide).expanduser().is_file()
        message = f"the guide {guide!r} {'exists' if exists else 'does not exist'}"
        fix = "write it or change my_plugin.guide"
        yield Finding(name="my_plugin", ok=exists, message=message, fix=fix)
