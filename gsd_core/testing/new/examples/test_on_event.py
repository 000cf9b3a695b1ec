"""Call the listener through its hook."""

from __future__ import annotations

import json
from pathlib import Path

from gsd_core.testing import an_event
from gsd_core.testing.conformance import check_on_event, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import on_event as plugin


def test_an_event_becomes_a_line_in_the_file(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    path = tmp_path / "events.jsonl"
    gsd_use_settings(plugin.MyPluginSettings(path=str(path)))

    check_on_event(plugin, an_event("step.completed"))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(line["name"], line["step"]) for line in lines} == {("step.completed", "1/plan")}


def test_other_events_are_skipped(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    path = tmp_path / "events.jsonl"
    gsd_use_settings(plugin.MyPluginSettings(path=str(path)))

    check_on_event(plugin, an_event("agent.activity"))

    assert not path.exists()


def test_without_a_path_nothing_is_written() -> None:
    check_on_event(plugin, an_event())

    assert check_settings(plugin) == (plugin.MyPluginSettings,)
