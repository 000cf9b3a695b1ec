"""Call the diagnostics through their hook."""

from __future__ import annotations

from gsd_core.testing.conformance import check_doctor, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import doctor as plugin


def test_a_missing_program_is_reported_with_a_fix(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(programs=("no-such-program-here",)))

    [finding] = check_doctor(plugin)

    assert (finding.ok, finding.fix) == (False, "install no-such-program-here")


def test_an_installed_program_is_ok() -> None:
    assert [finding.ok for finding in check_doctor(plugin)] == [True]
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
