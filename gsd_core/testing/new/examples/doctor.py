"""Diagnostics: checks that the programs your plans need are installed.

If a plugin listed in the settings reports a problem, the run does not start (exit code 4) and nothing is
written. Every problem comes with a fix.

Settings in `gsd.toml`:

    [my_plugin]
    programs = ["git", "node", "npm"]
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import attrs
from gsd_core import Finding, implements, setting, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*programs* that must be on the ``PATH``."""

    programs: tuple[str, ...] = setting(("git",))


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_doctor)
def programs_are_installed() -> Iterable[Finding]:
    """Report for each program whether it is installed."""
    for program in settings_of(MyPluginSettings).programs:
        path = shutil.which(program)
        message = f"found {path}" if path else f"{program} is not on the PATH"
        yield Finding(name=program, ok=path is not None, message=message, fix=f"install {program}")
