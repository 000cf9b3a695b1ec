"""Call the budget policy through its hook."""

from __future__ import annotations

from gsd_core import Pause, Stop
from gsd_core.testing import a_spend
from gsd_core.testing.conformance import check_check_budget, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import check_budget as plugin


def test_calls_below_the_limit_proceed() -> None:
    assert check_check_budget(plugin, a_spend(calls=199)) is None


def test_the_limit_stops_the_run() -> None:
    decision = check_check_budget(plugin, a_spend(calls=200))

    assert decision == Stop(reason="200 agent calls were made (my_plugin.stop_after)")


def test_a_human_is_asked_first(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(ask_after=10))

    assert isinstance(check_check_budget(plugin, a_spend(calls=10)), Pause)


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
