"""A permission policy that denies commands which name certain programs.

It is asked before an agent uses a tool and before each of a plan's commands, and has 2 seconds to decide.
Deny beats Ask, and Ask beats Allow; `None` means no opinion. If no policy has one, a human is asked.
If a policy raises or times out, the tool is denied.
This one looks at the words of a command; a program called under another name gets past it.

Settings in `gsd.toml`:

    [my_plugin]
    programs = ["curl", "wget", "nc"]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

import attrs
from gsd_core import Deny, Permission, ToolUse, implements, setting, settings_of
from gsd_core.hookspecs import gsd_permit_tool, gsd_settings

_SEPARATORS = re.compile(r"[\s\"'`()<>|&;=$]+")


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*programs* that agents and plans must not name in a command."""

    programs: tuple[str, ...] = setting(("curl", "wget"))


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_permit_tool)
async def deny_programs(use: ToolUse) -> Permission | None:
    """Deny a command that names one of the programs; no opinion on anything else."""
    if use.name != "Bash":
        return None
    words = _words(str(use.input.get("command", "")))
    for program in settings_of(MyPluginSettings).programs:
        if program in words:
            return Deny(reason=f"{program} is not allowed here (my_plugin.programs)")
    return None


def _words(command: str) -> set[str]:
    """Return the words of *command*, quoted or not; of a path only the last part."""
    return {PurePath(word).name for word in _SEPARATORS.split(command) if word}
