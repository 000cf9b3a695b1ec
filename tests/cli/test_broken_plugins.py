"""A plugin that cannot be loaded: reported at every start, and a run stops if it may decide something."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.bench import Bench, call

DETECTOR = """
from gsd_core import implements
from gsd_core.hookspecs import gsd_find_gaps
import a_package_that_is_not_installed

@implements(gsd_find_gaps)
async def look(phase):
    return []
"""
SETTINGS = """
import attrs
from gsd_core import implements
from gsd_core.hookspecs import gsd_settings

@attrs.frozen
class Mine:
    needed: int

@implements(gsd_settings)
def settings():
    return (Mine,)
"""


@pytest.fixture
def idea(tmp_path: Path) -> Path:
    path = tmp_path / "idea.md"
    path.write_text("# Greeter\n\nGreets.\n")
    return path


def dry(bench: Bench, idea: Path, *args: str | Path) -> tuple[int, str]:
    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal", "--dry-run", *args)
    return result.exit_code, result.stderr


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution with the entry point ``shaky``; a test writes its module."""
    site = tmp_path / "site"
    info = site / "shaky_dist-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shaky-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gsd]\nshaky = shaky_package.plugin\n")
    (site / "shaky_package").mkdir()
    (site / "shaky_package" / "__init__.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site / "shaky_package" / "plugin.py"


def test_a_detector_that_cannot_be_loaded_stops_the_run_and_says_how_to_go_on(
    bench: Bench, idea: Path, package: Path
) -> None:
    package.write_text(DETECTOR)

    code, said = dry(bench, idea)
    assert code == 2
    assert "plugin 'shaky' cannot be used" in said
    assert "-p no:shaky" in said
    assert dry(bench, idea, "-p", "no:shaky")[0] == 0


def test_a_plugin_that_decides_nothing_is_only_reported(bench: Bench, idea: Path, package: Path) -> None:
    package.write_text("from gsd_core.hookspecs import gsd_notify\n")

    code, said = dry(bench, idea)
    assert code == 0, said
    assert "plugin 'shaky' was not loaded: SystemExit(3)" in said


def test_a_plugin_whose_source_is_not_there_might_be_a_detector(
    bench: Bench, idea: Path, package: Path
) -> None:
    info = package.parent.parent / "shaky_dist-1.0.dist-info"
    (info / "entry_points.txt").write_text("[gsd]\ngone = gone_x.y\n")

    code, said = dry(bench, idea)
    assert code == 2
    assert "-p no:gone" in said


def test_a_plugin_that_the_user_named_stops_the_run_whatever_it_is(
    bench: Bench, idea: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "mine.py").write_text("raise RuntimeError('no luck')\n")

    for named in (("--plugins-dir", folder), ("-p", folder / "mine.py")):
        code, said = dry(bench, idea, *named)
        assert (code, "no luck" in said, "-p no:mine" in said) == (2, True, True)
    assert dry(bench, idea, "--plugins-dir", folder, "-p", "no:mine")[0] == 0


def test_a_plugin_with_invalid_settings_stops_the_run(bench: Bench, idea: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "mine.py").write_text(SETTINGS)

    code, said = dry(bench, idea, "--plugins-dir", folder)
    assert code == 2
    assert "-p no:mine" in said


def test_blocking_a_plugin_that_does_not_exist_is_an_error_with_a_suggestion(
    bench: Bench, idea: Path
) -> None:
    code, said = dry(bench, idea, "-p", "no:permision")

    assert code == 2
    assert "did you mean 'permissions'" in said
