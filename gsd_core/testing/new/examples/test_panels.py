"""Call the panels through their hook."""

from __future__ import annotations

from pathlib import Path

from gsd_core.testing.conformance import check_panels, check_settings

from . import panels as plugin


def test_marked_lines_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n# TODO: remove\n")

    [panel] = check_panels(plugin, tmp_path)

    assert panel.figures == {"Lines": "1"}
    assert panel.rows == (("a.py", "2", "# TODO: remove"),)


def test_a_project_without_marks_has_none(tmp_path: Path) -> None:
    [panel] = check_panels(plugin, tmp_path)

    assert panel.rows == ()
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
