"""What a plugin requires: other plugins, and versions of them or of gsd-core.

A plugin says so in its attribute ``requires``, a list of requirements as in ``pyproject.toml``, but with the
names of plugins: ``requires = ("gsd-core>=0.1", "uat", "slack>=1.2")``. The packages that it imports belong
into the metadata of its own package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gsd_core

from .validation import fits

CORE = "gsd-core"


def requirements_of(plugin: object) -> tuple[str, ...]:
    """Return what *plugin* requires; raise ``TypeError`` if it is not a list of strings."""
    value: Any = getattr(plugin, "requires", ())
    # A module may have imported a function of that name, such as importlib.metadata's.
    if callable(value):
        return ()
    if not fits(value, tuple[str, ...]) and not fits(value, list[str]):
        raise TypeError(f"requires is {value!r}, not a tuple of strings such as ('uat', 'slack>=1.2')")
    return tuple(value)


def unmet(requires: tuple[str, ...], active: Mapping[str, str], reasons: Mapping[str, str]) -> str:
    """Return what is missing of *requires*, or an empty string; *active* has versions by plugin.

    *reasons* says of plugins that are not active why. A version is empty if it is not known, as for a file.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    for text in requires:
        try:
            required = Requirement(text)
        except InvalidRequirement as error:
            return f"requires {text!r}, which is not a requirement such as 'slack>=1.2': {error}"
        if required.url or required.extras or required.marker:
            return f"requires {text!r}: only a plugin's name and versions can be given"
        is_core = required.name.lower().replace("_", "-") == CORE
        name = CORE if is_core else required.name.replace("-", "_")
        if not is_core and name not in active:
            return f"requires the plugin {name!r}, which is {reasons.get(name, 'not installed')}"
        version = gsd_core.__version__ if is_core else active[name]
        if not str(required.specifier):
            continue
        what = CORE if is_core else f"the plugin {name!r}"
        if not version:
            return f"requires {what} in version {required.specifier}, but it has no version"
        if not required.specifier.contains(version, prereleases=True):
            return f"requires {what} in version {required.specifier}, but {version} is installed"
    return ""
