"""The plugins of a command: loaded once, and which of the project's own may run."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from pathlib import Path

import attrs
import click

from gsd_core.errors import ConfigError, GsdError
from gsd_core.hookspecs import CommandOptions, Finding, gsd_doctor, gsd_find_gaps
from gsd_core.own_process import stdout_reserved
from gsd_core.plugins.calling import Collected, Hooks
from gsd_core.plugins.discovery import Choice
from gsd_core.plugins.loading import PluginInfo, Registry, build_manager, load, settings_failures
from gsd_core.plugins.validation import nearest
from gsd_core.sanitize import register_secrets, safe_text
from gsd_core.settings import (
    Layer,
    PluginSettings,
    Settings,
    bind_settings,
    environment_layer,
    resolve,
    user_layer,
)

from .global_options import GlobalOptions, global_options_of

LOADED = "gsd.loaded"
"""The key in a click context's ``meta`` under which the command's plugins are kept."""


@attrs.frozen(kw_only=True)
class Loaded:
    """The plugins that were found, and the hooks of those that are active.

    *admitted*: the user trusts what the project wants, so its own plugins are loaded and its settings count.
    """

    hooks: Hooks
    manager: Registry
    infos: tuple[PluginInfo, ...]
    choice: Choice
    admitted: bool = False


def loaded_plugins(
    ctx: click.Context, options: GlobalOptions | None = None, *, with_trusted_ones: bool = False
) -> Loaded:
    """Return the plugins of this command, loading them the first time.

    *options* replaces the global options of *ctx* while those after the subcommand are not parsed yet. The
    plugins in the project's ``.gsd/plugins`` are imported only *with_trusted_ones*, and only if the user
    trusts everything that the project wants.
    """
    if LOADED not in ctx.meta:
        options = options or global_options_of(ctx)
        loaded = load_plugins(choose_plugins(options), frozenset())
        if with_trusted_ones and any(info.from_project for info in loaded.infos):
            from .project_trust import admit, examine

            # The command reports settings that cannot be read; `--help` works without them.
            with suppress(GsdError):
                loaded = admit(loaded, examine(loaded, options.directory.resolve()))
        ctx.meta[LOADED] = loaded
    found: Loaded = ctx.meta[LOADED]
    return found


def choose_plugins(options: GlobalOptions) -> Choice:
    """Return which plugins the command line, the environment and the user's own settings ask for."""
    layers = [environment_layer([("plugins", PluginSettings)], os.environ)]
    with suppress(ConfigError):  # the command reports settings that cannot be read
        layers.append(user_layer())
    return attrs.evolve(
        Choice.of(os.environ),
        named=options.plugins,
        directories=options.plugin_dirs,
        project=options.directory.resolve(),
        off=names_off(*layers),
    )


def names_off(*layers: Layer) -> dict[str, str]:
    """Return the plugins that the setting ``plugins.off`` of *layers* leaves out, with where it does."""
    found: dict[str, str] = {}
    for layer in layers:
        section = {"plugins": layer.sections.get("plugins", {})}
        if section["plugins"]:
            with suppress(ConfigError):  # the command reports a value of a wrong type
                only = attrs.evolve(layer, sections=section, strict=False)
                chosen = resolve([("plugins", PluginSettings)], [only]).of(PluginSettings)
                found |= {name: layer.origin for name in chosen.off if name not in found}
    return found


def without_plugins(loaded: Loaded, off: Mapping[str, str]) -> Loaded:
    """Return *loaded* without the plugins *off*, by name, with where that is set; ``-p`` keeps one."""
    infos: list[PluginInfo] = []
    for info in loaded.infos:
        is_wanted = loaded.choice.wanted.get(info.name)
        if info.name in off and info.status in ("active", "broken") and not is_wanted:
            if info.status == "active":
                loaded.manager.unregister(name=info.name)
            detector = gsd_find_gaps.__name__ in info.hooks
            reason = f"plugins.off ({off[info.name]})"
            info = attrs.evolve(
                info, status="blocked", reason=reason, detector=detector, needed=False, hooks=(), notes=()
            )
        infos.append(info)
    return attrs.evolve(loaded, infos=tuple(infos))


def load_plugins(choice: Choice, trusted: frozenset[str]) -> Loaded:
    """Load the plugins of *choice* into a new manager."""
    manager = build_manager()
    infos = load(manager, choice, trusted)
    hooks = Hooks(manager=manager, strict=choice.strict)
    return Loaded(hooks=hooks, manager=manager, infos=infos, choice=choice)


def with_trusted(loaded: Loaded, hashes: frozenset[str]) -> Loaded:
    """Return *loaded* with the project's own plugins that *hashes* trust, loaded into the same manager."""
    added = {i.name for i in loaded.infos if i.status == "untrusted" and i.sha256 in hashes}
    if not added:
        return loaded
    # The other plugins keep their state, and a file is never executed twice, so only these are loaded.
    only = attrs.evolve(
        loaded.choice, named=(), directories=(), defaults=(), allowed=frozenset(added), strict=False
    )
    now = load(loaded.manager, only, hashes, present=loaded.infos)
    found = {i.name: i for i in now if i.name in added and i.status != "blocked"}
    infos = tuple(found.get(i.name, i) if i.status == "untrusted" else i for i in loaded.infos)
    return attrs.evolve(loaded, infos=infos)


def with_project_as_it_is(loaded: Loaded) -> Loaded:
    """Return *loaded* with the project's own plugins described anew; none of them is imported."""
    only = attrs.evolve(loaded.choice, named=(), directories=(), defaults=(), strict=False)
    present = [info for info in loaded.infos if not info.from_project]
    found = [info for info in load(build_manager(), only) if info.from_project]
    return attrs.evolve(loaded, infos=(*present, *found))


@contextmanager
def bound_settings(loaded: Loaded, options: CommandOptions | None = None) -> Generator[None]:
    """Bind the settings for a plugin's own command: from the environment and the user's own file.

    *options* are what ``settings_of(CommandOptions)`` returns.
    The project's files do not count: whether they are trusted is decided when a run starts.
    """
    from .options import classes_of

    with stdout_reserved():
        settings = resolved(loaded, [environment_layer(classes_of(loaded), os.environ), user_layer()])
    with bind_settings({**settings.values, **({CommandOptions: options} if options else {})}):
        yield


def resolved(loaded: Loaded, layers: Sequence[Layer]) -> Settings:
    """Return the settings of the core and the plugins; secrets among them are redacted from now on.

    They may have sections of plugins that are found but not loaded, or that are known and not installed.
    """
    from gsd_core.plugins.index import known_plugins

    from .options import classes_of

    found = {info.name: info.status for info in loaded.infos}
    not_loaded = [name for name, status in found.items() if status != "active"]
    tolerated = [*not_loaded, *(known.name for known in known_plugins() if known.name not in found)]
    settings = resolve(classes_of(loaded), layers, tolerated=tolerated)
    register_secrets(settings.secrets())
    return settings


def unused_sections(loaded: Loaded, settings: Settings) -> Iterator[str]:
    """Say which sections and which names in ``plugins.off`` have no effect: there is no such plugin here."""
    from gsd_core.plugins.index import packages_by_name

    packages, found = packages_by_name(), {info.name for info in loaded.infos}
    for section, origin in settings.unused.items():
        if section in packages and section not in found:
            yield (
                f"{origin}: the section [{section}] has no effect, because its plugin is not installed; "
                f"it is in the package {packages[section]} (see gsd plugins list)"
            )
    for name in settings.of(PluginSettings).off:
        if name not in found and name not in packages:
            origin = settings.origins["plugins.off"]
            yield f"{origin}: plugins.off has {name!r}, which is not a plugin{nearest(name, tuple(found))}"


def check_loaded(loaded: Loaded) -> None:
    """Report the plugins that could not be loaded; raise ``ConfigError`` if a run needs one of them.

    A detector that is missing lets every phase pass, and a policy that is missing permits everything.
    """
    from .output import warn  # imports rich

    problems = {fault.plugin: str(fault) for fault in settings_failures(loaded.hooks)}
    problems |= {info.name: info.reason for info in loaded.infos if info.needed}
    for info in loaded.infos:
        if info.status == "broken" and not info.needed:
            warn([f"plugin {info.name!r} was not loaded: {info.reason}"])
        for note in info.notes:
            warn([f"plugin {info.name!r}: {note}"])
    if problems:
        listed = "; ".join(f"plugin {name!r} cannot be used: {why}" for name, why in problems.items())
        options = " ".join(f"-p no:{name}" for name in problems)
        hint = f"fix it, or run without it: {options}"
        raise ConfigError(safe_text(listed, multiline=False), hint=hint)


def findings_of(hooks: Hooks, settings: Settings, root: Path, plugins: Sequence[str]) -> Collected[Finding]:
    """Return what the checks of these *plugins* find (``gsd_doctor``); no other plugin is asked."""
    chosen = hooks_of_only(hooks, plugins)
    # In the project, which may have what a plugin needs, such as commands for its agent.
    with bind_settings(settings.values), chdir(root if root.is_dir() else Path.cwd()):
        return chosen.collect(gsd_doctor, lambda finding: str(id(finding)))


def hooks_of_only(hooks: Hooks, plugins: Sequence[str]) -> Hooks:
    """Return the hooks of these *plugins*; no other plugin is asked."""
    manager = build_manager()
    for name in dict.fromkeys(plugins):
        manager.register(hooks.manager.get_plugin(name), name=name)
    return attrs.evolve(hooks, manager=manager)
