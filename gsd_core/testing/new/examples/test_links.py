"""Call the links through their hook."""

from __future__ import annotations

from gsd_core.testing import a_notice
from gsd_core.testing.conformance import check_links, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import links as plugin

BUILD = "https://ci.example.net/builds/17"


def test_a_notification_links_to_the_build(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(url=BUILD))

    assert check_links(plugin, a_notice()) == (BUILD,)
    assert check_links(plugin, a_notice(reminder=1)) == ()


def test_without_a_url_there_is_no_link() -> None:
    assert check_links(plugin, a_notice()) == ()
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
