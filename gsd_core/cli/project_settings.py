"""The settings of a project for commands that start no run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gsd_core.settings import (
    Layer,
    RunSettings,
    Settings,
    environment_layer,
    planning_layer,
    resolve,
    toml_layer,
    user_layer,
)

from .options import classes_of
from .plugin_loading import Loaded, resolved
from .project_trust import admit, examine, project_layers


def settings_without_run(loaded: Loaded, root: Path, typed: Layer | None = None) -> Settings:
    """Return the settings of a run that would start now; *typed* are the flags of an unfinished one.

    Of the project's files only what *loaded* admits counts. Secrets among the values are redacted from now
    on. Raises ``ConfigError`` with all that is wrong.
    """
    layers = [
        environment_layer(classes_of(loaded), os.environ),
        *([typed] if typed else []),
        *project_layers(loaded, root),
        user_layer(),
    ]
    return resolved(loaded, layers)


def settings_that_count(loaded: Loaded, root: Path) -> tuple[Loaded, Settings, tuple[str, ...]]:
    """Return the plugins and settings as a run would have them, and what the project sets without effect."""
    settings = settings_without_run(loaded, root)
    trust = examine(loaded, root, settings.of(RunSettings))
    ignored = [each.name for each in trust.consent]
    if trust.new:
        ignored += [want.name for want in trust.wants if want.kind == "setting"]
    elif trust.wants:
        loaded = admit(loaded, trust)
        settings = settings_without_run(loaded, root)
    return loaded, settings, tuple(ignored)


def run_settings(root: Path, config: Mapping[str, Any], typed: Layer | None = None) -> Settings:
    """Return the settings of section ``run`` from the environment, the settings files and GSD's *config*.

    *typed* are the flags of an unfinished run.
    """
    classes = (("run", RunSettings),)
    files = (
        *([typed] if typed else []),
        toml_layer(root / "gsd.toml", "gsd.toml", inside=root),
        planning_layer(config),
        user_layer(),
    )
    # The sections of plugins are not checked, because no plugin is loaded.
    layers = [
        environment_layer(classes, os.environ),
        *(attrs.evolve(layer, sections={"run": layer.sections.get("run", {})}) for layer in files),
    ]
    return resolve(classes, layers)
