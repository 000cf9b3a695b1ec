"""A sandbox for GSD: confines what a model or a repository wrote with a program such as bubblewrap.

The core lists the files and folders that the process may see and change. The plugin returns the command
line that starts it so, and the core starts that. A process that the sandbox starts has to end with it.

Choose it with `run.sandboxes` in your own settings.
A project cannot choose it.

Settings in `gsd.toml`:

    [my_plugin]
    program = "bwrap"
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import attrs
from gsd_core import (
    ConfinedProcess,
    SandboxedCommand,
    SandboxUnavailable,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_sandbox, gsd_settings

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt")


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*program* is the path or name of bubblewrap."""

    program: str = setting("bwrap")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_sandbox)
async def confine(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
    """Start *process* with its own view of the file system, in a process namespace that ends with it."""
    name = settings_of(MyPluginSettings).program
    program = shutil.which(name)
    if program is None:
        return SandboxUnavailable(reason=f"{name!r} is not on PATH", fix="install bubblewrap")
    options = ["--unshare-user", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL"]
    options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for folder in SYSTEM:
        options += ["--ro-bind-try", folder, folder]
    # Later places lie over earlier ones, and bwrap mounts in this order too.
    for place in process.places:
        options += ["--bind" if place.writable else "--ro-bind", str(place.source), str(place.path)]
    command = (program, *options, "--chdir", str(process.cwd), "--", *process.command)
    environment = process.environment
    return SandboxedCommand(command=command, environment=environment, sandbox="my_plugin")
