"""Hooks with the plugins that a test names, and no others."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint

from gsd_core.errors import ConfigError
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import Registry
from gsd_core.plugins.validation import unfit


class SealedRegistry(Registry):
    """A manager that refuses to look for plugins: a test must not depend on what is installed."""

    def installed(self) -> Collection[EntryPoint]:
        """Refuse."""
        raise AssertionError("a test asked for installed plugins; give it those that it needs")

    def load_setuptools_entrypoints(self, group: str, name: str | None = None) -> int:
        """Refuse."""
        raise AssertionError(f"a test asked for the entry points of {group!r}")


def make_manager(*plugins: object, **named: object) -> SealedRegistry:
    """Return a manager with *plugins* under their own names, and those *named* under theirs.

    A plugin is a module, or an object with marked methods. ``ConfigError`` if one does not fit.
    """
    manager = SealedRegistry()
    for plugin in plugins:
        _register(manager, plugin, _name_of(plugin))
    for name, plugin in named.items():
        _register(manager, plugin, name)
    return manager


def make_hooks(*plugins: object, **named: object) -> Hooks:
    """Return the ways to call, for those plugins; ``attrs.evolve`` changes grace and report."""
    return Hooks(manager=make_manager(*plugins, **named))


def _register(manager: Registry, plugin: object, name: str) -> None:
    manager.register(plugin, name=name)
    if problem := unfit(manager, plugin):
        raise ConfigError(f"plugin {name!r}: {problem}")


def _name_of(plugin: object) -> str:
    name: str = getattr(plugin, "__name__", type(plugin).__name__)
    return name.rpartition(".")[2]
