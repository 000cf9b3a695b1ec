"""Call the config writer through its hook."""

from __future__ import annotations

from pathlib import Path

from gsd_core.testing import a_project
from gsd_core.testing.conformance import check_settings, check_write_config
from gsd_core.testing.pytest_plugin import UseSettings

from . import write_config as plugin


def proposed(root: Path) -> dict[str, object]:
    """Return the proposed values by key."""
    return {value.key: value.value for value in check_write_config(plugin, a_project(root))}


def test_a_lean_workflow_is_proposed(tmp_path: Path) -> None:
    assert proposed(tmp_path) == {"workflow.research": False, "workflow.plan_check": False}


def test_settings_change_the_proposal(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(research=True))

    assert proposed(tmp_path)["workflow.research"] is True


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
