"""What plugins propose for GSD's ``config.json``; the user's own values win over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gsd_core.hooks import Hooks
from gsd_core.hookspecs import ConfigValue, ProjectInfo, gsd_write_config


def proposed(hooks: Hooks, project: ProjectInfo) -> dict[str, Any]:
    """Return what the plugins propose, as a nested table; the same key twice is an error."""
    found = hooks.collect(gsd_write_config, _key, project)
    config: dict[str, Any] = {}
    for _, value in found.items:
        table = config
        *parents, last = value.key.split(".")
        for name in parents:
            table = table.setdefault(name, {})
        table[last] = value.value
    return config


def _key(value: ConfigValue) -> str:
    return value.key


def merged(proposals: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return *own* with what it does not speak of taken from *proposals*."""
    result = dict(proposals)
    for key, value in own.items():
        below = result.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            result[key] = merged(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            result[key] = value
    return result
