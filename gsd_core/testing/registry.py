"""Hooks with exactly the plugins that a test names: installed plugins are not looked for."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint

from gsd_core.errors import ConfigError
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import Registry
from gsd_core.plugins.validation import validate_plugin


class SealedRegistry(Registry):
    """A registry that refuses to look for installed plugins: a test must not depend on them."""

    def installed(self) -> Collection[EntryPoint]:
        """Raise ``AssertionError``."""
        raise AssertionError("a test must not look for installed plugins; pass it the plugins that it needs")

    def load_setuptools_entrypoints(self, group: str, name: str | None = None) -> int:
        """Raise ``AssertionError``."""
        raise AssertionError(f"a test must not load the entry points of {group!r}")


def make_manager(*plugins: object, **named: object) -> SealedRegistry:
    """Return a plugin manager with *plugins* under their own names and *named* ones under theirs.

    A plugin is a module, or an object with decorated methods. Raises ``ConfigError`` if one is invalid.
    """
    manager = SealedRegistry()
    names: list[str] = [getattr(plugin, "__name__", type(plugin).__name__) for plugin in plugins]
    by_name = [(name.rpartition(".")[2], plugin) for name, plugin in zip(names, plugins, strict=True)]
    for name, plugin in [*by_name, *named.items()]:
        manager.register(plugin, name=name)
        if problem := validate_plugin(manager, plugin):
            raise ConfigError(f"plugin {name!r}: {problem}")
    return manager


def make_hooks(*plugins: object, **named: object) -> Hooks:
    """Return the hooks of those plugins, ready to call; ``attrs.evolve`` changes *grace* and *report*."""
    return Hooks(manager=make_manager(*plugins, **named))
