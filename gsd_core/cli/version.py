"""``gsd version``: shows the versions of gsd and of what it relies on."""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from gsd_core import __version__
from gsd_core.errors import GsdError

from .global_options import gsd_command
from .output import json_flag, print_json, print_line


@gsd_command("version", last=json_flag)
def command(_: click.Context, as_json: bool) -> None:
    """Show the versions of gsd, Python, git and the libraries.

    'gsd --version' prints that of gsd alone.
    """
    found, libraries = versions()
    if as_json:
        print_json({**found, "libraries": libraries})
        return
    for name, value in {**found, **libraries}.items():
        print_line(f"{name} {value or 'not found'}")


def versions() -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return the versions by name, those of the libraries by themselves; ``None`` for what is missing."""
    from gsd_core.git.command import Command as Git

    try:
        git = Git(root=Path.cwd())("version").removeprefix("git version ")
    except (GsdError, OSError):
        git = None
    about = {"python": platform.python_version(), "platform": platform.platform(), "git": git}
    libraries: dict[str, str | None] = {}
    with suppress(PackageNotFoundError):
        # Without those of the extras.
        lines = [line for line in requires("gsd-core") or () if "extra ==" not in line]
        libraries = dict.fromkeys(sorted(re.split(r"[<>=; ]", line)[0] for line in lines))
    for name in libraries:
        with suppress(PackageNotFoundError):
            libraries[name] = version(name)
    return {"gsd": __version__, **about}, libraries
