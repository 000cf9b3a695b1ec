"""Find, load and describe plugins.

In this order: our own, those that the command line names, installed packages (entry points of
the group ``gsd``), the folders of ``--plugins-dir``, the project's ``.gsd/plugins``. Of two with
one name the first is loaded; a built-in makes room if it is blocked.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import pluggy

from gsd_core import hookspecs
from gsd_core.errors import ConfigError

from .calling import Hooks
from .discovery import ENTRY_POINT_GROUP, Choice, discover
from .importing import Candidate, Source, Untrusted, import_candidate, read
from .isolation import PluginFailure, describe_exception
from .validation import hooks_of, validate_plugin

log = logging.getLogger(__name__)

Status: TypeAlias = Literal["active", "blocked", "broken", "untrusted"]


@attrs.frozen(kw_only=True)
class PluginInfo:
    """One row of ``gsd plugins``; only a file has a *sha256*, only what is not active a *reason*."""

    name: str
    source: Source
    status: Status = "active"
    reason: str = ""
    distribution: str = ""
    version: str = ""
    sha256: str = ""
    hooks: tuple[str, ...] = ()
    path: str = ""


class Registry(pluggy.PluginManager):
    """pluggy's manager, knowing the hooks and where installed plugins are found."""

    def __init__(self) -> None:
        super().__init__(hookspecs.PROJECT)
        self.add_hookspecs(hookspecs)

    def installed(self) -> Collection[EntryPoint]:
        """Return the entry points of the group ``gsd``."""
        return entry_points(group=ENTRY_POINT_GROUP)


def build_manager() -> Registry:
    """Return a manager that knows the hooks and no plugin."""
    return Registry()


def load(
    manager: Registry, choice: Choice | None = None, trusted: Collection[str] = ()
) -> tuple[PluginInfo, ...]:
    """Register what loads, and report on everything.

    A file of the project is imported only if its SHA-256, in hex, is among *trusted*. A blocked
    plugin is not imported.
    """
    choice = choice or Choice()
    infos: list[PluginInfo] = []
    for candidate in discover(choice, manager.installed()):
        info = _load_one(manager, candidate, choice, trusted, infos)
        infos.append(info)
    broken = [info for info in infos if info.status == "broken"]
    if choice.strict and broken:
        raise ConfigError("; ".join(f"plugin {info.name!r} is broken: {info.reason}" for info in broken))
    return tuple(infos)


def with_failures(infos: Iterable[PluginInfo], failures: Iterable[PluginFailure]) -> tuple[PluginInfo, ...]:
    """Return *infos* with the active plugins among them that failed to contribute marked as broken."""
    why = {failure.plugin: f"{failure.hook}: {failure.error}" for failure in failures}
    return tuple(
        attrs.evolve(info, status="broken", reason=why[info.name])
        if info.status == "active" and info.name in why
        else info
        for info in infos
    )


def collect_settings(hooks: Hooks) -> tuple[tuple[str, type[Any]], ...]:
    """Return the settings classes of the plugins, each with the plugin's name."""
    return hooks.collect(hookspecs.gsd_settings, _settings_name).items


def _load_one(
    manager: Registry,
    candidate: Candidate,
    choice: Choice,
    trusted: Collection[str],
    before: Collection[PluginInfo],
) -> PluginInfo:
    twins = [info for info in before if info.name == candidate.name]
    replaces = any(twin.source == "default" and twin.status == "blocked" for twin in twins)
    info = _describe(candidate)
    if reason := choice.reason_to_block(candidate, replaces=replaces):
        return attrs.evolve(info, status="blocked", reason=reason)
    if taken := next((twin for twin in twins if twin.status != "blocked"), None):
        return _broken(info, _name_is_taken(taken))
    return _import_and_register(manager, candidate, info, trusted)


def _name_is_taken(by: PluginInfo) -> str:
    if by.source == "default":
        return f"the built-in {by.name!r} has this name; block it by -p no:{by.name} to replace it"
    return f"another plugin has this name: {by.distribution or by.path or by.source}"


def _import_and_register(
    manager: Registry, candidate: Candidate, info: PluginInfo, trusted: Collection[str]
) -> PluginInfo:
    try:
        content, sha256 = read(candidate)
        info = attrs.evolve(info, sha256=sha256)
        if not candidate.trusted and sha256 not in trusted:
            raise Untrusted(sha256)
        plugin = import_candidate(candidate, content)
        manager.register(plugin, name=candidate.name)
    except KeyboardInterrupt:
        raise
    except Untrusted:
        return attrs.evolve(
            info, status="untrusted", reason="a file of the project; nobody has trusted it yet"
        )
    except BaseException as exc:
        return _broken(info, describe_exception(exc))
    return _checked(manager, plugin, info)


def _checked(manager: Registry, plugin: object, info: PluginInfo) -> PluginInfo:
    problem = validate_plugin(manager, plugin)
    if problem:
        manager.unregister(plugin)
        return _broken(info, problem)
    return attrs.evolve(info, hooks=hooks_of(manager, plugin))


def _describe(candidate: Candidate) -> PluginInfo:
    distribution, version = candidate.distribution
    if candidate.source == "default":
        distribution, version = "gsd-core", _version()
    path = str(candidate.target) if isinstance(candidate.target, Path) else ""
    return PluginInfo(
        name=candidate.name, source=candidate.source, distribution=distribution, version=version, path=path
    )


def _version() -> str:
    from gsd_core import __version__

    return __version__


def _broken(info: PluginInfo, reason: str) -> PluginInfo:
    log.warning("plugin %r (%s) did not load: %s", info.name, info.source, reason)
    return attrs.evolve(info, status="broken", reason=reason)


def _settings_name(kind: type[Any]) -> str:
    """Return what tells a settings class from others; refuse one that does not stand by itself."""
    if not attrs.has(kind):
        raise TypeError(f"{kind.__name__} is not an attrs class")
    if bare := [field.name for field in attrs.fields(kind) if field.init and field.default is attrs.NOTHING]:
        raise TypeError(f"{kind.__name__}.{bare[0]} has no default")
    return f"{kind.__module__}.{kind.__qualname__}"
