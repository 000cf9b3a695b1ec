"""The settings of a project for commands that start no run: no plugin is loaded for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gsd_core.settings import RunSettings


def run_settings(root: Path, config: Mapping[str, Any]) -> RunSettings:
    """Return the section ``run`` from the environment, the settings files and GSD's *config*."""
    from gsd_core.settings import (
        Layer,
        RunSettings,
        environment_layer,
        planning_layer,
        resolve,
        toml_layer,
        user_config,
    )

    classes = (("run", RunSettings),)
    files = (
        toml_layer(root / "gsd.toml", "gsd.toml", inside=root),
        toml_layer(user_config(), str(user_config())),
    )
    # The sections of plugins are not checked, because no plugin is loaded.
    layers = [
        environment_layer(classes, os.environ),
        *(
            Layer(origin=layer.origin, sections={"run": layer.sections.get("run", {})})
            for layer in (files[0], planning_layer(config), files[1])
        ),
    ]
    found: RunSettings = resolve(classes, layers).of(RunSettings)
    return found
