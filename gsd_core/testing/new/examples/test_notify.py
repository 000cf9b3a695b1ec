"""Call the notifier through its hook."""

from __future__ import annotations

import json
from pathlib import Path

from gsd_core.testing import a_notice
from gsd_core.testing.conformance import check_notify, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import notify as plugin


def test_a_notification_becomes_a_line_in_the_file(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    path = tmp_path / "notices.jsonl"
    gsd_use_settings(plugin.MyPluginSettings(path=str(path)))

    check_notify(plugin, a_notice("Phase 1 is done"))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["title"] for line in lines} == {"Phase 1 is done"}


def test_other_types_are_skipped(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    path = tmp_path / "notices.jsonl"
    gsd_use_settings(plugin.MyPluginSettings(path=str(path), types=("question",)))

    check_notify(plugin, a_notice(type="progress"))

    assert not path.exists()


def test_without_a_path_nothing_is_written() -> None:
    check_notify(plugin, a_notice())


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
