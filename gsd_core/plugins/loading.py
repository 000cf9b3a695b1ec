"""Find, load and describe plugins.

In this order: the built-in ones, those that only the command line names, installed packages (entry
points of the group ``gsd``), the folders of ``--plugins-dir``, and the project's ``.gsd/plugins``. Of two
plugins with the same name the first is loaded; a built-in one can be blocked to be replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import pluggy

import gsd_core
from gsd_core import hookspecs
from gsd_core.errors import ConfigError

from .calling import Hooks
from .discovery import ENTRY_POINT_GROUP, Choice, discover
from .importing import DECIDING_HOOKS, Candidate, Source, import_candidate, read_candidate, source_names
from .isolation import Fault, describe, may_be_ctrl_c
from .validation import deprecations, fits, hooks_of, validate_plugin

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
    # One may be required by another, so this is repeated until the requirements of all are met.
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
            break
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
        why = f"another plugin has the same name: {other.distribution or other.path or other.source}"
        if other.source == "default":
            name = other.name
            why = f"the built-in plugin {name!r} has the same name; to replace it, block it: -p no:{name}"
        return _broken(info, candidate, why)
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
    text = getattr(plugin, "__doc__", None)
    about = text.strip().partition("\n")[0] if isinstance(text, str) else ""
    return attrs.evolve(info, hooks=hooks, about=about, notes=deprecations(hooks))


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
    # One that cannot be imported may be a detector or a policy: without one, a run is not safe. The source is
    # not read if the user chose the plugin: a file of the project may be a pipe.
    is_chosen = info.source in ("directory", "file", "module")
    needed = is_chosen or source_names(candidate, *DECIDING_HOOKS)
    return attrs.evolve(info, status="broken", reason=reason, needed=needed)


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


CORE = "gsd-core"


def requirements_of(plugin: object) -> tuple[str, ...]:
    """Return what *plugin* requires; raise ``TypeError`` if it is not a list of strings.

    A plugin says so in its attribute ``requires``, a list of requirements as in ``pyproject.toml``, but with
    the names of plugins: ``requires = ("gsd-core>=0.1", "uat", "slack>=1.2")``. The packages that it imports
    belong into the metadata of its own package.
    """
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
