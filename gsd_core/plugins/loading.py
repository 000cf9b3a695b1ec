"""Find, load and describe plugins.

In this order: the built-in ones, those that only the command line names, installed packages (entry
points of the group ``gsd``), the folders of ``--plugins-dir``, and the project's ``.gsd/plugins``. Of two
plugins with the same name the first is loaded; a built-in one can be blocked to be replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import pluggy

from gsd_core import hookspecs
from gsd_core.errors import ConfigError

from .calling import Hooks
from .discovery import ENTRY_POINT_GROUP, Choice, discover
from .importing import Candidate, Source, import_candidate, may_decide, read_candidate, source_names
from .isolation import Fault, describe, may_be_ctrl_c
from .requirements import requirements_of, unmet
from .validation import deprecations, hooks_of, validate_plugin

log = logging.getLogger(__name__)

Status: TypeAlias = Literal["active", "blocked", "broken", "untrusted"]


@attrs.frozen(kw_only=True)
class PluginInfo:
    """One row of ``gsd plugins``; *reason* says why a plugin is not active, only a file has a *sha256*.

    *needed*: it is broken, and a run does not start without it unless the user says so. Such are detectors
    and policies, and the plugins that the user named or that belong to the project. *from_project*: it is in
    the project's ``.gsd/plugins``. *detector*: it is blocked, and its source says that it finds gaps. *about*
    is the first line of its docstring, *notes* are what its author should know, such as a deprecated hook.
    """

    name: str
    source: Source
    status: Status = "active"
    reason: str = ""
    distribution: str = ""
    version: str = ""
    sha256: str = ""
    hooks: tuple[str, ...] = ()
    path: str = ""
    needed: bool = False
    from_project: bool = False
    detector: bool = False
    about: str = ""
    notes: tuple[str, ...] = ()


class Registry(pluggy.PluginManager):
    """pluggy's manager with GSD's hooks; finds installed plugins."""

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
    manager: Registry,
    choice: Choice | None = None,
    trusted: Collection[str] = (),
    present: Collection[PluginInfo] = (),
) -> tuple[PluginInfo, ...]:
    """Register the plugins that can be loaded, and describe all of them.

    A file of the project is imported only if its SHA-256, in hex, is among *trusted*. A blocked
    plugin is not imported. *present* are plugins that *manager* has already: others may require them.
    """
    choice = choice or Choice()
    infos: list[PluginInfo] = []
    candidates = discover(choice, manager.installed())
    for candidate in candidates:
        infos.append(_load_one(manager, candidate, choice, trusted, infos))
    _drop_unmet(manager, candidates, infos, present)
    broken = [info for info in infos if info.status == "broken"]
    if choice.strict and broken:
        raise ConfigError("; ".join(f"plugin {info.name!r} is broken: {info.reason}" for info in broken))
    return tuple(infos)


def _load_one(
    manager: Registry,
    candidate: Candidate,
    choice: Choice,
    trusted: Collection[str],
    earlier: Collection[PluginInfo],
) -> PluginInfo:
    info = _describe(candidate)
    namesakes = [other for other in earlier if other.name == candidate.name]
    replaces = any(other.source == "default" and other.status == "blocked" for other in namesakes)
    if reason := choice.reason_to_block(candidate, replaces=replaces):
        detector = source_names(candidate, hookspecs.gsd_find_gaps.__name__.encode())
        return attrs.evolve(info, status="blocked", reason=reason, detector=detector)
    if other := next((other for other in namesakes if other.status != "blocked"), None):
        return _broken(info, candidate, _name_is_taken(other))
    try:
        content, sha256 = read_candidate(candidate)
        info = attrs.evolve(info, sha256=sha256)
        if not candidate.trusted and sha256 not in trusted:
            return attrs.evolve(info, status="untrusted", reason="a file of the project, not trusted yet")
        plugin = import_candidate(candidate, content)
        manager.register(plugin, name=candidate.name)
    except BaseException as exc:  # code that is being imported may raise anything, SystemExit included
        if may_be_ctrl_c(exc):
            raise
        return _broken(info, candidate, describe(exc))
    if problem := validate_plugin(manager, plugin):
        manager.unregister(plugin)
        return _broken(info, candidate, problem)
    hooks = hooks_of(manager, plugin)
    return attrs.evolve(info, hooks=hooks, about=_about(plugin), notes=deprecations(hooks))


def _about(plugin: object) -> str:
    """Return the first line of a plugin's docstring."""
    text = getattr(plugin, "__doc__", None)
    return text.strip().partition("\n")[0] if isinstance(text, str) else ""


def _drop_unmet(
    manager: Registry,
    candidates: Sequence[Candidate],
    infos: list[PluginInfo],
    present: Collection[PluginInfo],
) -> None:
    """Remove the plugins whose requirements are not met, until all are: one may be required by another."""
    while True:
        everything = [*(info for info in present if info.name not in {i.name for i in infos}), *infos]
        active = {info.name: info.version for info in everything if info.status == "active"}
        reasons = {info.name: f"{info.status}: {info.reason}" for info in everything if info.reason}
        for index, (candidate, info) in enumerate(zip(candidates, infos, strict=True)):
            if info.status != "active":
                continue
            plugin = manager.get_plugin(info.name)
            try:
                problem = unmet(requirements_of(plugin), active, reasons)
            except TypeError as error:
                problem = str(error)
            if problem:
                manager.unregister(plugin)
                infos[index] = attrs.evolve(_broken(info, candidate, problem), hooks=())
                break
        else:
            return


def _describe(candidate: Candidate) -> PluginInfo:
    distribution, version = candidate.distribution
    if candidate.source == "default":
        from gsd_core import __version__

        distribution, version = "gsd-core", __version__
    path = str(candidate.target) if isinstance(candidate.target, Path) else ""
    return PluginInfo(
        name=candidate.name,
        source=candidate.source,
        distribution=distribution,
        version=version,
        path=path,
        from_project=not candidate.trusted,
    )


def _broken(info: PluginInfo, candidate: Candidate, reason: str) -> PluginInfo:
    log.warning("plugin %r (%s) was not loaded: %s", info.name, info.source, reason)
    chosen = info.source in ("directory", "file", "module")
    return attrs.evolve(info, status="broken", reason=reason, needed=chosen or may_decide(candidate))


def _name_is_taken(by: PluginInfo) -> str:
    if by.source == "default":
        return f"the built-in plugin {by.name!r} has the same name; to replace it, block it: -p no:{by.name}"
    return f"another plugin has the same name: {by.distribution or by.path or by.source}"


def detectors_left_out(infos: Collection[PluginInfo]) -> list[str]:
    """Return the names of the detectors that were turned off, and that nothing replaces."""
    active = {info.name for info in infos if info.status == "active"}
    return sorted({info.name for info in infos if info.detector} - active)


def collect_settings(hooks: Hooks) -> tuple[tuple[str, type[Any]], ...]:
    """Return the settings classes of the plugins, each with the plugin's name."""
    return hooks.collect(hookspecs.gsd_settings, _settings_key).items


def settings_failures(hooks: Hooks) -> tuple[Fault, ...]:
    """Return why the settings of plugins cannot be used; such plugins work without their settings."""
    return hooks.collect(hookspecs.gsd_settings, _settings_key).failures


def _settings_key(kind: type[Any]) -> str:
    """Return the full name of a settings class; raise ``TypeError`` if it cannot be used as one."""
    if not attrs.has(kind):
        raise TypeError(f"{kind.__name__} is not an attrs class")
    for field in attrs.fields(kind):
        if field.init and field.default is attrs.NOTHING:
            raise TypeError(f"{kind.__name__}.{field.name} has no default")
    return f"{kind.__module__}.{kind.__qualname__}"
