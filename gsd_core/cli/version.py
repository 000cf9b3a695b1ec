"""``gsd version``: shows the versions of gsd and of what it relies on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from gsd_core import __version__
from gsd_core.errors import GsdError

from .global_options import global_options
from .help import Command
from .output import json_flag, print_json, print_line


@click.command("version", cls=Command)
@global_options
@json_flag
def command(as_json: bool) -> None:
    """Show the versions of gsd, Python, git and the libraries.

    'gsd --version' prints that of gsd alone.
    """
    found = versions()
    if as_json:
        print_json(found)
        return
    libraries = found.pop("libraries")
    assert isinstance(libraries, dict)
    for name, value in {**found, **libraries}.items():
        print_line(f"{name} {value or 'not found'}")


def versions() -> dict[str, str | dict[str, str | None] | None]:
    """Return the versions by name; ``None`` for what is missing."""
    from gsd_core.git.command import Command as Git

    try:
        git = Git(root=Path.cwd())("version").removeprefix("git version ")
    except (GsdError, OSError):
        git = None
    return {
        "gsd": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git": git,
        "libraries": {name: _version(name) for name in _dependencies()},
    }


def _dependencies() -> list[str]:
    """Return the names of the packages that gsd requires, without those of its extras."""
    try:
        lines = requires("gsd-core") or []
    except PackageNotFoundError:
        return []
    names = (line.split(";")[0] for line in lines if "extra ==" not in line)
    return sorted(name.split("<")[0].split(">")[0].split("=")[0].strip() for name in names)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
