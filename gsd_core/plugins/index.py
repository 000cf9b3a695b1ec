"""The known plugins: packages that can be installed. The list is a file beside this one."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import attrs


@attrs.frozen(kw_only=True)
class KnownPlugin:
    """A plugin that can be installed: its *name* in GSD, its *package*, what it is *about*, its *hooks*.

    *published*: the package index has it, and it is ours. Until then, anybody could take its name there.
    """

    name: str
    package: str
    about: str
    hooks: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    published: bool = False


@cache
def known_plugins() -> tuple[KnownPlugin, ...]:
    """Return the plugins of the list, by name."""
    text = files("gsd_core.plugins").joinpath("index.toml").read_text(encoding="utf-8")
    return tuple(KnownPlugin(**entry) for entry in tomllib.loads(text)["plugin"])


def packages_by_name() -> dict[str, str]:
    """Return the package of each known plugin."""
    return {plugin.name: plugin.package for plugin in known_plugins()}
