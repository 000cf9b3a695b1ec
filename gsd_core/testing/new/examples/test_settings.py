"""Read the settings, and check them as ``gsd doctor`` would."""

from __future__ import annotations

from pathlib import Path

from gsd_core.testing.conformance import check_doctor, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import settings as plugin


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
    assert check_doctor(plugin) == ()


def test_a_missing_guide_is_reported_with_a_fix(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(guide=str(tmp_path / "guide.md")))

    [finding] = check_doctor(plugin)

    assert (finding.ok, finding.fix) == (False, "write it or change my_plugin.guide")


def test_an_existing_guide_is_ok(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    (tmp_path / "guide.md").write_text("Be kind.")
    gsd_use_settings(plugin.MyPluginSettings(guide=str(tmp_path / "guide.md")))

    assert [finding.ok for finding in check_doctor(plugin)] == [True]
